"""Adam with global-norm clipping and an optional cosine decay to zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


def cosine_decay(step: int, total: int) -> float:
    """Factor on the learning rate: 1 at step 0, 0 from step `total` on (SGDR without restarts, arXiv 1608.03983 eq. 5)."""
    return 0.5 * (1.0 + math.cos(math.pi * min(step, total) / total))


class ClippedAdam:
    """Minimises losses over one set of parameters and touches no other.

    Args:
        parameters: what is optimised; stacked heads count as one set, so their gradients are clipped jointly.
        lr: learning rate of the first step.
        decay_steps: steps of the cosine decay to 0; 0 keeps the rate constant.
        max_norm: global norm that gradients are clipped to; 0 means no clipping.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float, decay_steps: int = 0, max_norm: float = 1.0) -> None:
        self.parameters = list(parameters)
        self.lr = lr
        self.decay_steps = decay_steps
        self.max_norm = max_norm
        self.count = 0
        self._adam = torch.optim.Adam(self.parameters, lr=lr, fused=True)

    def minimize(self, loss: Tensor) -> Tensor:
        """One step down `loss`; returns the gradients' norm before clipping, a 0-d tensor.

        Only gradients of this optimiser's parameters are computed; `.grad` of every other parameter stays as it was.
        """
        for parameter, gradient in zip(self.parameters, torch.autograd.grad(loss, self.parameters), strict=True):
            parameter.grad = gradient
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.max_norm or math.inf, foreach=True)
        if self.decay_steps:
            self._adam.param_groups[0]["lr"] = self.lr * cosine_decay(self.count, self.decay_steps)
        self._adam.step()
        for parameter in self.parameters:
            parameter.grad = None
        self.count += 1
        return norm

    def state_dict(self) -> dict[str, Any]:
        """Moments and step count."""
        return {"adam": self._adam.state_dict(), "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self._adam.load_state_dict(state["adam"])
        self.count = int(state["count"])
