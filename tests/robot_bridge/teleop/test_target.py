"""The teleoperator's target on a Panda that goes where it is sent, sags, or stands still."""

from __future__ import annotations

import numpy as np
import pytest

from robot_bridge.arms.base import ArmState
from robot_bridge.control.command import JointCommand
from robot_bridge.control.decode import ActionDecoder
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import panda_limits
from robot_bridge.teleop.base import Reading, SourceError
from robot_bridge.teleop.target import CATCH_UP, FASTEST, TeleopTarget
from sim_envs.arm.observation import ActionKind, world_contract
from sim_envs.arm.world import ArmWorld

PERIOD_S = 0.05
HOME = np.array([0.0, 0.2, 0.0, -2.0, 0.0, 2.2, 0.785, 0.04])
FORWARD = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
BOTH: list[ActionKind] = ["ee_delta", "joint_delta"]


@pytest.fixture(scope="module")
def kinematics() -> Kinematics:
    return Kinematics(ArmWorld("reach").kinematics_xml())


class Bench:
    """A target, and an arm that goes `share` of the way to it in a period and hangs `sag` rad lower than it is sent."""

    def __init__(self, kinematics: Kinematics, action: ActionKind, *, share: float = 0.5, sag: float = 0.0) -> None:
        self.kinematics = kinematics
        self.decoder = ActionDecoder(world_contract("reach", action).action, kinematics)
        self.target = TeleopTarget(self.decoder, kinematics, panda_limits())
        self.positions = HOME.copy()
        self.commands: list[JointCommand] = []
        self._share = share
        self._sag = np.append(np.full(7, sag), 0.0)
        self.target.start(self.measured)

    @property
    def measured(self) -> ArmState:
        position, quaternion = self.kinematics.fk(self.positions[:7])
        still = np.zeros(8)
        names = panda_limits().names
        return ArmState(stamp_ns=1, names=names, positions=self.positions.copy(), velocities=still, ee_pos=position, ee_quat=quaternion)

    def run(self, reading: Reading, periods: int = 1, *, speed: float = 0.4) -> np.ndarray:
        """Returns the last action."""
        for _ in range(periods):
            values, command = self.target.command(reading, self.measured, speed=speed, period_s=PERIOD_S, stamp_ns=1, sender="me")
            self.commands.append(command)
            self.positions += self._share * (command.positions[-1] + self._sag - self.positions)
        return values

    @property
    def position(self) -> np.ndarray:
        return self.kinematics.fk(self.positions[:7])[0]


@pytest.mark.parametrize("action", BOTH)
def test_while_nothing_is_asked_for_the_target_stays_to_the_bit_though_the_arm_sags(kinematics: Kinematics, action: ActionKind) -> None:
    bench = Bench(kinematics, action, sag=0.02)
    bench.run(Reading(twist=FORWARD), 5)
    bench.run(Reading(), 60)
    held = [command.positions.tolist() for command in bench.commands[5:]]
    assert held == [held[0]] * 60
    assert np.abs(bench.positions - bench.commands[-1].positions[0]).max() > 0.01  # it does sag, and is not followed down


@pytest.mark.parametrize("action", BOTH)
def test_a_twist_moves_the_end_effector_at_its_speed_and_no_other_way(kinematics: Kinematics, action: ActionKind) -> None:
    bench = Bench(kinematics, action)
    start = bench.position
    bench.run(Reading(twist=FORWARD), 20)
    bench.run(Reading(), 20)
    assert bench.position - start == pytest.approx([0.4 * FASTEST[0] * 1.0, 0, 0], abs=3e-3)


@pytest.mark.parametrize("action", BOTH)
def test_what_is_recorded_is_the_action_that_decodes_to_the_command(kinematics: Kinematics, action: ActionKind) -> None:
    bench = Bench(kinematics, action)
    twist = np.array([0.5, -0.3, 0.2, 0.0, 0.4, 0.6])
    for reading in (Reading(twist=twist), Reading(twist=twist, gripper=1.0), Reading()):
        before = bench.measured
        values = bench.run(reading)
        assert np.abs(values).max() <= 1.0
        decoded = bench.decoder.decode(values[None], before)[0]
        sent = bench.commands[-1].positions[0]
        assert kinematics.fk(decoded[:7])[0] == pytest.approx(kinematics.fk(sent[:7])[0], abs=1e-4)
        assert decoded[-1] == pytest.approx(sent[-1], abs=1e-6)
    assert values[-1] == pytest.approx(1.0)


