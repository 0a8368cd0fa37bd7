"""TempMe: clips found by sentences (arXiv 2409.01156), its baselines, and the searcher that a camera's node runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.bundles import recogniser_bundle, recognition_of
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of, with_vlm
from robot_bridge.auxiliary.run_folder import RunFolder
from robot_bridge.auxiliary.unfinished import unfinished
from robot_bridge.auxiliary.video.clip_memory import ClipMemory
from robot_bridge.auxiliary.video.clips import ClipData
from robot_bridge.auxiliary.video.encoder import ClipEncoder
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.retrieval_figures import retrieval_figures
from robot_bridge.auxiliary.video.schedule import PLAIN, matched_per_frame, multiply_adds
from robot_bridge.auxiliary.video.tempme_config import TempMeConfig
from robot_bridge.auxiliary.video.training import Say, clip_tokens, encode_clips, train_encoder
from robot_bridge.auxiliary.vlm.backbone import Backbone
from robot_bridge.auxiliary.vlm.interface import VLM, VLMError
from robot_bridge.auxiliary.vlm.towers import Towers

_WATCHED = 16
"""Sentences of the training data that a camera's frames are scored on where none are named."""
_TIMED, _QUOTED = 8, 60


class ClipSearcher:
    """Follows `stamped.StampedRecogniser`. Its classes are sentences; a frame's scores are their cosines with the clip that it ends.

    Args:
        vlm: under the encoder.
        encoder: of clips and sentences.
        config: how many frames and clips are remembered.
        classes: sentences.
    """

    def __init__(self, vlm: VLM, encoder: ClipEncoder, config: TempMeConfig, classes: Sequence[str]) -> None:
        self.vlm, self.encoder, self.config = vlm, encoder.eval(), config
        self.memory = ClipMemory(self._vector, frames=config.frames, fps=config.fps, capacity=config.remembered)
        self._last: tuple[bytes, Tensor] = (b"", torch.zeros(0))
        self.set_vocabulary(list(classes))

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`."""
        clips = [torch.stack([*self.memory.window(), tokens]) for tokens in self._tokens(frames)]
        vectors = np.stack([self._vector(clip) for clip in clips])
        return Prediction(scores=(vectors @ self._texts.T).astype(np.float32))

    def remember(self, frames: NDArray[np.uint8], prediction: Prediction) -> None:
        """See `protocols.AdaptiveRecogniser`; the time is now."""
        self.remember_at(time.time_ns(), frames, prediction)

    def remember_at(self, stamp_ns: int, frames: NDArray[np.uint8], prediction: Prediction) -> None:
        """See `stamped.StampedRecogniser`."""
        for tokens in self._tokens(frames):
            self.memory.add(stamp_ns, tokens)

    def find(self, text: str, top: int = 5) -> list[dict[str, Any]]:
        """When what the text says was seen: `start` and `end`, stamps in ns, and `score`, a cosine; best first.

        Raises:
            VideoError: `top` below 1.
            VLMError: a text that cannot be read.
        """
        if top < 1:
            raise VideoError(f"top: {top}, valid: 1 or more")
        found = self.memory.find(self.text_vector(text), top)
        return [{"start": clip.start_ns, "end": clip.end_ns, "score": score} for clip, score in found]

    def set_vocabulary(self, names: Sequence[str]) -> dict[str, Any]:
        """Scores other sentences from now on; gives `classes`."""
        self._texts = np.stack([self.text_vector(name) for name in names])
        self._classes = tuple(names)
        return {"classes": list(names)}

    def reset(self) -> dict[str, Any]:
        """Forgets what was seen; gives `clips`, 0."""
        self.memory.clear()
        return {"clips": len(self.memory)}

    def unknown_words(self, texts: Sequence[str]) -> list[str]:
        """See `requests.Reader`; of a CLIP, which knows all words, none."""
        words = getattr(self.vlm, "words", None)
        return [] if words is None else words.unknown(texts)

    def text_vector(self, text: str) -> NDArray[np.float32]:
        """Unit vector (d,) of a sentence.

        Raises:
            VLMError: a sentence that is too long; quotes how it begins.
        """
        try:
            with torch.no_grad():
                return self.encoder.encode_text([text])[0].numpy()
        except VLMError as error:
            begins = text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."
            raise VLMError(str(error).replace(repr(text), repr(begins))) from error

    def clip_vector(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Unit vector (d,) of a clip (F, H, W, 3)."""
        with torch.no_grad():
            return self._vector(self.vlm.vision_tokens(self.vlm.preprocess(frames)))

    def _vector(self, tokens: Tensor) -> NDArray[np.float32]:
        with torch.no_grad():
            return self.encoder.encode_tokens(tokens[None])[0].numpy()

    def _tokens(self, frames: NDArray[np.uint8]) -> Tensor:
        """Of the frames; those of the last call are kept, because a frame is judged and then remembered."""
        key = np.ascontiguousarray(frames).tobytes()
        if key != self._last[0]:
            with torch.no_grad():
                self._last = (key, self.vlm.vision_tokens(self.vlm.preprocess(frames)))
        return self._last[1]


def train(data: ClipData, config: TempMeConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """TempMe itself. Whole epochs are kept in `unfinished(run_dir)`; a run that is started again goes on there.

    Raises:
        VideoError: clips of more frames than the configuration has, or fewer clips than two.
        VLMError: no VLM.
        ArmstackError: the folder holds an unfinished run of other settings or data; says which.
    """
    return _train("tempme", data, config, run_dir, seed=seed, say=say)


def train_plain(data: ClipData, config: TempMeConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """The same adapters without merging: every frame for itself, vectors averaged."""
    return _train("video-lora", data, config.override(schedule=PLAIN.to_dict()), run_dir, seed=seed, say=say)


def train_inside(data: ClipData, config: TempMeConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """Merging inside frames alone (ToMe), at the multiply-adds of the configured schedule or a little more."""
    encoder = ClipEncoder(_towers(vlm_at(config.vlm)), config.schedule, frames=config.frames, rank=config.rank)
    sizes = {"blocks": len(encoder.towers.vision), "frames": encoder.frames, "tokens": _tokens_of(encoder, data)}
    budget = multiply_adds(encoder.plans(encoder.frames, sizes["tokens"]), encoder.width)
    inside = PLAIN.override(per_frame=matched_per_frame(budget, width=encoder.width, **sizes))
    return _train("video-tome", data, config.override(schedule=inside.to_dict()), run_dir, seed=seed, say=say)


def train_nothing(data: ClipData, config: TempMeConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """The model as it is, vectors of frames averaged; nothing is trained."""
    return _train("video-zero-shot", data, config.override(schedule=PLAIN.to_dict(), epochs=0), run_dir, seed=seed, say=say)


def load(bundle: Bundle, backbone: Backbone | None = None) -> ClipSearcher:
    """The searcher of a bundle, which has seen nothing yet."""
    recognition = recognition_of(bundle)
    config, vlm = recognition.config(TempMeConfig), vlm_of(bundle, backbone)
    encoder = ClipEncoder(_towers(vlm), config.schedule, frames=config.frames, rank=config.rank)
    encoder.load_state_dict({name: bundle.weights[name] for name in encoder.state_dict()})
    return ClipSearcher(vlm, encoder, config, recognition.classes)


def evaluate(loaded: ClipSearcher, data: ClipData) -> dict[str, float]:
    """Figures of `retrieval_figures`; `multiply_adds` of the vision tower a clip, and `ms_per_clip`, backbone not counted."""
    if data.frames.shape[1] > loaded.encoder.frames:
        raise VideoError(f"clips of {data.frames.shape[1]} frames; this bundle takes 1..{loaded.encoder.frames}")
    clips = clip_tokens(loaded.vlm, data, None)
    with torch.no_grad():
        texts = loaded.encoder.encode_text([said[0] for said in data.sentences])
    figures = retrieval_figures((texts @ encode_clips(loaded.encoder, clips).T).numpy(), data)
    timed = replace(clips, tokens=clips.tokens[:_TIMED], mask=clips.mask[:_TIMED])
    begun = time.perf_counter()
    encode_clips(loaded.encoder, timed)
    spent = 1000 * (time.perf_counter() - begun) / len(timed)
    frames = loaded.encoder.schedule.padded(data.frames.shape[1])
    cost = multiply_adds(loaded.encoder.plans(frames, clips.tokens.shape[2]), loaded.encoder.width)
    return {**figures, "multiply_adds": float(cost), "ms_per_clip": spent}


def _train(method: str, data: ClipData, config: TempMeConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    if data.frames.shape[1] > config.frames:
        raise VideoError(f"clips of {data.frames.shape[1]} frames; valid: --config.frames of so many, or clips of at most {config.frames}")
    vlm = vlm_at(config.vlm)
    torch.manual_seed(seed)
    encoder = ClipEncoder(_towers(vlm), config.schedule, frames=config.frames, rank=config.rank)
    facts = {"method": method, "config": config.to_dict(), "seed": seed, "data": data.fingerprint(), "model": vlm.identity}
    RunFolder(unfinished(run_dir), facts)
    loss = 0.0
    if config.epochs:
        tokens, store = clip_tokens(vlm, data, run_dir / "tokens", say), CheckpointStore(unfinished(run_dir))
        loss = train_encoder(encoder, tokens, data, config, seed=seed, say=say, store=store)
    bundle = recogniser_bundle(
        method,
        config,
        {name: values.detach() for name, values in encoder.state_dict().items()},
        classes=config.watch or _frequent(data),
        data_fingerprint=data.fingerprint(),
        metrics={"loss": loss, "trained": float(sum(values.numel() for values in encoder.parameters()))},
    )
    return with_vlm(bundle, vlm, config.vlm)


def _frequent(data: ClipData) -> tuple[str, ...]:
    counted = Counter(said[0] for said in data.sentences)
    return tuple(sentence for sentence, _ in counted.most_common(_WATCHED))


def _towers(vlm: VLM) -> Towers:
    if not isinstance(vlm, Towers):
        raise VideoError(f"vlm of type {type(vlm).__name__}; valid: one built on `robot_bridge.auxiliary.vlm.towers.Towers`")
    return vlm


def _tokens_of(encoder: ClipEncoder, data: ClipData) -> int:
    frozen: Any = encoder.towers.frozen
    with torch.no_grad():
        return int(frozen.vision_tokens(frozen.preprocess(data.frames[0, :1])).shape[1])
