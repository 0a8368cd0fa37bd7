"""Ensemble of MLPs evaluated as batched matrix products."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rl_core.models.mlp import activation_by_name, initialize_linear


class EnsembleMLP(nn.Module):
    """H independent MLPs with stacked weights: layer k holds `weights[k]` (H, in, out) and `biases[k]` (H, 1, out).

    Args:
        inputs: size of the input; the sum over its parts.
        outputs: size of the output.
        hidden: widths of the hidden layers.
        heads: H. Heads are initialised independently.
        activation, xavier, generator: as in `MLP`.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden: Sequence[int],
        *,
        heads: int,
        activation: str = "mish",
        xavier: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = (inputs, *hidden, outputs)
        self.heads = heads
        self.activation = activation_by_name(activation)
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(heads, a, b)) for a, b in zip(sizes[:-1], sizes[1:], strict=True))
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(heads, 1, b)) for b in sizes[1:])
        for weight, bias in zip(self.weights, self.biases, strict=True):
            initialize_linear(weight, bias, fan_in=weight.shape[1], fan_out=weight.shape[2], xavier=xavier, generator=generator)

    def forward(self, *parts: Tensor) -> Tensor:
        """Input parts (..., d_i) with sum of d_i = inputs -> (H, ..., outputs).

        Parts broadcast against each other, so that a state (B, 1, S) shared by N actions (B, N, A) is multiplied only once.
        """
        hidden: Tensor | None = None
        start = 0
        for part in parts:
            rows = self.weights[0][:, start : start + part.shape[-1]]
            start += part.shape[-1]
            flat = part.reshape(1, -1, part.shape[-1]).expand(self.heads, -1, -1)
            product = torch.baddbmm(self.biases[0], flat, rows) if hidden is None else torch.bmm(flat, rows)
            product = product.view(self.heads, *part.shape[:-1], -1)
            hidden = product if hidden is None else hidden + product
        if hidden is None or start != self.weights[0].shape[1]:
            raise ValueError(f"input parts {[tuple(p.shape) for p in parts]} have {start} values, valid: {self.weights[0].shape[1]}")
        batch = hidden.shape[1:-1]
        hidden = hidden.reshape(self.heads, -1, hidden.shape[-1])
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = torch.baddbmm(bias, self.activation(hidden), weight)
        return hidden.view(self.heads, *batch, -1)
