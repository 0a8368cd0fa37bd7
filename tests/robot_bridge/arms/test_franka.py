"""The Franka driver against a library whose calls are watched."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_bridge.arms.base import ArmLost
from robot_bridge.arms.franka import FrankaArm, franka_limits
from robot_bridge.control.kinematics import Kinematics
from sim_envs.arm.scene import kinematics_xml
from tests.robot_bridge.arms.following import following, wait

START = np.array([0.0, 0.0, 0.0, -1.57, 0.0, 1.57, 0.785])


class _Library(ModuleType):
    """Stands in for franky: one robot that follows at once, and a hand whose moves take as long as `hand_free` says."""

    RealtimeConfig = SimpleNamespace(Ignore="ignore", Enforce="enforce")

    def __init__(self) -> None:
        super().__init__("franky")
        self.q = START.copy()
        self.has_errors = False
        self.recoveries = 0
        self.running = True
        self.targets: list[tuple[np.ndarray, np.ndarray]] = []
        self.trackers = 0
        self.stops = 0
        self.moves: list[float] = []
        self.hand_free = threading.Event()
        self.hand_free.set()
        self.hand_busy = threading.Event()
        self.hand_answers = True

    def Robot(self, host: str, *, realtime_config: str) -> Any:  # noqa: N802
        assert realtime_config == "ignore"
        return _Robot(self)

    def Gripper(self, host: str) -> Any:  # noqa: N802
        return _Gripper(self)

    def JointImpedanceTracker(self, robot: Any, *, stiffness: Any) -> Any:  # noqa: N802
        self.trackers += 1
        return _Tracker(self)


class _Robot:
    def __init__(self, library: _Library) -> None:
        self._library = library

    @property
    def has_errors(self) -> bool:
        return self._library.has_errors

    @property
    def state(self) -> Any:
        pose = SimpleNamespace(translation=np.zeros(3), quaternion=np.array([0.0, 0.0, 0.0, 1.0]))
        return SimpleNamespace(
            q=self._library.q.copy(), dq=np.zeros(7), O_T_EE=pose, K_F_ext_hat_K=np.zeros(6), current_errors="[joint_reflex]"
        )

    def recover_from_errors(self) -> bool:
        self._library.recoveries += 1
        self._library.has_errors = False
        return True

    def poll_motion(self) -> None:
        raise RuntimeError("cartesian_reflex")


class _Tracker:
    def __init__(self, library: _Library) -> None:
        self._library = library

    @property
    def is_running(self) -> bool:
        return self._library.running

    def set_target(self, q: np.ndarray, dq: np.ndarray) -> None:
        self._library.targets.append((q.copy(), dq.copy()))
        self._library.q = q.copy()

    def stop(self) -> None:
        self._library.stops += 1


class _Gripper:
    def __init__(self, library: _Library) -> None:
        self._library = library
        self._width = 0.08

    @property
    def width(self) -> float:
        if not self._library.hand_answers:
            raise RuntimeError("libfranka gripper: UDP receive: timeout")
        return self._width

    def move(self, width: float, speed: float) -> None:
        self._library.moves.append(width)
        self._library.hand_busy.set()
        self._library.hand_free.wait(10.0)
        self._width = width

    def grasp(self, width: float, speed: float, force: float, inner: float, outer: float) -> None:
        self.move(width, speed)

    def stop(self) -> None:
        self._library.hand_free.set()

    def stop_async(self) -> None:
        pass


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> _Library:
    library = _Library()
    monkeypatch.setitem(sys.modules, "franky", library)
    return library


@pytest.fixture
def fake(library: _Library) -> Iterator[FrankaArm]:
    arm = FrankaArm(host="robot")
    arm.connect()
    yield arm
    arm.close()


def _target(offset: float, opening: float = 0.08) -> np.ndarray:
    return np.append(START + [offset, 0, 0, 0, 0, 0, 0], opening)


def test_pain_17_blocking_gripper(library: _Library, fake: FrankaArm) -> None:
    """While the hand is blocked the loop keeps its 100 Hz, and of the commands that came meanwhile only the newest is executed."""
    library.hand_free.clear()
    with following(fake) as run:
        for i in range(20):
            run.begin[-1] = 0.06 if i < 5 else 0.0
            run.send(0.002 * i)
            time.sleep(0.05)
        assert library.hand_busy.is_set() and run.refusals == []
        status = run.loop.status()
        assert status.state == "moving" and "driver" not in status.holds
        stamps = np.array([period.stamp_ns for period in run.periods])
        assert len(stamps) + status.counts["missed_deadline"] >= 0.9 * (stamps[-1] - stamps[0]) / 1e7
        asked = len(library.moves)
        library.hand_free.set()
        wait(lambda: len(library.moves) > asked, "the next move")
        assert len(library.moves) <= asked + 2
        deadline = time.monotonic() + 30.0
        while abs(library.moves[-1]) > 1e-3:  # the newest; a sender that fell behind its pace has not led the gripper there yet
            assert time.monotonic() < deadline, library.moves
            run.send(0.04)
            time.sleep(0.05)


def test_the_controller_starts_with_the_first_motion_and_hears_no_step_as_velocity(library: _Library, fake: FrankaArm) -> None:
    for _ in range(3):
        fake.command(_target(0.0), 0.01)
    assert library.trackers == 0
    fake.command(_target(0.005), 0.01)  # half a radian a second out of rest: the filter starting anew at the measured pose
    assert library.trackers == 1
    target, velocity = library.targets[0]
    assert (target == _target(0.005)[:7]).all()
    assert velocity[0] == pytest.approx(0.01 * fake.limits.stop_acceleration[0])


def test_after_a_stop_it_starts_again_only_after_a_rest(library: _Library, fake: FrankaArm) -> None:
    for offset in (0.0, 0.0, 0.001, 0.002):
        fake.command(_target(offset), 0.01)
    fake.stop()
    assert library.stops == 1
    sent = len(library.targets)
    for offset in (0.003, 0.004, 0.004, 0.004):  # the filter brakes, then stands
        fake.command(_target(offset), 0.01)
    assert len(library.targets) == sent and library.trackers == 1
    fake.command(_target(0.005), 0.01)
    assert library.trackers == 2


def test_a_reflex_is_a_lost_arm_and_only_an_operator_recovers_from_it(library: _Library, fake: FrankaArm) -> None:
    fake.command(_target(0.0), 0.01)
    fake.command(_target(0.0), 0.01)
    library.running, library.has_errors = False, True
    with pytest.raises(ArmLost, match="cartesian_reflex"):
        fake.command(_target(0.001), 0.01)
    for _ in range(3):
        with pytest.raises(ArmLost, match="joint_reflex.*arm/recover and arm/rearm"):
            fake.connect()
    assert library.recoveries == 0
    fake.recover()
    assert library.recoveries == 1
    fake.connect()


def test_a_hand_that_does_not_answer_is_a_lost_arm_until_it_does(library: _Library, fake: FrankaArm) -> None:
    def lost() -> bool:
        try:
            fake.read()
            return False
        except ArmLost as error:
            return "hand at robot" in str(error)

    assert not lost()
    library.hand_answers = False
    wait(lost, "the loss")
    with pytest.raises(ArmLost, match="timeout"):
        fake.connect()
    library.hand_answers = True
    fake.connect()
    assert fake.read().positions[-1] == 0.08


def test_a_call_without_a_connection_is_a_lost_arm(library: _Library) -> None:
    arm = FrankaArm(host="robot")
    for call in (arm.read, arm.recover, lambda: arm.command(_target(0.0), 0.01)):
        with pytest.raises(ArmLost, match="not connected"):
            call()


# -- without a library --------------------------------------------------------------------------------------------------------


def test_its_kinematics_are_those_of_the_world_policies_are_trained_in() -> None:
    ours, worlds = Kinematics(FrankaArm(host="").description), Kinematics(kinematics_xml())
    assert ours.joint_names == worlds.joint_names
    for joints in START + np.random.default_rng(0).uniform(-0.5, 0.5, (10, 7)):
        (position, quaternion), (there, turned) = ours.fk(joints), worlds.fk(joints)
        assert position == pytest.approx(there, abs=1e-3) and abs(float(quaternion @ turned)) == pytest.approx(1.0, abs=1e-6)


def test_the_research_3_has_its_own_names_and_limits() -> None:
    limits = franka_limits("fr3")
    assert FrankaArm(host="", hardware="fr3").joint_names == limits.names and limits.names[0] == "fr3_joint1"
    assert limits.velocity[0] == 2.62 and limits.position_max[5] == 4.5169
