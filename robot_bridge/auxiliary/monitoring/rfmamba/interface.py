"""What a radar that sees people takes and gives: geometry, echo window, person. NumPy alone; a node may import it without PyTorch.

An echo is S(f, tx, rx, t) = sum_k a_k(t) / (R1 R2) exp(-j 2 pi f (R1 + R2) / c) + clutter + noise, complex. Its phase carries the
geometry, so antennas and frequencies come with it: with others a network's answer would be wrong without looking wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError, ContractError, ContractMismatch

JOINTS = (
    "head", "neck", "left_shoulder", "left_elbow", "left_wrist", "right_shoulder", "right_elbow", "right_wrist",
    "left_hip", "left_knee", "left_ankle", "right_hip", "right_knee", "right_ankle",
)  # fmt: skip
"""Keypoints of a person, in the order of `Person.joints`."""
_PAIRS = (
    ("head", "neck"), ("neck", "left_shoulder"), ("neck", "right_shoulder"), ("left_hip", "right_hip"),
    ("left_shoulder", "left_elbow"), ("left_elbow", "left_wrist"), ("right_shoulder", "right_elbow"), ("right_elbow", "right_wrist"),
    ("left_shoulder", "left_hip"), ("left_hip", "left_knee"), ("left_knee", "left_ankle"),
    ("right_shoulder", "right_hip"), ("right_hip", "right_knee"), ("right_knee", "right_ankle"),
)  # fmt: skip
BONES = tuple((JOINTS.index(one), JOINTS.index(other)) for one, other in _PAIRS)
"""Keypoints between which a drawn person has a line."""

_SAME_M, _SAME_SHARE = 1e-3, 1e-6


class RadarError(ArmstackError):
    """An echo that cannot be used; says what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class RadarGeometry:
    """How an echo was measured; part of a bundle and of the message `radar/geometry` (`to_json`).

    Attributes:
        transmitters: phase centres (x, y, z), metres in the arm's base frame.
        receivers: the same.
        frequencies: Hz, rising in equal steps.
        frames: of an echo window, oldest first.
        period_s: from one frame to the next.
    """

    transmitters: tuple[tuple[float, ...], ...]
    receivers: tuple[tuple[float, ...], ...]
    frequencies: tuple[float, ...]
    frames: int
    period_s: float

    def __post_init__(self) -> None:
        for name in ("transmitters", "receivers"):
            places = tuple(tuple(float(value) for value in place) for place in getattr(self, name))
            object.__setattr__(self, name, places)
            if not places or any(len(place) != 3 or not all(map(math.isfinite, place)) for place in places):
                raise ContractError(f"radar geometry: {name} {places}, valid: one or more (x, y, z) in metres")
        grid = np.array(self.frequencies, float)
        object.__setattr__(self, "frequencies", tuple(grid.tolist()))
        steps = np.diff(grid)
        if grid.ndim != 1 or len(grid) < 2 or not np.isfinite(grid).all() or grid[0] <= 0 or steps.min() <= 0:
            raise ContractError(f"radar geometry: frequencies {self.frequencies}, valid: two or more, above 0 Hz and rising")
        if np.abs(steps - steps.mean()).max() > 1e-3 * steps.mean():
            raise ContractError(f"radar geometry: frequencies in steps of {steps.min():g}..{steps.max():g} Hz, valid: equal steps")
        if self.frames < 1 or not 0 < self.period_s < math.inf:
            raise ContractError(f"radar geometry: frames {self.frames}, period_s {self.period_s}; valid: 1 or more, above 0")

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(frames, tx, rx, frequencies) of an echo window."""
        return self.frames, len(self.transmitters), len(self.receivers), len(self.frequencies)

    def accepts(self, offered: RadarGeometry) -> None:
        """Checks what a radar publishes against what a network was trained for.

        Raises:
            ContractMismatch: antennas more than 1 mm elsewhere, other frequencies, or another number or rate of frames; names each.
        """
        found = []
        for name in ("transmitters", "receivers"):
            need, have = np.array(getattr(self, name)), np.array(getattr(offered, name))
            if need.shape != have.shape:
                found.append(f"radar.{name}: needs {len(need)}, offered {len(have)}")
            elif (apart := np.linalg.norm(need - have, axis=1)).max() > _SAME_M:
                worst = int(apart.argmax())
                found.append(f"radar.{name}[{worst}]: needs {need[worst].tolist()} m, offered {have[worst].tolist()} m")
        need, have = np.array(self.frequencies), np.array(offered.frequencies)
        if need.shape != have.shape or np.abs(need - have).max() > _SAME_SHARE * need.max():
            found.append(f"radar.frequencies: needs {_grid(need)}, offered {_grid(have)}")
        if self.frames != offered.frames:
            found.append(f"radar.frames: needs {self.frames}, offered {offered.frames}")
        if not math.isclose(self.period_s, offered.period_s, rel_tol=0.02):
            found.append(f"radar.period_s: needs {self.period_s:g}, offered {offered.period_s:g}")
        if found:
            raise ContractMismatch("the network", "this radar", found)

    def to_json(self) -> str:
        """As `from_json` reads it; the text of `radar/geometry`."""
        names = ("transmitters", "receivers", "frequencies", "frames", "period_s")
        return json.dumps({name: getattr(self, name) for name in names})

    @classmethod
    def from_json(cls, text: str) -> RadarGeometry:
        """Reads `to_json`'s text.

        Raises:
            ContractError: not JSON, a field that is missing or unknown, or values that cannot be.
        """
        names = ("transmitters", "receivers", "frequencies", "frames", "period_s")
        try:
            fields = json.loads(text)
            if not isinstance(fields, dict) or set(fields) != set(names):
                raise ContractError(f"radar geometry: {fields!r:.80}, valid: an object of {', '.join(names)}")
            return cls(**fields)
        except (TypeError, ValueError) as error:
            if isinstance(error, ContractError):
                raise
            raise ContractError(f"radar geometry: not readable: {error}") from error


def _grid(frequencies: NDArray[Any]) -> str:
    return f"{len(frequencies)} from {frequencies[0] / 1e9:.4f} to {frequencies[-1] / 1e9:.4f} GHz"


def echo_of(numbers: NDArray[Any], geometry: RadarGeometry) -> NDArray[np.complex64]:
    """A message's numbers [frames, tx, rx, frequency, 2] (real, imaginary) as a complex window (frames, tx, rx, frequency).

    Raises:
        RadarError: of another shape than the geometry says, or not finite.
    """
    numbers = np.asarray(numbers, np.float32)
    if numbers.shape != (*geometry.shape, 2):
        raise RadarError(f"radar echo: shape {numbers.shape}, valid: {(*geometry.shape, 2)} [frames, tx, rx, frequency, re and im]")
    if not np.isfinite(numbers).all():
        raise RadarError("radar echo: NaN or infinity, valid: finite numbers")
    return np.ascontiguousarray(numbers).view(np.complex64)[..., 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Person:
    """What an echo window says of the person in it.

    Attributes:
        joints: (14, 3) float32, metres in the arm's base frame, in the order of `JOINTS`.
        activity: name -> probability; they sum to 1.
        body: (tx, rx, bins) float32: probability that the person fills a range bin of an antenna pair; bin b is at the bistatic path
            R1 + R2 = b c / (frequencies x step), modulo c / step.
    """

    joints: NDArray[np.float32]
    activity: Mapping[str, float]
    body: NDArray[np.float32]

    def distance_to(self, arm: Sequence[Sequence[float]] | NDArray[Any]) -> float:
        """Least distance from a keypoint to the arm, metres.

        Args:
            arm: (k, 3) positions of the arm's links in its base frame, from base to tip; the arm is the line through them.

        Raises:
            RadarError: no positions, or not finite.
        """
        return keypoint_distance(self.joints, arm)


def keypoint_distance(joints: NDArray[Any], arm: Sequence[Sequence[float]] | NDArray[Any]) -> float:
    """Least distance from points (n, 3) to the line through (k, 3), metres.

    Raises:
        RadarError: positions of another shape, or not finite.
    """
    points, line = np.asarray(joints, float), np.asarray(arm, float)
    if line.ndim != 2 or line.shape[1] != 3 or len(line) < 1 or not np.isfinite(line).all():
        raise RadarError(f"arm link positions: shape {line.shape}, valid: (k, 3) finite numbers, metres in the arm's base frame")
    start, end = (line, line) if len(line) == 1 else (line[:-1], line[1:])
    along = end - start
    share = np.einsum("nkd,kd->nk", points[:, None] - start, along) / np.maximum((along**2).sum(1), 1e-12)
    nearest = start + np.clip(share, 0.0, 1.0)[..., None] * along
    return float(np.linalg.norm(points[:, None] - nearest, axis=2).min())


@runtime_checkable
class HumanRadar(Protocol):
    """What `load_auxiliary` gives for a bundle of `rfmamba`: one person from an echo window. Pure."""

    geometry: RadarGeometry
    """What it was trained for; `geometry.accepts(offered)` before the first window."""
    activities: tuple[str, ...]
    current: int
    """Frame of the window that the answer is about: frames - 1 of a causal network; one of an earlier frame adds its latency."""
    distance_error_95_m: float
    """What it says how far the nearest joint is from an arm is no more than this above the truth, metres: in 95 of 100 windows of people
    near by that it was not trained with. Infinite where that is not known."""

    def perceive(self, echo: NDArray[np.complex64], background: NDArray[np.complex64]) -> Person:
        """Judges one window.

        Args:
            echo: (frames, tx, rx, frequency), as measured.
            background: (tx, rx, frequency), the mean echo of the cell with nobody in it. A mean over a time with a person in it would
                remove one who stands still.

        Raises:
            RadarError: of another shape, or not finite.
        """
        ...
