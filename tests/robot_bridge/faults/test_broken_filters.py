"""Every fault on every arm's limits: green with the command filter as it is, red with one of its checks taken out.

The control loop's own real-time tick runs here, with a clock by hand and without ROS, so that all pairs take seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from robot_bridge.arms.franka import franka_limits
from robot_bridge.arms.trossen import widowx_limits
from robot_bridge.arms.ur import ur_limits
from robot_bridge.control import admission
from robot_bridge.control.authority import Authority
from robot_bridge.control.estop import EStop
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.holds import Holds
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.names import order_by_name
from robot_bridge.control.target import Target
from robot_bridge.faults.catalogue import FAULTS, faults
from tests.robot_bridge.control.rig import bench_limits
from tests.robot_bridge.faults.loop_stage import table

LIMITS: dict[str, ArmLimits] = {
    "panda": franka_limits("panda"), "fr3": franka_limits("fr3"), "widowx": widowx_limits(), "ur5e": ur_limits("ur5e"),
    "bench": bench_limits(),
}  # fmt: skip

Break = Callable[[pytest.MonkeyPatch], None]


def replace(owner: Any, name: str, value: Any) -> Break:
    return lambda patch: patch.setattr(owner, name, value)


def without(*reasons: str) -> Break:
    return replace(admission, "CHECKS", {reason: check for reason, check in admission.CHECKS.items() if reason not in reasons})


def careless_order(found: Any, wanted: Any) -> list[int]:
    return [list(found).index(name) if name in found else 0 for name in wanted]


def careless(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "order_by_name", careless_order)
    without("max_lead")(patch)  # another joint's value may be far away


def never_expires(patch: pytest.MonkeyPatch) -> None:
    through = Target.through.__func__  # type: ignore[attr-defined]

    def longer(cls: type[Target], points: Any, start: Any, times_s: Any, **options: Any) -> Target:
        return through(cls, np.vstack([points, points[-1] + 20 * (points[-1] - points[-2])]), start, np.append(times_s, times_s[-1] + 1.0),
                       from_ns=options["from_ns"], valid_s=1e6)  # fmt: skip

    patch.setattr(Target, "through", classmethod(longer))


def equal_stamps_are_old(patch: pytest.MonkeyPatch) -> None:
    def order(command: Any, now: Any) -> str | None:
        return "old" if now.last_stamp_ns is not None and command.stamp_ns <= now.last_stamp_ns else None

    patch.setitem(admission.CHECKS, "stamp_older_than_last", order)


def believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommandFilter, "_measure", lambda self, measured: setattr(self._reading, "newest", np.nan_to_num(measured.positions)))


def guards_are_not_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Holds, "active", lambda self, now_ns, source_ns: {})


BREAKS: dict[str, Break] = {
    "commands dropped": never_expires,
    "commands delayed": without("observation_too_old"),
    "commands duplicated": equal_stamps_are_old,
    "commands reordered": without("stamp_older_than_last"),
    "not a number": without("not_finite", "max_lead"),  # no comparison with NaN is true
    "jumping command": without("max_lead"),
    "wrong name": replace(admission, "order_by_name", lambda found, wanted: order_by_name(found, found)),
    "missing name": careless,
    "name twice": careless,
    "stamps in the future": without("stamp_outside_window"),
    "stamps in the past": without("stamp_outside_window", "stamp_older_than_last", "observation_too_old"),
    "sender killed": never_expires,
    "second sender": replace(Authority, "check", lambda self, source, sender, now_ns: None),
    "frozen state": without("observation_too_old"),
    "jumping state": replace(CommandFilter, "_aside", lambda self: None),
    "state not a number": believed,
    "driver blocked": replace(CommandFilter, "fault", lambda self, reason: None),
    "arm lost": replace(CommandFilter, "fault", lambda self, reason: None),
    "dead guard": replace(Holds, "_missing", lambda self, name, now_ns, source_ns: None),
    "guard holds": guards_are_not_heard,
    "e-stop": replace(EStop, "stopped", lambda self, now_ns: None),
    "second publisher": replace(CommandFilter, "fault", lambda self, reason: None),
}


def test_every_fault_has_its_broken_filter() -> None:
    assert set(BREAKS) == {fault.name for fault in FAULTS}


@pytest.mark.parametrize("arm", LIMITS)
def test_the_filter_keeps_the_rules_under_every_fault(arm: str) -> None:
    cells = table(LIMITS[arm], faults(controller=True))
    assert {cell.fault: cell.problems for cell in cells if cell.problems} == {}
    for cell in cells:
        if cell.constant_s is not None:
            assert cell.dropped_s is not None and cell.bound_s is not None and cell.dropped_s <= cell.constant_s <= cell.bound_s


@pytest.mark.parametrize("fault", BREAKS)
def test_a_filter_without_the_check_turns_the_cell_red(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every arm."""
    BREAKS[fault](monkeypatch)
    for arm, limits in LIMITS.items():
        (cell,) = table(limits, faults((fault,), controller=True))
        assert cell.problems, f"{fault} on {arm} is green with a broken filter"
