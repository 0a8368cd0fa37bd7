"""Which messages on `goal_pose` are goals, and the numbers that every arm offers alike."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped

from rl_core.contract import ContractMismatch, Gripper
from robot_bridge.arms.franka import franka_limits
from robot_bridge.arms.trossen import widowx_limits
from robot_bridge.arms.ur import ur_limits
from robot_bridge.control.any_arm import any_arm_contract, share_of_opening
from robot_bridge.control.decode import ActionDecoder
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import ArmLimits, panda_limits
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.driven_arm import offered_contracts
from robot_bridge.nodes.goal_input import GOAL, GoalInput
from robot_bridge.nodes.messages import MessageError
from sim_envs.arm.observation import world_contract
from sim_envs.arm.scene import kinematics_xml

ANY = any_arm_contract(world_contract("reach"))


def _goal(frame: str = "base", position: tuple[float, ...] = (0.4, 0.1, 0.3), quaternion: tuple[float, ...] = (0, 0, 0, 1)) -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id = frame
    p, q = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = (float(v) for v in position)
    q.x, q.y, q.z, q.w = (float(v) for v in quaternion)
    return message


def _input(frame: str = "base") -> GoalInput:
    return GoalInput(dataclasses.replace(ANY, condition=GOAL), panda_limits(), frame)


def test_a_goal_is_taken_and_the_next_one_is_another() -> None:
    goal = _input("left/base")
    assert goal.value is None and "publish a PoseStamped in frame 'left/base'" in goal.missing
    goal.receive(_goal("left/base"))
    first = goal.value
    assert first is not None and not goal.missing
    assert first["goal_pos"].tolist() == [0.4, 0.1, 0.3] and first["goal_quat"].tolist() == [0, 0, 0, 1]
    goal.receive(_goal("left/base"))
    assert goal.value is not None and goal.value is not first


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (_goal("world"), "goal_pose: frame 'world', valid: 'base'"),
        (_goal(position=(0.4, math.nan, 0.3)), "valid: finite metres"),
        (_goal(position=(0.4, math.inf, 0.3)), "valid: finite metres"),
        (_goal(quaternion=(0, 0, 0, 0)), "has norm 0, valid: 1"),
        (_goal(quaternion=(0, 0, 0.7, 0.9)), "has norm 1.14, valid: 1"),
        (_goal(quaternion=(0, 0, math.nan, 1)), "valid: 1"),
        (_goal(position=(0.4, 0.1, 1.5)), "inside the arm's workspace [0.1, -0.6, -0.105] .. [0.85, 0.6, 0.9] m"),
    ],
)
def test_what_is_no_goal_is_refused_and_ends_the_one_before(message: PoseStamped, says: str) -> None:
    goal = _input()
    goal.receive(_goal())
    with pytest.raises(MessageError, match=re.escape(says)):
        goal.receive(message)
    assert goal.value is None and goal.missing.startswith("the last goal was refused: goal_pose: ")
    goal.receive(_goal())
    assert goal.value is not None and not goal.missing


def test_a_goal_the_policy_cannot_take_is_ended_unless_another_came_since() -> None:
    goal = _input()
    goal.receive(_goal())
    first = goal.value
    assert first is not None
    goal.receive(_goal())
    goal.refuse(first, "too late")
    assert goal.value is not None and not goal.missing
    goal.refuse(goal.value, "0.3 m from the nearest carried state")
    assert goal.value is None and goal.missing == "the last goal was refused: goal_pose: 0.3 m from the nearest carried state"


def test_a_policy_that_is_told_where_its_hand_shall_be_is_told_the_goals_position() -> None:
    (channel,) = (channel for channel in GOAL if channel.name == "goal_eef_pos")
    goal = GoalInput(dataclasses.replace(world_contract("reach"), condition=(channel,)), panda_limits(), "base")
    assert goal.needed and goal.missing
    goal.receive(_goal(position=(0.5, -0.1, 0.2)))
    assert goal.value is not None and goal.value["goal_eef_pos"].tolist() == [0.5, -0.1, 0.2]


def test_a_policy_without_a_condition_waits_for_no_goal() -> None:
    goal = GoalInput(world_contract("reach"), panda_limits(), "base")
    assert not goal.needed and not goal.missing


# -- the numbers that every arm offers alike ----------------------------------------------------------------------------------


def _offer(name: str, limits: ArmLimits) -> ArmOffer:
    return ArmOffer(
        contracts=offered_contracts(name, limits), limits=limits, tool_frame="ee", ik_model="", sim_mode="none", clock="system",
        control_period_s=0.01,
    )  # fmt: skip


ARMS = {"franka": franka_limits("panda"), "fr3": franka_limits("fr3"), "trossen": widowx_limits()}


@pytest.mark.parametrize("name", ARMS)
def test_one_end_effector_contract_fits_arms_of_other_joints_and_other_hands(name: str) -> None:
    offer = _offer(name, ARMS[name])
    assert offer.contract_for(ANY).action.gripper == ANY.action.gripper
    jaw = Gripper(name="jaw", open=0.0, closed=0.7, unit="rad")
    renamed = dataclasses.replace(
        ARMS[name], names=(*ARMS[name].names[:-1], "jaw"), position_max=(*ARMS[name].position_max[:-1], 0.7), gripper=jaw
    )
    assert _offer(name, renamed).contract_for(ANY)


def test_an_arm_without_a_gripper_is_refused_by_name() -> None:
    with pytest.raises(ContractMismatch, match="gripper_opening: needed"):
        _offer("ur", ur_limits("ur5e")).contract_for(ANY)


def test_a_joint_space_policy_of_one_arm_is_refused_on_another_by_name() -> None:
    of_panda = world_contract("reach", "joint_delta").select(["joint_pos", "joint_vel", "gripper_pos"])
    assert _offer("franka", ARMS["franka"]).contract_for(of_panda).action.space == "joint"
    for other in ("fr3", "trossen"):
        with pytest.raises(ContractMismatch) as refused:
            _offer(other, ARMS[other]).contract_for(of_panda)
        text = str(refused.value)
        assert "observation.joint_pos.names: needs ('panda_joint1'" in text and "action.names: needs ('panda_joint1'" in text
        assert f"offered ('{ARMS[other].names[0]}'" in text


@pytest.mark.parametrize(("value", "share"), [(-1.0, 1.0), (1.0, 0.0), (0.0, 0.5)])
def test_a_share_of_the_opening_is_that_share_of_this_arms_hand(value: float, share: float) -> None:
    hand = Gripper(name="jaw", open=0.1, closed=0.7, unit="rad")  # closes the other way
    decoder = ActionDecoder(ANY.action, Kinematics(kinematics_xml()), gripper=hand)
    assert decoder.names[-1] == "jaw"
    from robot_bridge.arms.base import ArmState

    home = np.array([0.0, 0.3, 0.0, -2.2, 0.0, 2.5, 0.8, 0.1])
    state = ArmState(
        stamp_ns=0, names=decoder.names, positions=home, velocities=np.zeros(8), ee_pos=np.zeros(3), ee_quat=np.array([0, 0, 0, 1.0])
    )
    opened = decoder.decode(np.array([[0, 0, 0, 0, 0, 0, value]]), state)[0, -1]
    assert opened == pytest.approx(hand.closed + share * (hand.open - hand.closed))
    assert share_of_opening(float(opened), hand) == pytest.approx(share)
    assert decoder.encode(decoder.decode(np.array([[0, 0, 0, 0, 0, 0, value]]), state)[0], state)[-1] == pytest.approx(value)
