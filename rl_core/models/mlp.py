"""Multi-layer perceptron."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.models.mish import mish

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    "mish": mish,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "silu": F.silu,
    "elu": F.elu,
}


def activation_by_name(name: str) -> Activation:
    """The activation called `name`.

    Raises:
        ValueError: no such activation; lists those there are.
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r}, valid: {sorted(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def initialize_linear(weight: Tensor, bias: Tensor, *, fan_in: int, fan_out: int, xavier: bool, generator: torch.Generator | None) -> None:
    """Fills a layer in place: Xavier-uniform weights and zero bias, or PyTorch's default U(-1/sqrt(fan_in), 1/sqrt(fan_in)) for both.

    A stack of layers (H, ...) gets independent draws, which is where an ensemble's diversity comes from.
    """
    bound = math.sqrt(6.0 / (fan_in + fan_out)) if xavier else 1.0 / math.sqrt(fan_in)
    with torch.no_grad():
        weight.uniform_(-bound, bound, generator=generator)
        if xavier:
            bias.zero_()
        else:
            bias.uniform_(-bound, bound, generator=generator)


class MLP(nn.Module):
    """Linear layers with an activation between them and a linear output.

    Args:
        inputs: size of the input's last dimension.
        outputs: size of the output's last dimension.
        hidden: widths of the hidden layers.
        activation: a key of `ACTIVATIONS`.
        xavier: Xavier-uniform weights with zero bias instead of PyTorch's default.
        generator: source of the initial weights; the global one if None.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden: Sequence[int],
        *,
        activation: str = "mish",
        xavier: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = (inputs, *hidden, outputs)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True))
        self.activation = activation_by_name(activation)
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            initialize_linear(
                layer.weight, layer.bias, fan_in=layer.in_features, fan_out=layer.out_features, xavier=xavier, generator=generator
            )

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)
