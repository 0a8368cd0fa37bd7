"""TeleopSource: the one protocol behind which every device sits that a person moves an arm with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError

Event = Literal["take", "release", "begin", "success", "failure", "discard", "faster", "slower", "gripper", "quit"]
EVENTS: tuple[Event, ...] = get_args(Event)


class SourceError(ArmstackError):
    """A source that cannot be used, or failed; says what to check. No command follows, so the arm holds."""


@dataclass(frozen=True, kw_only=True)
class View:
    """What a source may know about the arm.

    Attributes:
        now_s: monotonic time.
        following: the arm follows this sender's commands.
        recording: an episode is running.
    """

    now_s: float
    following: bool
    recording: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """What a person asks for now. Where nothing is asked for the target stays where it is.

    Attributes:
        events: in their order; `gripper` opens it where it is closed and closes it where it is open.
        twist: (6,) shares -1..1 of the present speed along and about x, y, z of frame base.
        step: (6,) metres and rad along and about x, y, z of frame base within this period, whatever the speed.
        joints: the arm's joint -> where it is to go, rad.
        gripper: -1 (open) .. 1 (closed), as an action has it.
    """

    events: tuple[Event, ...] = ()
    twist: NDArray[np.float64] | None = None
    step: NDArray[np.float64] | None = None
    joints: Mapping[str, float] | None = None
    gripper: float | None = None


class TeleopSource(Protocol):
    """A device. It is read once a period, by one thread; no call may block for longer than a few milliseconds.

    Attributes:
        space: kind of action it gives by itself: `end_effector`, or `joint`.
    """

    space: Literal["end_effector", "joint"]

    def open(self) -> None:
        """Makes it ready; raises SourceError with what to check."""
        ...

    def read(self, view: View) -> Reading:
        """What is asked for now; raises SourceError where the device is gone."""
        ...

    def close(self) -> None:
        """Gives it back as it was; may be called twice."""
        ...