def test_where_the_arm_does_not_move_the_target_runs_only_a_little_ahead(kinematics: Kinematics) -> None:
    bench = Bench(kinematics, "ee_delta", share=0.0)
    bench.run(Reading(twist=FORWARD), 100)
    ahead = kinematics.fk(bench.commands[-1].positions[0, :7])[0] - bench.position
    assert 0.01 < ahead[0] <= 0.4 * FASTEST[0] * 0.25 + 1e-4


@pytest.mark.parametrize("action", BOTH)
def test_a_pose_out_of_reach_is_refused_and_the_way_back_is_free(kinematics: Kinematics, action: ActionKind) -> None:
    bench = Bench(kinematics, action)
    bench.positions[:7] = [0.0, 1.0, 0.0, -0.5, 0.0, 1.6, 0.785]  # nearly stretched
    bench.target.start(bench.measured)
    for _ in range(60):
        bench.run(Reading(twist=FORWARD), speed=1.0)
        if bench.target.refused:
            break
    assert "out of reach" in bench.target.refused
    stopped = bench.position
    bench.run(Reading(twist=-FORWARD), 10)
    assert not bench.target.refused and bench.position[0] < stopped[0] - 0.01


def test_a_start_lets_nothing_go_and_the_gripper_turns_over(kinematics: Kinematics) -> None:
    bench = Bench(kinematics, "ee_delta")
    bench.target.start(bench.measured, gripper=1.0)  # closed on something 0.04 m wide
    assert bench.target.other_gripper == -1.0
    bench.run(Reading())
    assert bench.commands[-1].positions[0, -1] == 0.0
    bench.run(Reading(gripper=-1.0))
    assert bench.commands[-1].positions[0, -1] == pytest.approx(0.08) and bench.target.other_gripper == 1.0


@pytest.mark.parametrize("action", BOTH)
def test_the_arm_comes_to_a_leader_slowly_and_follows_then(kinematics: Kinematics, action: ActionKind) -> None:
    bench = Bench(kinematics, action)
    leader = {"panda_joint1": 0.5, "panda_joint4": -2.3}
    bench.run(Reading(joints=leader), 10)
    steps = np.abs(np.diff([command.positions[0] for command in bench.commands], axis=0))[:, [0, 3]]
    assert steps.max() <= CATCH_UP * PERIOD_S * (1.01 if action == "joint_delta" else 1.5)
    bench.run(Reading(joints=leader), 60)
    assert bench.position == pytest.approx(kinematics.fk(np.array([0.5, 0.2, 0.0, -2.3, 0.0, 2.2, 0.785]))[0], abs=2e-3)
    bench.run(Reading(joints={**leader, "panda_joint1": 0.55}), 10)  # caught: no slow way any more
    assert bench.position == pytest.approx(kinematics.fk(np.array([0.55, 0.2, 0.0, -2.3, 0.0, 2.2, 0.785]))[0], abs=2e-3)


def test_a_leader_further_away_than_the_filter_allows_is_refused_by_name_until_it_is_near(kinematics: Kinematics) -> None:
    bench = Bench(kinematics, "joint_delta")
    bench.run(Reading(joints={"panda_joint1": 1.5}), 5)
    assert "panda_joint1 to go from 0.00 to 1.50 rad at once, valid: 1.20" in bench.target.refused
    assert bench.positions == pytest.approx(HOME)
    bench.run(Reading(joints={"panda_joint1": 0.1}), 40)
    assert not bench.target.refused and bench.positions[0] == pytest.approx(0.1, abs=1e-3)
    bench.run(Reading(joints={"panda_joint1": 1.9}), 5)  # its encoder jumps
    assert "bring the leader nearer" in bench.target.refused and bench.positions[0] == pytest.approx(0.1, abs=1e-3)


def test_a_leader_of_other_joints_is_an_error_that_lists_the_arms(kinematics: Kinematics) -> None:
    with pytest.raises(SourceError, match=r"\['elbow_flex'\] are no joints of this arm; valid: \['panda_joint1'"):
        Bench(kinematics, "joint_delta").run(Reading(joints={"elbow_flex": 0.0}))
