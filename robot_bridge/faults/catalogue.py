"""The faults: what is done, what the arm has to do about it, and what may let it move again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robot_bridge.control.command import JointCommand
from robot_bridge.control.holds import SILENT_NS as GUARD_SILENT_NS
from robot_bridge.control.settings import FilterSettings
from robot_bridge.faults.sender import Path, Spoiler

Place = Literal["command", "sender", "second_sender", "guard", "button", "arm", "controller"]
Event = Literal["silence", "refusal", "guard_silence", "guard_hold", "e_stop", "lost", "blocked"]

DELAY_S = 0.3
CLOCK_JUMP_S = 5.5
LEAD = 1.5  # times the largest lead that is allowed


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        name: in the table.
        what: is done, in a line.
        place: what it is done to.
        effect: `rest`: the target is dropped and the output comes to rest; `goes on`: the sender is followed as if nothing were.
        event: of the arm's side, from which on the control loop has two periods; None where motion goes on.
        patience_s: how long after the fault that event may come by the rules (a command's age, a guard's silence).
        lasts_s: it goes on for this long after the patience.
        ends: what lets motion go on once the fault is over: `by itself` (valid commands), `new sender` (authority taken anew) or
            `rearm` (an operator).
        spoil: for place `command`.
        mode: for place `arm` (see `SpoiltArm`) and `guard` (`silent`, `hold`).
    """

    name: str
    what: str
    place: Place
    effect: Literal["rest", "goes on"] = "rest"
    event: Event | None = None
    patience_s: Callable[[FilterSettings], float] = lambda settings: 0.0
    lasts_s: float = 0.4
    ends: Literal["by itself", "new sender", "rearm"] = "by itself"
    spoil: Spoiler | None = None
    mode: str = ""


def _command_age(settings: FilterSettings) -> float:
    return settings.command_age_s


def _observation_age(settings: FilterSettings) -> float:
    return settings.max_observation_age_s


def _guard_age(settings: FilterSettings) -> float:
    return GUARD_SILENT_NS / 1e9


def _changed(command: JointCommand, value: float, path: Path) -> JointCommand:
    positions = command.positions.copy()
    positions[0, path.joint] = value
    return dataclasses.replace(command, positions=positions)


def _dropped(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
    return []


def _delayed(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
    return [(DELAY_S, command)]


def _duplicated(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
    return [(0.0, command), (0.0, command), (0.01, command)]


def _reordered(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
    """In place of every command, two that are older than the last one sent."""
    return [(0.02 * late, older) for late, older in enumerate(path.history[-2:-4:-1])]


def _not_a_number(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
    return [(0.0, _changed(command, np.nan, path))]


def _jumping(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
    far = LEAD * path.limits.max_lead[path.joint]
    positions = command.positions.copy()
    middle = (path.limits.position_min[path.joint] + path.limits.position_max[path.joint]) / 2
    positions[:, path.joint] += far if positions[0, path.joint] < middle else -far
    return [(0.0, dataclasses.replace(command, positions=positions))]


def _renamed(index: int, name: Callable[[tuple[str, ...]], str]) -> Spoiler:
    def spoil(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
        names = list(command.names)
        names[index] = name(command.names)
        return [(0.0, dataclasses.replace(command, names=tuple(names)))]

    return spoil


def _missing(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
    return [(0.0, dataclasses.replace(command, names=command.names[1:], positions=command.positions[:, 1:]))]


def _shifted(seconds: float) -> Spoiler:
    def spoil(command: JointCommand, path: Path) -> list[tuple[float, JointCommand]]:
        return [(0.0, dataclasses.replace(command, stamp_ns=command.stamp_ns + round(seconds * 1e9)))]

    return spoil


def _command(name: str, what: str, spoil: Spoiler, event: Event = "refusal") -> Fault:
    return Fault(
        name=name, what=what, place="command", event=event, spoil=spoil,
        patience_s=_command_age if event == "silence" else (lambda settings: 0.0),
    )  # fmt: skip


FAULTS: tuple[Fault, ...] = (
    _command("commands dropped", "no command arrives any more, the sender goes on", _dropped, "silence"),
    _command("commands delayed", f"every command arrives {DELAY_S:g} s late", _delayed, "silence"),
    Fault(
        name="commands duplicated", what="every command arrives three times", place="command", effect="goes on", spoil=_duplicated,
    ),  # fmt: skip
    _command("commands reordered", "older commands arrive after newer ones", _reordered),
    _command("not a number", "a joint's target is NaN", _not_a_number),
    _command("jumping command", f"a target {LEAD:g} times further away than max_lead", _jumping),
    _command("wrong name", "a joint's name is one of another arm", _renamed(0, lambda names: "joint_of_another_arm")),
    _command("missing name", "a joint is not in the message", _missing),
    _command("name twice", "a joint's name is there twice", _renamed(0, lambda names: names[1])),
    _command("stamps in the future", f"the sender's clock jumps {CLOCK_JUMP_S:g} s ahead", _shifted(CLOCK_JUMP_S)),
    _command("stamps in the past", f"the sender's clock jumps {CLOCK_JUMP_S:g} s back", _shifted(-CLOCK_JUMP_S)),
    Fault(
        name="sender killed", what="kill -9 of the sender", place="sender", event="silence", patience_s=_command_age, ends="new sender",
    ),
    Fault(
        name="second sender", what="another publisher commands another joint under the same source", place="second_sender",
        effect="goes on",
    ),
    Fault(
        name="frozen state", what="the arm's driver gives the same reading again and again", place="arm", mode="frozen",
        event="refusal", patience_s=_observation_age,
    ),
    Fault(
        name="jumping state", what=f"a joint is read {LEAD:g} times max_lead away", place="arm", mode="jumping", event="refusal",
        ends="rearm",
    ),
    Fault(name="state not a number", what="a joint is read as NaN", place="arm", mode="not_finite", event="lost", ends="rearm"),
    Fault(
        name="driver blocked", what="a call of the driver does not return for 0.8 s", place="arm", mode="blocked", event="blocked",
        lasts_s=0.8, ends="rearm",
    ),
    Fault(name="arm lost", what="the bus or the connection to the arm breaks", place="arm", mode="lost", event="lost", ends="rearm"),
    Fault(
        name="dead guard", what="a required guard falls silent", place="guard", mode="silent", event="guard_silence",
        patience_s=_guard_age,
    ),
    Fault(name="guard holds", what="a guard says hold", place="guard", mode="hold", event="guard_hold"),
    Fault(name="e-stop", what="true on /e_stop, once", place="button", event="e_stop", ends="rearm"),
    Fault(
        name="second publisher", what="another node publishes on the ros2_control controller's topic", place="controller", mode="lost",
        event="lost", patience_s=lambda settings: 3.0, ends="rearm",
    ),
)  # fmt: skip
"""In the order of the table."""


def faults(names: tuple[str, ...] = (), *, controller: bool = False) -> tuple[Fault, ...]:
    """Those of `names`, in order; all without. `controller`: a ros2_control controller moves the arm.

    Raises:
        ValueError: no such fault; lists them.
    """
    known = {fault.name: fault for fault in FAULTS if controller or fault.place != "controller"}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no fault {unknown}, valid: {list(known)}")
    return tuple(known[name] for name in names) if names else tuple(known.values())
