"""Layers on complex tokens (..., d): linear, depth-wise convolution, normalisation and GELU.

A product with complex weights is (Wr xr - Wi xi) + j (Wr xi + Wi xr), worked out as one real product of twice the size. Normalisation and
GELU act on real and imaginary part separately: neither is defined on complex numbers in a way that keeps the phase's meaning.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_SMALL = 1e-8


def as_real(x: Tensor) -> Tensor:
    """(..., d) complex as (..., 2 d) real: re, im, re, im, ..."""
    return torch.view_as_real(x).flatten(-2)


def as_complex(x: Tensor) -> Tensor:
    """`as_real`'s inverse."""
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())


def with_amplitude(x: Tensor) -> Tensor:
    """(..., d) complex as (..., 3 d) real: `as_real`, and how large each is.

    Fading turns the phase of a range bin at random; its amplitude says whether something is there.
    """
    size = torch.sqrt(x.real.square() + x.imag.square() + _SMALL)  # not abs(): its gradient is NaN near 0
    return torch.cat([as_real(x), size], dim=-1)


class ComplexLinear(nn.Module):
    """A complex 1 x 1 convolution over channels.

    Args:
        inputs: channels.
        outputs: channels.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, 2) / math.sqrt(2 * inputs))
        self.bias = nn.Parameter(torch.zeros(outputs, 2))

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) complex -> (..., outputs)."""
        real, imaginary = self.weight.unbind(-1)
        rows = torch.stack([torch.stack([real, -imaginary], dim=-1), torch.stack([imaginary, real], dim=-1)], dim=1)
        return as_complex(F.linear(as_real(x), rows.flatten(2).flatten(0, 1), self.bias.flatten()))


class ComplexDepthwise(nn.Module):
    """A complex 3 x 3 convolution over antennas and frequencies, each channel for itself.

    Args:
        width: channels.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, 3, 3, 2) / math.sqrt(18))
        self._width = width

    def forward(self, x: Tensor) -> Tensor:
        """(..., antennas, frequencies, width) complex -> the same."""
        real, imaginary = self.weight.unbind(-1)
        rows = torch.stack([torch.stack([real, -imaginary], dim=1), torch.stack([imaginary, real], dim=1)], dim=1)
        planes = as_real(x).flatten(0, -4).permute(0, 3, 1, 2)
        found = F.conv2d(planes, rows.flatten(0, 1), padding=1, groups=self._width)
        return as_complex(found.permute(0, 2, 3, 1).unflatten(0, x.shape[:-3]))


class ComplexLayerNorm(nn.Module):
    """LayerNorm of real and imaginary part, each with its own scale and shift.

    Args:
        width: channels.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.real, self.imaginary = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) complex -> the same."""
        return torch.complex(self.real(x.real), self.imaginary(x.imag))


def complex_gelu(x: Tensor) -> Tensor:
    """GELU of real and imaginary part."""
    return torch.view_as_complex(F.gelu(torch.view_as_real(x)))


def complex_silu(x: Tensor) -> Tensor:
    """SiLU of real and imaginary part."""
    return torch.view_as_complex(F.silu(torch.view_as_real(x)))


class PatchMerging(nn.Module):
    """Neighbouring tokens of a frame become one, through a complex linear layer: patch embedding and down-sampling.

    Args:
        patch: antennas and frequencies that are taken together.
        inputs: channels of a token.
        outputs: channels of the new one.
    """

    def __init__(self, patch: tuple[int, int], inputs: int, outputs: int) -> None:
        super().__init__()
        self._patch = patch
        self.linear = ComplexLinear(inputs * math.prod(patch), outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, antennas, frequencies, inputs) -> (B, T, antennas / p0, frequencies / p1, outputs)."""
        split = x.unflatten(3, (-1, self._patch[1])).unflatten(2, (-1, self._patch[0]))  # (B, T, A', p0, F', p1, c)
        return self.linear(split.permute(0, 1, 2, 4, 3, 5, 6).flatten(4))
