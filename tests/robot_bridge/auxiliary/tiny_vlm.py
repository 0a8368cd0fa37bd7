"""A SmallVLM of a few thousand weights over a backbone of average colours, untrained, and features that lie beside its texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.vlm.small import SmallVLM, SmallVLMConfig

CLASSES = ("mug", "bowl", "gear", "ring", "bottle", "lemon")
_WORDS = "a photo of with the red green blue yellow black white small large round tall metal plastic".split()
_NOUNS = "apple ball banana bell book box brick button can card chain clock coin cup disc fork hammer hook kettle key knife lamp".split()


class AverageColours:
    """4 x 4 average colours, with their squares and products, as 8 channels."""

    identity = "average colours"
    channels = 8
    grid = 4

    def preprocess(self, rgb: NDArray[np.uint8]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(rgb)).permute(0, 3, 1, 2).float() / 255

    def maps(self, x: torch.Tensor) -> torch.Tensor:
        colours = F.adaptive_avg_pool2d(x, 4)
        red, green, blue = colours.unbind(1)
        return torch.cat((colours, torch.stack((red * green, green * blue, red * blue, red**2, blue**2), dim=1)), dim=1)


def tiny_vlm(words: Sequence[str] = ()) -> SmallVLM:
    """Frozen; equal in every call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sizes = SmallVLMConfig(width=24, blocks=2, heads=2, text_width=32, text_blocks=3, text_heads=2, embed_dim=32, context_length=12)
        vocabulary = [*CLASSES, *_WORDS, *_NOUNS, *words, ".", ","]
        vlm = SmallVLM(sizes, vocabulary, AverageColours())
        # Untrained, all texts are alike, and all pictures: what EOT and CLS are themselves outweighs what they read.
        torch.nn.init.normal_(vlm.words_embedding.weight, std=1.0)
        with torch.no_grad():
            vlm.words_embedding.weight[-1] *= 0.1
            vlm.cls *= 0.1
            for block in (*vlm.text, *vlm.vision):
                block.to_qkv.weight *= 4
                block.proj.weight *= 4
        vlm.freeze()
    return vlm


def text_features(vlm: SmallVLM, count: int, noise: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Features (count, d) that lie `noise` beside the text of their class, and labels (count,); classes in turn."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        texts = F.normalize(vlm.encode_text([f"a photo of a {name}." for name in CLASSES]), dim=-1)
    labels = torch.arange(count) % len(CLASSES)
    return texts[labels] + noise * torch.randn(count, texts.shape[1], generator=generator) / texts.shape[1] ** 0.5, labels


def coloured_parts(each: int = 6, side: int = 24, seed: int = 0) -> ImageData:
    """Pictures (6 classes) of a square in the class's colour, at random places; every picture is an object of its own."""
    generator = np.random.default_rng(seed)
    colours = np.array([[230, 30, 30], [30, 220, 30], [40, 40, 230], [220, 220, 30], [30, 210, 210], [210, 40, 210]])
    labels = np.repeat(np.arange(len(CLASSES)), each)
    frames = generator.integers(90, 130, (len(labels), side, side, 3))
    for frame, label in zip(frames, labels, strict=True):
        top, left = generator.integers(0, side // 3, 2)
        frame[top : top + side // 2, left : left + side // 2] = np.clip(colours[label] + generator.integers(-25, 25, 3), 0, 255)
    return ImageData(
        frames=frames.astype(np.uint8), labels=labels.astype(np.int64), classes=CLASSES, instances=np.arange(len(labels), dtype=np.int64)
    )
