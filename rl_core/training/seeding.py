"""Seeds: the one place that seeds Python, NumPy and torch, derives seeds from seeds, and captures every generator."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

_DERIVED_FROM = 2**30  # derived seeds lie in [2**30, 2**31): never a number that a person or an evaluation chooses, and still an int32


def derive_seed(seed: int, *path: int | str) -> int:
    """f(seed, k): an independent seed for the part `path` of a run, e.g. `derive_seed(seed, "episode", 7)`.

    The same on every machine and in every process (`numpy.random.SeedSequence`); in [2**30, 2**31).
    """
    keys = [part if isinstance(part, int) else int.from_bytes(hashlib.sha256(part.encode()).digest()[:4], "little") for part in path]
    word = int(np.random.SeedSequence(entropy=seed, spawn_key=tuple(keys)).generate_state(1, np.uint32)[0])
    return _DERIVED_FROM + word % _DERIVED_FROM


def seed_everything(seed: int) -> None:
    """Seeds the global generators of Python, NumPy and torch (all devices), each with its own derived seed."""
    random.seed(derive_seed(seed, "python"))
    np.random.seed(derive_seed(seed, "numpy"))
    torch.manual_seed(derive_seed(seed, "torch"))


def torch_generator(seed: int, *path: int | str, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator of its own for one part of a run."""
    return torch.Generator(device=device).manual_seed(derive_seed(seed, *path))


def numpy_generator(seed: int, *path: int | str) -> np.random.Generator:
    """A generator of its own for one part of a run."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *path)))


def capture_rng() -> dict[str, Any]:
    """State of every global generator, as tensors and plain values."""
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": {
            "name": str(name),
            "keys": np.asarray(keys),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached": float(cached),
        },
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_rng(state: Mapping[str, Any]) -> None:
    """Restores `capture_rng()`'s value."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    numpy_state = state["numpy"]
    np.random.set_state(
        (numpy_state["name"], numpy_state["keys"], numpy_state["position"], numpy_state["has_gauss"], numpy_state["cached"])
    )
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])


@contextmanager
def preserved_rng() -> Iterator[None]:
    """What runs inside leaves no trace in the global generators, so that evaluating never changes training."""
    state = capture_rng()
    try:
        yield
    finally:
        restore_rng(state)
