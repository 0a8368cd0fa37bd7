"""Random crops of a picture: what Local-Prompt sorts into pictures of the object and pictures beside it."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

AREA = (0.08, 1.0)
"""Share of the picture that a crop covers (CoOp's augmentation)."""
RATIO = (3 / 4, 4 / 3)
"""Width over height."""


def random_crops(frame: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    """`count` crops, half of them mirrored, each resized to the picture's own size.

    They depend on the picture alone, so that their features are worked out once, whatever shots and seeds it is part of.

    Args:
        frame: (H, W, 3).
        count: how many.

    Returns:
        (count, H, W, 3).
    """
    seed = int.from_bytes(hashlib.sha256(np.ascontiguousarray(frame).tobytes()).digest()[:8], "little")
    generator = np.random.default_rng(seed)
    height, width = frame.shape[:2]
    image, crops = Image.fromarray(np.ascontiguousarray(frame)), []
    for _ in range(count):
        area = height * width * generator.uniform(*AREA)
        ratio = math.exp(generator.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        across, down = min(math.sqrt(area * ratio), width), min(math.sqrt(area / ratio), height)
        left, top = generator.uniform(0, width - across), generator.uniform(0, height - down)
        crop = image.resize((width, height), Image.Resampling.BILINEAR, (left, top, left + across, top + down))
        pixels = np.asarray(crop)
        crops.append(pixels[:, ::-1] if generator.random() < 0.5 else pixels)
    return np.stack(crops)
