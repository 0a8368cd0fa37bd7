"""LoRA (arXiv 2106.09685): every linear layer of a language model gets a low-rank correction, and nothing else of it is trained.

y = W x + (alpha / r) B A x,    B = 0 at first, so that the model begins as it was
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from robot_bridge.auxiliary.lmm.interface import LMMError


class LoRALinear(nn.Module):
    """See the module.

    Args:
        frozen: W; gets no gradients any more.
        r: rank.
        alpha: scale times r.
    """

    def __init__(self, frozen: nn.Linear, r: int, alpha: float) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.scale = alpha / r
        self.down = nn.Parameter(torch.empty(r, frozen.in_features))
        self.up = nn.Parameter(torch.zeros(frozen.out_features, r))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return self.frozen(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


def add_lora(model: nn.Module, r: int, alpha: float, *, leave: tuple[str, ...] = ("lm_head",)) -> dict[str, nn.Parameter]:
    """Puts a correction on every linear layer of `model` and freezes all else.

    Args:
        model: changed in place.
        r: rank, at least 1.
        alpha: scale times r.
        leave: names of layers without one.

    Returns:
        The trained parameters by name.

    Raises:
        LMMError: a rank below 1, or a model without linear layers.
    """
    if r < 1:
        raise LMMError(f"LoRA of rank {r}; valid: 1 or more")
    model.requires_grad_(False)
    found = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.Linear) and name.split(".")[-1] not in leave]
    if not found:
        raise LMMError(f"LoRA on {type(model).__name__}: it has no linear layers")
    trained: dict[str, nn.Parameter] = {}
    for name, layer in found:
        parent, _, own = name.rpartition(".")
        corrected = LoRALinear(layer, r, alpha)
        setattr(model.get_submodule(parent), own, corrected)
        trained |= {f"{name}.down": corrected.down, f"{name}.up": corrected.up}
    return trained
