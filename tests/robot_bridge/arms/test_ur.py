"""The UR driver against stand-ins for ur_rtde's two interfaces, which watch the order of calls and their arguments."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from robot_bridge.arms.base import Arm, ArmLost
from robot_bridge.arms.ur import URArm
from robot_bridge.control.kinematics import Kinematics

Q = [0.1, -1.2, 1.3, -1.4, -1.5, 0.2]


class _Controller:
    """What both interfaces of one arm share."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.protective = self.emergency = False
        self.connected = self.takes = True
        self.reachable = True


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> _Controller:
    controller = _Controller()

    class RTDEReceiveInterface:
        def __init__(self, host: str) -> None:
            if not controller.reachable:
                raise RuntimeError("Timeout connecting to UR dashboard server.")
            controller.calls.append(("receive", host))

        def isConnected(self) -> bool:  # noqa: N802
            return controller.connected

        def isEmergencyStopped(self) -> bool:  # noqa: N802
            return controller.emergency

        def isProtectiveStopped(self) -> bool:  # noqa: N802
            return controller.protective

        def getActualQ(self) -> list[float]:  # noqa: N802
            return Q

        def getActualQd(self) -> list[float]:  # noqa: N802
            return [0.0] * 6

        def getActualTCPPose(self) -> list[float]:  # noqa: N802
            return [0.4, 0.1, 0.3, 0.0, 0.0, np.pi / 2]

        def getActualTCPForce(self) -> list[float]:  # noqa: N802
            return [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]

        def disconnect(self) -> None:
            controller.calls.append(("receive.disconnect",))

    class RTDEControlInterface:
        def __init__(self, host: str) -> None:
            controller.calls.append(("control", host))

        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any) -> bool:
                controller.calls.append((name, *arguments))
                return controller.takes

            return call

    for module, interface in (("rtde_receive", RTDEReceiveInterface), ("rtde_control", RTDEControlInterface)):
        stand_in = ModuleType(module)
        setattr(stand_in, interface.__name__, interface)
        monkeypatch.setitem(sys.modules, module, stand_in)
    return controller


@pytest.fixture
def arm(controller: _Controller) -> URArm:
    arm = URArm(host="10.0.0.2", lookahead_s=0.1, gain=400.0)
    arm.connect()
    return arm


def test_it_looks_before_it_takes_control_and_sets_the_watchdog_first(controller: _Controller, arm: URArm) -> None:
    assert isinstance(arm, Arm)
    assert controller.calls == [("receive", "10.0.0.2"), ("control", "10.0.0.2"), ("setWatchdog", 10.0)]


def test_a_command_kicks_the_watchdog_and_servos_for_one_period(controller: _Controller, arm: URArm) -> None:
    controller.calls.clear()
    arm.command(np.array(Q), 0.01)
    assert controller.calls == [("kickWatchdog",), ("servoJ", Q, 0.0, 0.0, 0.01, 0.1, 400.0)]


def test_it_reads_joints_pose_and_wrench(arm: URArm) -> None:
    state = arm.read()
    assert state.names == arm.limits.names and state.positions.tolist() == Q
    assert state.ee_pos.tolist() == [0.4, 0.1, 0.3]
    assert state.ee_quat == pytest.approx([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    assert state.wrench is not None and state.wrench.tolist() == [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]


def test_stop_ends_servoing_and_close_ends_the_program_before_the_connection(controller: _Controller, arm: URArm) -> None:
    controller.calls.clear()
    arm.stop()
    assert controller.calls == [("servoStop", 10.0)]
    controller.calls.clear()
    arm.close()
    assert [call[0] for call in controller.calls] == ["servoStop", "stopScript", "disconnect", "receive.disconnect"]
    with pytest.raises(ArmLost, match="not connected"):
        arm.command(np.array(Q), 0.01)
    with pytest.raises(ArmLost, match="not connected"):
        arm.read()


@pytest.mark.parametrize(("stop", "says"), [("protective", "protective stop"), ("emergency", "emergency stop")])
def test_a_stopped_arm_is_lost_until_its_pendant_says_otherwise(controller: _Controller, arm: URArm, stop: str, says: str) -> None:
    setattr(controller, stop, True)
    controller.calls.clear()
    with pytest.raises(ArmLost, match=f"^ur at 10.0.0.2: {says}.*on the pendant, then call arm/rearm$"):
        arm.read()
    with pytest.raises(ArmLost, match=f"^ur at 10.0.0.2: {says}.*on the pendant, then call arm/rearm$"):
        arm.connect()
    assert ("control", "10.0.0.2") not in controller.calls  # no program is uploaded to an arm that is stopped
    setattr(controller, stop, False)
    arm.connect()
    assert controller.calls[-2:] == [("control", "10.0.0.2"), ("setWatchdog", 10.0)]


def test_a_target_that_is_not_taken_is_a_lost_arm(controller: _Controller, arm: URArm) -> None:
    controller.takes = False
    with pytest.raises(ArmLost, match="servoJ was not taken"):
        arm.command(np.array(Q), 0.01)


def test_an_arm_that_is_not_there_is_a_lost_arm_with_what_to_check(controller: _Controller) -> None:
    controller.reachable = False
    with pytest.raises(ArmLost, match="10.0.0.3.*remote control"):
        URArm(host="10.0.0.3").connect()


@pytest.mark.parametrize(("setting", "valid"), [({"lookahead_s": 0.3}, "0.03 .. 0.2"), ({"gain": 50.0}, "100 .. 2000")])
def test_settings_the_controller_would_refuse_are_refused_here(setting: dict[str, Any], valid: str) -> None:
    with pytest.raises(ValueError, match=valid):
        URArm(host="", **setting)


@pytest.mark.parametrize("model", ["ur3e", "ur5e", "ur10e"])
def test_its_kinematics_are_the_published_denavit_hartenberg_rows(model: Any) -> None:
    from robot_bridge.arms.ur import _LENGTHS

    d1, a2, a3, d4, d5, d6 = _LENGTHS[model]
    rows = [(0.0, d1, np.pi / 2), (a2, 0.0, 0.0), (a3, 0.0, 0.0), (0.0, d4, np.pi / 2), (0.0, d5, -np.pi / 2), (0.0, d6, 0.0)]
    kinematics = Kinematics(URArm(host="", model=model).description)
    for joints in np.random.default_rng(0).uniform(-2, 2, (5, 6)):
        pose = np.eye(4)
        for turn, (a, d, alpha) in zip(joints, rows, strict=True):
            c, s, ca, sa = np.cos(turn), np.sin(turn), np.cos(alpha), np.sin(alpha)
            pose = pose @ np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]])
        assert kinematics.fk(joints)[0] == pytest.approx(pose[:3, 3], abs=1e-9)


def test_the_interfaces_of_ur_rtde_have_these_calls() -> None:
    control = pytest.importorskip("rtde_control", reason="pip install 'armstack[ur]'").RTDEControlInterface
    receive = pytest.importorskip("rtde_receive").RTDEReceiveInterface
    for name in ("setWatchdog", "kickWatchdog", "servoJ", "servoStop", "stopScript", "disconnect"):
        assert hasattr(control, name)
    for name in ("isConnected", "isEmergencyStopped", "isProtectiveStopped", "getActualQ", "getActualQd", "getActualTCPPose"):
        assert hasattr(receive, name)
    assert "time where the command is controlling" in control.servoJ.__doc__
