"""What is judged: the outputs of a control loop in time, and what happened at its inputs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_bridge.faults.catalogue import Fault

Happening = Literal["taken", "refused", "denied", "guard", "guard_hold", "e_stop", "lost", "blocked"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something that reached the control loop.

    Attributes:
        stamp_ns: on the clock of `arm/applied`.
        event: a command of the holder of authority was `taken` or `refused`, another's `denied`; a `guard` said OK or hold
            (`guard_hold`); an `e_stop` was pressed; a driver call raised or gave no number (`lost`), or began to block (`blocked`).
        detail: the refusal's reason.
    """

    stamp_ns: int
    event: Happening
    detail: str = ""

    def to_json(self) -> str:
        """JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Mark:
        """Reads `to_json`'s text."""
        return cls(**json.loads(text))


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """Outputs (what `arm/applied` holds) and marks, in order of time.

    Attributes:
        names: of the joints.
        stamps_ns: (T,) when each output was made.
        positions: (T, J) rad and m.
        marks: see `Mark`.
    """

    names: tuple[str, ...]
    stamps_ns: NDArray[np.int64]
    positions: NDArray[np.float64]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, kw_only=True)
class Injection:
    """One fault that was done to a moving arm; times on the clock of the trace.

    Attributes:
        fault: which.
        injected_ns: when it began.
        ended_ns: when it was over; valid commands came from then on.
        closed_ns: until when nobody rearmed or took authority anew.
        joint: index of the swept joint.
        direction: of the sweep, 1 or -1.
        speed: of the sweep, rad/s.
    """

    fault: Fault
    injected_ns: int
    ended_ns: int
    closed_ns: int
    joint: int
    direction: int
    speed: float
