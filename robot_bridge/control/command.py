"""JointCommand: what any sender asks of an arm, and Refusal: why the filter did not take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RefusalReason = Literal[
    "malformed",
    "not_finite",
    "unknown_name",
    "missing_name",
    "duplicate_name",
    "stamp_outside_window",
    "stamp_older_than_last",
    "observation_too_old",
    "max_lead",
    "no_authority",
    "not_at_rest",
    "held",
    "stopped",
    "fault",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class JointCommand:
    """Joint positions to be reached at given times after receipt; carried by `trajectory_msgs/JointTrajectory`.

    Nothing is checked here: what arrived is judged by the command filter, which refuses it with a reason.

    Attributes:
        stamp_ns: time of the oldest observation used, nanoseconds on the observations' clock (header.stamp).
        source: kind of sender: teleop, console, replay or policy (header.frame_id).
        sender: identity of the publisher (its gid as hex text), one value per publisher.
        names: joint names, any order.
        positions: (H, J) float64, rad or m, columns in the order of `names`.
        time_from_start_s: (H,) float64, when each point is to be reached, seconds after receipt, increasing, above 0.
        offset_s: how long the sender has been executing the chunk these points belong to; 0 for a fresh one. On the wire
            a chunk that is re-sent starts with a point at time_from_start = -offset_s, which is never executed.
    """

    stamp_ns: int
    source: str
    sender: str
    names: tuple[str, ...]
    positions: NDArray[np.float64]
    time_from_start_s: NDArray[np.float64]
    offset_s: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "positions", np.asarray(self.positions, dtype=np.float64))
        object.__setattr__(self, "time_from_start_s", np.asarray(self.time_from_start_s, dtype=np.float64))


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A command that was not taken.

    Attributes:
        reason: one word out of a closed list; counted in the status.
        detail: what was found and what would be valid.
    """

    reason: RefusalReason
    detail: str
