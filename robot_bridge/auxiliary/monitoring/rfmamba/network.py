"""RFMamba: complex echoes -> patch embedding -> two stages of down-sampling and an RF-SSM block -> heads (Zhang et al., ICLR 2025).

    z = LayerNorm(x),   out = x + Conv1x1(concat(F(z) SiLU(z), S(z) SiLU(z)))       F, S: `branches`

The official code is not public; this follows the paper's figures, and RadarFormer's public code for the heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rl_core.training.config import ConfigError
from robot_bridge.auxiliary.monitoring.rfmamba.branches import FrequencyBranch, Grid, SpatioTemporalBranch
from robot_bridge.auxiliary.monitoring.rfmamba.complex_layers import (
    ComplexLayerNorm,
    ComplexLinear,
    PatchMerging,
    complex_silu,
    with_amplitude,
)
from robot_bridge.auxiliary.monitoring.rfmamba.config import NetworkConfig
from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS


@dataclass(frozen=True, kw_only=True, eq=False)
class Outputs:
    """Of B windows: `joints` (B, 14, 3) metres, `activity` (B, classes) logits, `body` (B, antennas, range bins) logits."""

    joints: Tensor
    activity: Tensor
    body: Tensor


class RFSSMBlock(nn.Module):
    """See the module.

    Args:
        grid: frames, antennas, frequencies of the tokens.
        width: complex channels.
        config: what is in it.
        current: frame at which the scans in time meet.
    """

    def __init__(self, grid: Grid, width: int, config: NetworkConfig, current: int) -> None:
        super().__init__()
        self.norm = ComplexLayerNorm(width)
        branches: dict[str, nn.Module] = {}
        if config.frequency_branch:
            branches["frequency"] = FrequencyBranch(grid, width, config.states, current=current, scan=config.scan, select=config.selection)
        if config.spatiotemporal_branch:
            branches["spatiotemporal"] = SpatioTemporalBranch(grid, width, config.states, current=current, scan=config.scan)
        self.branches = nn.ModuleDict(branches)
        self.out = ComplexLinear(len(branches) * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, antennas, frequencies, width) complex -> the same."""
        z = self.norm(x)
        gate = complex_silu(z)
        return x + self.out(torch.cat([branch(z) * gate for branch in self.branches.values()], dim=-1))


class RFMambaTrunk(nn.Module):
    """Echoes to tokens of the last stage.

    Args:
        shape: (T, antennas, F) of an echo window, antennas = pairs of transmitter and receiver.
        config: of the network.
        current: frame that the answer is about.

    Raises:
        ConfigError: a window that does not divide into patches.
    """

    def __init__(self, shape: Grid, config: NetworkConfig, current: int) -> None:
        super().__init__()
        frames, antennas, frequencies = token_grid(shape, config, stages=0)
        self.embedding = PatchMerging(config.patch, 1, config.embedding)
        self.position = nn.Parameter(0.02 * torch.randn(antennas, frequencies, config.embedding, 2))
        self.stages = nn.ModuleList()
        narrow = config.embedding
        for stage, width in enumerate(config.widths, start=1):
            grid = token_grid(shape, config, stages=stage)
            merging = PatchMerging(config.merge, narrow, width)
            self.stages.append(nn.Sequential(ComplexLayerNorm(narrow), merging, RFSSMBlock(grid, width, config, current)))
            narrow = width
        self._current = current

    def forward(self, echoes: Tensor) -> Tensor:
        """(B, T, antennas, F) complex -> the current frame's tokens (B, antennas', F', width)."""
        x = self.embedding(echoes[..., None]) + torch.view_as_complex(self.position)
        for stage in self.stages:
            x = stage(x)
        return x[:, self._current]


class PoseHeads(nn.Module):
    """Heads whose joints are those of a mean pose (14, 3), and what is added to them."""

    mean_pose: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean_pose", torch.zeros(len(JOINTS), 3))


class Heads(PoseHeads):
    """Pose, activity and segmentation from the current frame's tokens, taken to range bins by an inverse FFT, with their amplitudes.

    Args:
        tokens: (antennas', F', complex channels) of the trunk.
        patch: antennas and range bins that a token answers for.
        activities: how many.
        hidden: units of the pose head.
    """

    def __init__(self, tokens: Grid, patch: tuple[int, int], activities: int, hidden: int) -> None:
        super().__init__()
        antennas, bins, width = tokens
        self._patch = patch
        self.norm = nn.LayerNorm(3 * width)
        self.narrow = nn.Linear(3 * width, width)
        self.segmentation = nn.Linear(3 * width, math.prod(patch))
        self.shared = nn.Sequential(nn.GELU(), nn.Flatten(1), nn.Linear(antennas * bins * width, hidden), nn.GELU())
        self.pose, self.activity = nn.Linear(hidden, 3 * len(JOINTS)), nn.Linear(hidden, activities)

    def forward(self, tokens: Tensor) -> Outputs:
        """(B, antennas', F', width) complex -> answers."""
        ranges = self.norm(with_amplitude(torch.fft.ifft(tokens, dim=2, norm="ortho")))
        hidden = self.shared(self.narrow(ranges))
        body = self.segmentation(ranges).unflatten(-1, self._patch)  # (B, A', F', p0, p1)
        return Outputs(
            joints=self.mean_pose + self.pose(hidden).unflatten(-1, (-1, 3)),
            activity=self.activity(hidden),
            body=body.permute(0, 1, 3, 2, 4).flatten(3).flatten(1, 2),
        )


class RadarNetwork(nn.Module):
    """A trunk and the heads.

    Args:
        trunk: echoes (B, T, antennas, F) complex -> what the heads take.
        heads: that -> answers.
    """

    def __init__(self, trunk: nn.Module, heads: PoseHeads) -> None:
        super().__init__()
        self.trunk, self.heads = trunk, heads

    def forward(self, echoes: Tensor) -> Outputs:
        """(B, T, antennas, F) complex, normalised -> answers."""
        return self.heads(self.trunk(echoes))


def token_grid(shape: Grid, config: NetworkConfig, *, stages: int) -> Grid:
    """Frames, antennas and frequencies of the tokens after the embedding and `stages` stages.

    Raises:
        ConfigError: patches that do not divide the window.
    """
    frames, antennas, frequencies = shape
    sides = [first * again**stages for first, again in zip(config.patch, config.merge, strict=True)]
    if antennas % sides[0] or frequencies % sides[1]:
        raise ConfigError(
            f"NetworkConfig.patch {config.patch} and merge {config.merge}: tokens of {sides[0]} antennas x {sides[1]} frequencies after "
            f"stage {stages}, valid: such that they divide {antennas} x {frequencies}"
        )
    return frames, antennas // sides[0], frequencies // sides[1]
