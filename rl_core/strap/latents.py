"""Behavior Retrieval and FlowRetrieval: latents of a variational autoencoder, trained on the corpus, in which frames are compared.

Behavior Retrieval (arXiv 2304.08742) encodes state and action, FlowRetrieval (arXiv 2408.16944) the optical flow to the next frame.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.models import MLP
from rl_core.strap.corpus import demo_at, read_corpus_demo
from rl_core.strap.index import Index
from rl_core.strap.sdtw import RetrievalError
from rl_core.strap.search import InMemory

LATENT = 16
_HIDDEN, _BATCH, _UPDATES, _RATE = 256, 256, 2000, 1e-3
_KL = 1e-3
"""Weight of the divergence beside the mean squared error of standardised inputs."""
_FLOW_SIDE = 32

Describe = Callable[[Episode, RobotContract], NDArray[np.float32]]


def behaviour_latents(index: Index, target: Dataset, seed: int) -> tuple[InMemory, list[NDArray[np.float32]]]:
    """Latents of state and action of the corpus, and of each target demonstration; state: the low-dimensional channels of the target."""
    return _latents(index, target, seed, lambda episode, _: np.concatenate([_flat(episode, target.contract), episode.actions], axis=1))


def flow_latents(index: Index, target: Dataset, seed: int) -> tuple[InMemory, list[NDArray[np.float32]]]:
    """Latents of the optical flow in the target's first camera, of the corpus and of each target demonstration."""
    cameras = [channel.name for channel in target.contract.observation if channel.kind == "image"]
    if not cameras:
        raise RetrievalError(f"{target.source}: no pictures for optical flow; channels: {[c.name for c in target.contract.observation]}")
    return _latents(index, target, seed, lambda episode, _: optical_flow(np.asarray(episode.observations[cameras[0]])))


def optical_flow(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(T, 2 * 32 * 32) flow from each of the first T pictures (T + 1, H, W, C) to the next, in pixels of a 32 x 32 one (Farnebäck).

    Raises:
        RetrievalError: OpenCV is not installed.
    """
    try:
        import cv2
    except ImportError as error:
        raise RetrievalError(f"optical flow needs OpenCV ({error}): pip install 'armstack[cameras]'") from error
    grey = [cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) if frame.shape[-1] == 3 else frame[..., 0] for frame in frames]
    small = [cv2.resize(frame, (_FLOW_SIDE, _FLOW_SIDE), interpolation=cv2.INTER_AREA) for frame in grey]
    start: Any = None
    flows = [cv2.calcOpticalFlowFarneback(a, b, start, 0.5, 2, 9, 3, 5, 1.1, 0) for a, b in zip(small[:-1], small[1:], strict=True)]
    return np.stack(flows).reshape(len(flows), -1).astype(np.float32)


def _flat(episode: Episode, contract: RobotContract) -> NDArray[np.float32]:
    return episode.flat_observation(contract)[: len(episode)]


def _latents(index: Index, target: Dataset, seed: int, describe: Describe) -> tuple[InMemory, list[NDArray[np.float32]]]:
    rows = [describe(*read_corpus_demo(demo_at(Path(known.source), known.demo))) for known in index.trajectories]
    wanted = [describe(episode, target.contract) for episode in target.episodes]
    everything = np.concatenate(rows)
    mean, deviation = everything.mean(axis=0), everything.std(axis=0)
    deviation = np.where(deviation > 1e-6, deviation, 1.0)
    inputs = torch.from_numpy((everything - mean) / deviation)
    model = train_vae(inputs, seed, _UPDATES)
    with torch.no_grad():
        encoded = [model.encode(torch.from_numpy((each - mean) / deviation))[0].numpy() for each in (*rows, *wanted)]
    return InMemory(encoded[: len(rows)]), encoded[len(rows) :]


class VAE(nn.Module):
    """Gaussian encoder and decoder of vectors of `size` numbers."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = MLP(size, 2 * LATENT, (_HIDDEN, _HIDDEN), activation="relu", generator=generator)
        self.decoder = MLP(LATENT, size, (_HIDDEN, _HIDDEN), activation="relu", generator=generator)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance (n, LATENT) of q(z | x)."""
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return mean, log_variance


def train_vae(inputs: Tensor, seed: int, updates: int) -> VAE:
    """A VAE of the rows of `inputs`: mean squared error + 1e-3 KL(q(z | x) || N(0, 1))."""
    generator = torch.Generator().manual_seed(seed)
    model = VAE(inputs.shape[1], generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=_RATE)
    for _ in range(updates):
        x = inputs[torch.randint(len(inputs), (_BATCH,), generator=generator)]
        mean, log_variance = model.encode(x)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn(mean.shape, generator=generator)
        error = (model.decoder(z) - x).pow(2).mean()
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(dim=1).mean()
        optimizer.zero_grad()
        (error + _KL * divergence).backward()
        optimizer.step()
    return model
