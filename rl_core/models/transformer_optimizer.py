"""AdamW with a linear warm-up to a constant rate, as transformers are trained."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from rl_core.models.optimizer import ClippedAdam


class WarmUpAdamW(ClippedAdam):
    """Minimises losses over one set of parameters.

    Args:
        parameters: what is optimised; gradients are clipped jointly.
        lr: learning rate after the warm-up.
        warm_up: steps over which the rate rises from 0 to `lr`.
        weight_decay: decoupled decay of the weights (arXiv 1711.05101).
        max_norm: global norm that gradients are clipped to; 0 means no clipping.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float, warm_up: int, weight_decay: float, max_norm: float) -> None:
        super().__init__(parameters, lr=lr, max_norm=max_norm)
        self.warm_up = warm_up
        self._adam = torch.optim.AdamW(self.parameters, lr=lr, weight_decay=weight_decay, fused=True)

    def minimize(self, loss: Tensor) -> Tensor:
        """See `ClippedAdam.minimize`."""
        self._adam.param_groups[0]["lr"] = self.lr * min(1.0, (self.count + 1) / max(self.warm_up, 1))
        return super().minimize(loss)
