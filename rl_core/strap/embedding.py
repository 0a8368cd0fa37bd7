"""Embedders: an episode -> one row of features a step. What they were fitted to is in `spec`, from which an equal one is made again.

A corpus' index keeps the spec of its embedder, so that a target is always embedded as the corpus was.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.atomic import write_atomically
from rl_core.data.episode import DatasetError, Episode
from rl_core.strap.encoders import EncoderName, FrameEncoder, make_encoder
from rl_core.strap.sdtw import RetrievalError

Features = Literal["image", "state", "mix"]
PROPRIOCEPTION = ("eef_pos", "ee_pos", "gripper_pos", "gripper_states")
"""Channels of the robot itself; those that are there are taken where none are named."""


class Embedder(Protocol):
    """`spec` is JSON; equal specs embed equally."""

    spec: dict[str, Any]
    size: int

    def embed(self, episode: Episode, contract: RobotContract) -> NDArray[np.float32]:
        """Features (T, size) of the observation before each of the T actions."""
        ...


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """What features a corpus gets.

    Attributes:
        features: `image`: a frozen network over the cameras. `state`: low-dimensional channels, standardised. `mix`: both side by side.
        encoder: network of the pictures.
        weights: folder of the network's weights; None for those of its package.
        cameras: image channels, whose features are averaged; none = the first of the contract.
        channels: of `state`; none = the robot's own, `PROPRIOCEPTION`.
        cache: folder of features already worked out; None = none are kept.
    """

    features: Features = "image"
    encoder: EncoderName = "efficientnet-lite0"
    weights: Path | None = None
    cameras: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    cache: Path | None = None


def fit_embedder(wanted: Embedding, sample: Sequence[Episode], contract: RobotContract) -> Embedder:
    """The embedder for a corpus of which `sample` are some episodes: they give means, deviations and the scale of a mix.

    Raises:
        RetrievalError: a channel that is not there, or no picture; lists those there are.
    """
    cameras = wanted.cameras or tuple(channel.name for channel in contract.observation if channel.kind == "image")[:1]
    channels = wanted.channels or tuple(c.name for c in contract.low_dimensional if c.name in PROPRIOCEPTION)
    names = [channel.name for channel in contract.observation]
    asked = (*(cameras if wanted.features != "state" else ()), *(channels if wanted.features != "image" else ()))
    unknown = [name for name in asked if name not in names]
    if unknown or not asked:
        raise RetrievalError(f"features {wanted.features!r} of channels {list(asked)}: {unknown or 'none'} not there; channels: {names}")
    if wanted.features == "state":
        return _fit_state(channels, sample)
    image = ImageEmbedder(make_encoder(wanted.encoder, wanted.weights), cameras, wanted.cache)
    if wanted.features == "image":
        return image
    state = _fit_state(channels, sample)
    pictures = np.concatenate([image.embed(episode, contract) for episode in sample])
    states = np.concatenate([state.embed(episode, contract) for episode in sample])
    scale = float(np.sqrt(pictures.var(axis=0).sum() / max(states.var(axis=0).sum(), 1e-12)))
    return MixEmbedder(image, state, scale)


def embedder_from_spec(spec: Mapping[str, Any], wanted: Embedding) -> Embedder:
    """The embedder whose `spec` this is; networks are made anew as `wanted` says.

    Raises:
        RetrievalError: those are other networks, or other features are wanted.
    """
    if spec.get("features") != wanted.features:
        raise RetrievalError(f"the index holds features {spec.get('features')!r}, asked for are {wanted.features!r}; valid: equal ones")
    state = spec.get("state", spec)
    image = spec.get("image", spec)
    made: Embedder
    if wanted.features == "state":
        made = StateEmbedder(tuple(state["channels"]), np.array(state["mean"]), np.array(state["deviation"]))
    else:
        pictures = ImageEmbedder(make_encoder(wanted.encoder, wanted.weights), tuple(image["cameras"]), wanted.cache)
        made = pictures
        if wanted.features == "mix":
            states = StateEmbedder(tuple(state["channels"]), np.array(state["mean"]), np.array(state["deviation"]))
            made = MixEmbedder(pictures, states, float(spec["scale"]))
    chosen = [
        f"{name} {list(found)} instead of {list(asked)}"
        for name, asked, found in (
            ("cameras", wanted.cameras, image.get("cameras", ())),
            ("channels", wanted.channels, state.get("channels", ())),
        )
        if asked and list(asked) != list(found)
    ]
    if made.spec != spec or chosen:
        raise RetrievalError(f"the index is of another embedder: {chosen or image.get('encoder')}; valid: an equal one, or a new index")
    return made


class ImageEmbedder:
    """A frozen network over one camera or more; features of several are averaged. Pictures stored upside down are turned first."""

    def __init__(self, encoder: FrameEncoder, cameras: tuple[str, ...], cache: Path | None) -> None:
        self.spec = {"features": "image", "encoder": encoder.identity, "cameras": list(cameras)}
        self.size = encoder.size
        self._encoder, self._cameras, self._cache = encoder, cameras, cache

    def embed(self, episode: Episode, contract: RobotContract) -> NDArray[np.float32]:
        """See `Embedder`."""
        found = [self._encode(np.asarray(_channel(episode, name))[: len(episode)], contract, name) for name in self._cameras]
        return np.mean(found, axis=0, dtype=np.float32)

    def _encode(self, frames: NDArray[np.uint8], contract: RobotContract, camera: str) -> NDArray[np.float32]:
        upright = np.ascontiguousarray(frames[:, ::-1] if contract.channel(camera).row_order == "bottom_up" else frames)
        if self._cache is None:
            return self._encoder.encode(upright)
        content = hashlib.sha256(f"{self._encoder.identity} {upright.shape}".encode() + upright.tobytes()).hexdigest()
        file = self._cache / f"{content}.npy"
        try:
            kept = np.load(file, allow_pickle=False)
            if kept.shape == (len(upright), self.size) and kept.dtype == np.float32 and np.isfinite(kept).all():
                os.utime(file)
                return kept
        except (OSError, ValueError, EOFError):  # not there yet, or damaged: made anew
            pass
        features = self._encoder.encode(upright)
        self._cache.mkdir(parents=True, exist_ok=True)
        with write_atomically(file) as target:
            np.save(target, features, allow_pickle=False)
        return features


class StateEmbedder:
    """Low-dimensional channels side by side, standardised; a dimension that never changed in the corpus keeps its unit."""

    def __init__(self, channels: tuple[str, ...], mean: NDArray[Any], deviation: NDArray[Any]) -> None:
        self.spec = {"features": "state", "channels": list(channels), "mean": mean.tolist(), "deviation": deviation.tolist()}
        self.size = len(mean)
        self._channels, self._mean, self._deviation = channels, mean, deviation

    def embed(self, episode: Episode, contract: RobotContract) -> NDArray[np.float32]:
        """See `Embedder`."""
        rows = _states(episode, self._channels)
        if rows.shape[1] != self.size:
            raise DatasetError(f"episode {episode.uuid}: channels {list(self._channels)} have {rows.shape[1]} numbers, valid: {self.size}")
        return ((rows - self._mean) / self._deviation).astype(np.float32)


class MixEmbedder:
    """Pictures and states side by side, states scaled so that both vary equally much in all."""

    def __init__(self, image: ImageEmbedder, state: StateEmbedder, scale: float) -> None:
        self.spec = {"features": "mix", "image": image.spec, "state": state.spec, "scale": scale}
        self.size = image.size + state.size
        self._image, self._state, self._scale = image, state, np.float32(scale)

    def embed(self, episode: Episode, contract: RobotContract) -> NDArray[np.float32]:
        """See `Embedder`."""
        return np.concatenate([self._image.embed(episode, contract), self._scale * self._state.embed(episode, contract)], axis=1)


def _fit_state(channels: tuple[str, ...], sample: Sequence[Episode]) -> StateEmbedder:
    rows = np.concatenate([_states(episode, channels) for episode in sample])
    deviation = rows.std(axis=0)
    return StateEmbedder(channels, rows.mean(axis=0), np.where(deviation > 1e-9, deviation, 1.0))


def _states(episode: Episode, channels: Sequence[str]) -> NDArray[np.float64]:
    steps = len(episode)
    return np.concatenate([np.asarray(_channel(episode, name)[:steps], np.float64).reshape(steps, -1) for name in channels], axis=1)


def _channel(episode: Episode, name: str) -> NDArray[Any]:
    if name not in episode.observations:
        raise DatasetError(f"episode {episode.uuid}: no channel {name!r}; found {sorted(episode.observations)}")
    return episode.observations[name]
