"""What a language model sees of a picture: the tokens that enter the last block of a VLM's vision tower, as LLaVA takes them.

LLaVA (arXiv 2304.08485) reads the last block but one, whose patches still know their place; the last one works for the CLS alone.
Patches are averaged to a grid of `grid` x `grid`: a caption needs fewer than a VLM has, and attention over them is what answers cost.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.lmm.interface import Images
from robot_bridge.auxiliary.vlm.blocks import forward
from robot_bridge.auxiliary.vlm.feature_cache import FeatureCache, Features
from robot_bridge.auxiliary.vlm.interface import VLM

_BATCH = 32


class VisualTokens:
    """Tokens (n, 1 + grid^2, width) of pictures: the CLS, then the averaged patches in reading order. Worked out once a picture.

    Args:
        vlm: frozen; its patches form a square.
        grid: places along a side.
        folder: where they are kept; None keeps them in memory alone.
        most: pictures kept in memory; where there would be more all are forgotten (a camera's never come again).
    """

    def __init__(self, vlm: VLM, grid: int = 4, folder: Path | None = None, most: int = 1_000_000) -> None:
        self._vlm, self.grid, self._folder, self._most = vlm, grid, folder, most
        self.count = 1 + grid**2
        self.width = int(vlm.vision_blocks()[0].ln_1.weight.shape[0])  # type: ignore[attr-defined]  # a LayerNorm in every tower
        self._forget()

    def __call__(self, images: Images) -> Tensor:
        """See the class; float32."""
        if self._asked + len(images) > self._most:
            self._forget()
        self._asked += len(images)
        return torch.from_numpy(self._cache.features(images)["tokens"]).float()

    def _forget(self) -> None:
        self._asked = 0
        self._cache = FeatureCache(self._folder, f"visual tokens {self.grid} {self._vlm.identity}", self._encode)

    def _encode(self, images: Images) -> Features:
        pieces = []
        with torch.no_grad():
            for at in range(0, len(images), _BATCH):
                hidden = self._vlm.vision_tokens(self._vlm.preprocess(images[at : at + _BATCH]))
                for block in self._vlm.vision_blocks()[:-1]:
                    hidden = forward(block, hidden)
                side = round((hidden.shape[1] - 1) ** 0.5)
                patches = hidden[:, 1:].transpose(1, 2).unflatten(2, (side, side))
                averaged = F.adaptive_avg_pool2d(patches, self.grid).flatten(2).transpose(1, 2)
                pieces.append(torch.cat([hidden[:, :1], averaged], dim=1))
        return {"tokens": torch.cat(pieces).half().cpu().numpy().astype(np.float16)}
