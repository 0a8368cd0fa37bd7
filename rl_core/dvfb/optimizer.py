"""Adam without clipping: the norm over all gradients, which nothing here uses, would cost a tenth of an update."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


class PlainAdam:
    """Minimises losses over one set of parameters and touches no other.

    Args:
        parameters: those that require no gradient are left out.
        lr: learning rate.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float) -> None:
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._adam = torch.optim.Adam(self.parameters, lr=lr, fused=True)

    def minimize(self, loss: Tensor) -> None:
        """One step down `loss`; `.grad` of every other parameter stays as it was."""
        for parameter, gradient in zip(self.parameters, torch.autograd.grad(loss, self.parameters), strict=True):
            parameter.grad = gradient
        self._adam.step()
        for parameter in self.parameters:
            parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Moments and step counts."""
        return {"adam": self._adam.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self._adam.load_state_dict(state["adam"])
