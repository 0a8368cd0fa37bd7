"""Guards, wrench and e-stop apart from motion."""

import numpy as np

from robot_bridge.control.estop import EStop
from robot_bridge.control.holds import GuardReport, Holds
from robot_bridge.control.wrench import WrenchGuard
from tests.robot_bridge.control.rig import bench_limits

S = 1_000_000_000


def test_a_guard_that_is_not_required_may_fall_silent_when_it_said_ok() -> None:
    holds = Holds()
    holds.receive(GuardReport(name="extra", hold=False), 0)
    assert holds.active(100 * S, 100 * S) == {}


def test_clearing_a_required_guard_does_not_replace_its_word() -> None:
    holds = Holds(required=("camera",))
    holds.receive(GuardReport(name="camera", hold=True, message="hand seen"), 0)
    assert holds.active(5 * S, 5 * S) == {"camera": "hand seen"}
    assert holds.clear("camera", 5 * S) is None
    assert holds.active(5 * S, 5 * S) == {"camera": "required guard not heard"}


def test_several_holds_are_all_named() -> None:
    holds = Holds(required=("a", "b"))
    holds.receive(GuardReport(name="c", hold=True), 0)
    assert set(holds.active(0, 0)) == {"a", "b", "c"}


def test_a_wrench_that_is_not_finite_holds_and_cannot_be_cleared() -> None:
    guard = WrenchGuard(bench_limits())
    guard.measure(np.full(6, np.nan))
    assert guard.hold is not None and "not finite" in str(guard.clear())
    guard.measure(np.zeros(6))
    assert guard.clear() is None and guard.hold is None


def test_torque_counts_too_and_an_arm_that_measures_none_is_not_held() -> None:
    guard = WrenchGuard(bench_limits())
    guard.measure(np.array([0.0, 0.0, 0.0, 5.1, 0.0, 0.0]))
    assert "5.1 N m" in str(guard.hold)
    blind = WrenchGuard(bench_limits(max_force=None, max_torque=None))
    blind.measure(np.full(6, 1e6))
    blind.measure(None)
    assert blind.hold is None and "no wrench hold" in str(blind.clear())


def test_pressing_again_renews_the_second_and_keeps_the_stop() -> None:
    stop = EStop()
    stop.receive(True, "a", 0)
    stop.receive(True, "a", S)
    assert "last second" in str(stop.rearm(S + S // 2))
    assert stop.stopped(2 * S) == "e-stop pressed at a"
    assert stop.rearm(2 * S) is None and stop.stopped(2 * S) is None


def test_a_required_button_never_heard_stops_after_a_second() -> None:
    stop = EStop(("button",), now_ns=0)
    assert stop.stopped(S) is None
    assert "button" in str(stop.stopped(S + 1))
