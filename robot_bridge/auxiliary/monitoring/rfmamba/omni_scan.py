"""The omni-dimensional scan: six ways through a window of tokens, {time, antenna, frequency} x {two directions}, in snake order.

- time: whole frames one after the other, from the oldest and from the newest; the two meet at the current frame, whose states have
  then seen past and future. With the current frame the newest, only the past: the causal form.
- antenna, frequency: column by column and row by row through the plane of each frame, from its first and from its last corner; the
  two meet in the middle.

The second direction is the first one's mirror image in all axes and has the same parameters, so that a window mirrored in all axes
(its current frame too) has the mirrored output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.rfmamba.scan import scan_steps

Scan = Literal["omni", "raster"]
_DELTA_MIN, _DELTA_MAX = 1e-3, 1e-1


class SelectiveParameters(nn.Module):
    """Delta, B and C of tokens, and A: all that a scan needs. Delta = softplus(linear), A = -exp(A_log), A_log from log(1..N).

    Args:
        width: D.
        states: N.
    """

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self._states = states
        self.delta = nn.Linear(width, width)
        self.b_and_c = nn.Linear(width, 2 * states, bias=False)
        self.a_log = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(width, 1))
        # softplus(bias) log-uniform over the usual range [Mamba's code].
        delta = torch.exp(torch.rand(width) * math.log(_DELTA_MAX / _DELTA_MIN) + math.log(_DELTA_MIN))
        with torch.no_grad():
            self.delta.bias.copy_(delta + torch.log(-torch.expm1(-delta)))

    def forward(self, tokens: Tensor) -> Tensor:
        """(L, B, D) -> what `scan` takes, (L, 2 D + 2 N, B): x, Delta, B, C."""
        return torch.cat([tokens, F.softplus(self.delta(tokens)), self.b_and_c(tokens)], dim=-1).transpose(1, 2).contiguous()

    def scan(self, parts: Tensor) -> Tensor:
        """y (L, S, D, B) of L steps of S sequences of `forward`'s rows, (L, S, 2 D + 2 N, B)."""
        width = len(self.a_log)
        x, delta, b, c = parts.split([width, width, self._states, self._states], dim=2)
        return scan_steps(x, delta, -self.a_log.exp(), b, c)


class OmniScan(nn.Module):
    """Sums what the six ways give, and D x.

    Args:
        grid: frames, antennas, frequencies of the tokens.
        width: D.
        states: N.
        current: frame at which the scans in time meet.
        scan: `raster` instead: one pass over the window, frame by frame, row by row.
    """

    def __init__(self, grid: tuple[int, int, int], width: int, states: int, *, current: int, scan: Scan = "omni") -> None:
        super().__init__()
        self.skip = nn.Parameter(torch.ones(width))
        ways = raster_ways(grid) if scan == "raster" else omni_ways(grid, current)
        self.axes = nn.ModuleDict({name: SelectiveParameters(width, states) for name in ways})
        for name, paths in ways.items():
            for number, path in enumerate(paths):
                self.register_buffer(f"{name}_path_{number}", path, persistent=False)

    def _axes(self) -> Iterator[tuple[str, SelectiveParameters]]:
        for name, parameters in self.axes.items():
            assert isinstance(parameters, SelectiveParameters)
            yield name, parameters

    def paths(self, axis: str) -> Iterator[Tensor]:
        """Token numbers (S, L) of the sequences along an axis; a tensor for each length there is."""
        number = 0
        while hasattr(self, f"{axis}_path_{number}"):
            yield getattr(self, f"{axis}_path_{number}")
            number += 1

    def forward(self, tokens: Tensor) -> Tensor:
        """(frames antennas frequencies, B, D) -> the same."""
        out = torch.zeros_like(tokens).transpose(1, 2).contiguous()
        for name, parameters in self._axes():
            parts = parameters(tokens)
            for path in self.paths(name):
                steps = path.T.flatten()
                found = parameters.scan(parts[steps].unflatten(0, path.T.shape))
                out = out.index_add(0, steps, found.flatten(0, 1))
        return self.skip * tokens + out.transpose(1, 2)


def omni_ways(grid: tuple[int, int, int], current: int) -> dict[str, list[Tensor]]:
    """axis -> paths of equal length, (S, L) each, as numbers of tokens in a window of `grid` tokens.

    Raises:
        ValueError: a current frame that is not in the window.
    """
    frames, antennas, frequencies = grid
    if not 0 <= current < frames:
        raise ValueError(f"current frame {current}, valid: 0..{frames - 1}")
    numbers = torch.arange(frames * antennas * frequencies).reshape(grid)
    mirrored = numbers.flip(0, 1, 2)
    forward, backward = _through_time(numbers, current), _through_time(mirrored, frames - 1 - current)
    time = [torch.stack([forward, backward])] if len(forward) == len(backward) else [forward[None], backward[None]]
    half = antennas * frequencies // 2 + 1
    planes = [plane for each in (numbers, mirrored) for plane in each]
    return {
        "time": time,
        "antenna": [torch.stack([_snake(plane.T)[:half] for plane in planes])],
        "frequency": [torch.stack([_snake(plane)[:half] for plane in planes])],
    }


def raster_ways(grid: tuple[int, int, int]) -> dict[str, list[Tensor]]:
    """One path through all tokens in the order they lie in."""
    return {"raster": [torch.arange(math.prod(grid))[None]]}


def _through_time(numbers: Tensor, current: int) -> Tensor:
    """Frames 0 to `current`, each a snake that begins where the last one ended."""
    snakes = [_snake(plane) for plane in numbers[: current + 1]]
    return torch.cat([snake if frame % 2 == 0 else snake.flip(0) for frame, snake in enumerate(snakes)])


def _snake(plane: Tensor) -> Tensor:
    """Row by row, every second row backwards."""
    return torch.cat([row if number % 2 == 0 else row.flip(0) for number, row in enumerate(plane)])
