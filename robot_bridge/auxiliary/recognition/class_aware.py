"""Prompts whose context depends on the class, inside the text tower (TCP, arXiv 2311.18231; DeKg's second variant)."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from robot_bridge.auxiliary.vlm.blocks import QuickGELU
from robot_bridge.auxiliary.vlm.interface import VLM, BlockInput


class ClassAwareContext(nn.Module):
    """A network from a class's hand-written prompt vector to the tokens that replace its context at one text block.

        Linear(d, d / 4) - QuickGELU - Linear(d / 4, L * width), block 8 of 12 [code], at the same depth in other towers

    Args:
        vlm: whose text tower.
        n_ctx: L.
        generator: of the initial weights.
    """

    def __init__(self, vlm: VLM, n_ctx: int, generator: torch.Generator) -> None:
        super().__init__()
        hidden = max(vlm.embed_dim // 4, 1)
        self.n_ctx = n_ctx
        self.block = len(vlm.text_blocks()) * 8 // 12
        self.net = nn.Sequential(nn.Linear(vlm.embed_dim, hidden), QuickGELU(), nn.Linear(hidden, n_ctx * vlm.text_width))
        for layer in (self.net[0], self.net[2]):
            linear = cast(nn.Linear, layer)
            bound = linear.in_features**-0.5
            nn.init.uniform_(linear.weight, -bound, bound, generator=generator)
            nn.init.uniform_(linear.bias, -bound, bound, generator=generator)

    def block_input(self, frozen: Tensor) -> BlockInput:
        """What `VLM.encode_text_embeds` calls, for classes with hand-written prompt vectors (C, d) of length 1."""
        tokens = self.net(frozen).unflatten(-1, (self.n_ctx, -1))

        def replace(index: int, hidden: Tensor) -> Tensor:
            if index != self.block:
                return hidden
            return torch.cat((hidden[:, :1], tokens, hidden[:, 1 + self.n_ctx :]), dim=1)

        return replace
