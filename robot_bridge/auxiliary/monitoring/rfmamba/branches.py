"""The two branches of an RF-SSM block: which frequencies tell something, and what a body does in space and time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.rfmamba.complex_layers import (
    ComplexDepthwise,
    ComplexLinear,
    as_complex,
    complex_gelu,
    with_amplitude,
)
from robot_bridge.auxiliary.monitoring.rfmamba.omni_scan import OmniScan, Scan

Grid = tuple[int, int, int]


class MambaUnit(nn.Module):
    """Linear -> depth-wise convolution -> SiLU -> scan -> LayerNorm, on real tokens.

    Args:
        grid: frames, antennas, frequencies (or range bins) of the tokens.
        width: channels.
        states: N of the scan.
        current: frame at which the scans in time meet.
        scan: see `OmniScan`.
    """

    def __init__(self, grid: Grid, width: int, states: int, *, current: int, scan: Scan) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.scan = OmniScan(grid, width, states, current=current, scan=scan)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, antennas, frequencies, width) -> the same."""
        planes = F.silu(self.depthwise(self.linear(x).flatten(0, 1).permute(0, 3, 1, 2)))
        tokens = planes.unflatten(0, x.shape[:2]).permute(1, 3, 4, 0, 2).flatten(0, 2)  # (T antennas frequencies, B, width)
        return self.norm(self.scan(tokens)).unflatten(0, x.shape[1:4]).movedim(3, 0)


class FrequencyBranch(nn.Module):
    """Real and imaginary part through a Mamba unit each, put together as X' = Linear(R') + j Linear(I'), then the FA-FFN.

    FA-FFN: complex 1 x 1 -> times W, a complex filter a frequency and channel -> complex depth-wise convolution q -> GELU(q) q ->
    complex 1 x 1. W is the adaptive frequency selection.

    Args:
        grid: as of `MambaUnit`, as are width, states, current and scan.
        select: False leaves W out.
    """

    def __init__(self, grid: Grid, width: int, states: int, *, current: int, scan: Scan, select: bool = True) -> None:
        super().__init__()
        self.real = MambaUnit(grid, width, states, current=current, scan=scan)
        self.imaginary = MambaUnit(grid, width, states, current=current, scan=scan)
        self.summary_real, self.summary_imaginary = nn.Linear(width, width), nn.Linear(width, width)
        self.widen, self.narrow = ComplexLinear(width, width), ComplexLinear(width, width)
        self.selection = nn.Parameter(torch.stack([torch.ones(grid[2], width), torch.zeros(grid[2], width)], dim=-1)) if select else None
        self.depthwise = ComplexDepthwise(width)

    def forward(self, z: Tensor) -> Tensor:
        """(B, T, antennas, frequencies, width) complex -> the same."""
        x = torch.complex(self.summary_real(self.real(z.real)), self.summary_imaginary(self.imaginary(z.imag)))
        x = self.widen(x)
        if self.selection is not None:
            x = x * torch.view_as_complex(self.selection)
        q = self.depthwise(x)
        return self.narrow(complex_gelu(q) * q)


class SpatioTemporalBranch(nn.Module):
    """A fixed inverse FFT over frequency and a learnt 1 x 1 of its parts and amplitude (the range profile), Mamba and FFN with
    residuals, then a learnt 1 x 1 and the FFT back.

    It supplies what specular reflection hides: a limb that returns nothing in one frame does in another.

    Args:
        grid: as of `MambaUnit`, as are width, states, current and scan.
    """

    def __init__(self, grid: Grid, width: int, states: int, *, current: int, scan: Scan) -> None:
        super().__init__()
        self.into_space, self.back = nn.Linear(3 * width, width), nn.Linear(width, 2 * width)
        self.mamba_norm, self.ffn_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mamba = MambaUnit(grid, width, states, current=current, scan=scan)
        self.ffn = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, z: Tensor) -> Tensor:
        """(B, T, antennas, frequencies, width) complex -> the same."""
        u = self.into_space(with_amplitude(torch.fft.ifft(z, dim=3, norm="ortho")))
        u = u + self.mamba(self.mamba_norm(u))
        u = u + self.ffn(self.ffn_norm(u))
        return torch.fft.fft(as_complex(self.back(u)), dim=3, norm="ortho")
