"""AdamW with a linear warm-up to a constant rate and global-norm clipping, as transformers are trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


class WarmUpAdamW:
    """Minimises losses over one set of parameters.

    Args:
        parameters: what is optimised; gradients are clipped jointly.
        lr: learning rate after the warm-up.
        warm_up: steps over which the rate rises from 0 to `lr`.
        weight_decay: decoupled decay of the weights (arXiv 1711.05101).
        max_norm: global norm that gradients are clipped to; 0 means no clipping.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float, warm_up: int, weight_decay: float, max_norm: float) -> None:
        self.parameters = list(parameters)
        self.lr, self.warm_up, self.max_norm = lr, warm_up, max_norm
        self.count = 0
        self._adam = torch.optim.AdamW(self.parameters, lr=lr, weight_decay=weight_decay, fused=True)

    def minimize(self, loss: Tensor) -> Tensor:
        """One step down `loss`; returns the gradients' norm before clipping, a 0-d tensor."""
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.max_norm or math.inf, foreach=True)
        self._adam.param_groups[0]["lr"] = self.lr * min(1.0, (self.count + 1) / max(self.warm_up, 1))
        self._adam.step()
        self.count += 1
        return norm

    def state_dict(self) -> dict[str, Any]:
        """Moments and step count."""
        return {"adam": self._adam.state_dict(), "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self._adam.load_state_dict(state["adam"])
        self.count = int(state["count"])
