"""Other views of a picture for fine-tuning: cut a little, mirrored, lighter or darker (the paper augments strongly)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rl_core.training.seeding import numpy_generator

_LEAST_SHARE = 0.8
_CONTRAST = (0.7, 1.3)


def views(frames: NDArray[np.uint8], count: int, seed: int) -> NDArray[np.uint8]:
    """(n, 1 + count, H, W, 3): each picture as it is, then `count` other views of it."""
    generator = numpy_generator(seed, "views")
    return np.stack([np.stack([frame, *(_changed(frame, generator) for _ in range(count))]) for frame in frames])


def _changed(frame: NDArray[np.uint8], generator: np.random.Generator) -> NDArray[np.uint8]:
    height, width = frame.shape[:2]
    share = generator.uniform(_LEAST_SHARE, 1.0)
    top, left = generator.uniform(0, (1 - share) * height), generator.uniform(0, (1 - share) * width)
    box = (left, top, left + share * width, top + share * height)
    seen = np.asarray(Image.fromarray(frame).resize((width, height), Image.Resampling.BILINEAR, box=box), np.float64)
    if generator.random() < 0.5:
        seen = seen[:, ::-1]
    seen = (seen - seen.mean()) * generator.uniform(*_CONTRAST) + seen.mean() * generator.uniform(*_CONTRAST)
    return np.clip(np.round(seen), 0, 255).astype(np.uint8)
