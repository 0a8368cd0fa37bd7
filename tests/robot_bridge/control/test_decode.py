"""From a policy's numbers to joint positions."""

import dataclasses

import numpy as np
import pytest

from rl_core.contract import Action, ContractError, Gripper
from robot_bridge.arms.base import ArmState
from robot_bridge.control.decode import ActionDecoder, ActionError, opening
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.rotation import angle_between, from_rotation_vector, multiply
from sim_envs.arm.observation import world_contract
from sim_envs.arm.world import ArmWorld

HOME = np.array([0.05, 0.2, -0.05, -2.5, 0.02, 2.8, 0.7])


@pytest.fixture(scope="module")
def kinematics() -> Kinematics:
    return Kinematics(ArmWorld.kinematics_xml())


def measured(kinematics: Kinematics, names: tuple[str, ...] | None = None) -> ArmState:
    ordered = (*kinematics.joint_names, "gripper")
    values = dict(zip(ordered, (*HOME, 0.03), strict=True))
    names = names or ordered
    position, quaternion = kinematics.fk(HOME)
    positions = np.array([values[name] for name in names])
    return ArmState(stamp_ns=0, names=names, positions=positions, velocities=np.zeros(8), ee_pos=position, ee_quat=quaternion)


def joint_action(kinematics: Kinematics, **changes: object) -> Action:
    return dataclasses.replace(world_contract("lift", "joint_delta").action, **changes)


def test_gripper_polarity_is_declared_and_both_ends_are_reached(kinematics: Kinematics) -> None:
    """robosuite's close is +1, the robot's closed is 0.0 m and its open 0.08 m; a gripper that opens the other way works too."""
    decoder = ActionDecoder(world_contract("lift").action, kinematics)
    state = measured(kinematics)
    assert decoder.decode(np.array([[0, 0, 0, 0, 0, 0, 1.0]]), state)[0, -1] == 0.0
    assert decoder.decode(np.array([[0, 0, 0, 0, 0, 0, -1.0]]), state)[0, -1] == 0.08
    assert decoder.decode(np.array([[0, 0, 0, 0, 0, 0, 0.0]]), state)[0, -1] == pytest.approx(0.04)
    percent = Gripper(name="gripper", open=0.0, closed=100.0, unit="%")
    assert opening(np.array([1.0, -1.0]), percent).tolist() == [100.0, 0.0]


def test_an_end_effector_delta_moves_the_measured_pose_in_the_base_frame(kinematics: Kinematics) -> None:
    decoder = ActionDecoder(world_contract("lift").action, kinematics)
    start, orientation = kinematics.fk(HOME)
    joints = decoder.decode(np.array([[0.4, -0.2, 0.6, 0.1, -0.2, 0.3, 0.0]]), measured(kinematics))[0]
    position, turned = kinematics.fk(joints[:7])
    assert position - start == pytest.approx([0.02, -0.01, 0.03], abs=2e-5)
    assert angle_between(turned, multiply(from_rotation_vector(np.array([0.05, -0.1, 0.15])), orientation)) < 2e-4


def test_no_delta_is_the_measured_pose_exactly(kinematics: Kinematics) -> None:
    decoder = ActionDecoder(world_contract("lift").action, kinematics)
    assert (decoder.decode(np.zeros((1, 7)), measured(kinematics))[0, :7] == HOME).all()


@pytest.mark.parametrize("meaning", ("delta", "velocity", "absolute"))
def test_joint_actions_mean_what_the_contract_says(kinematics: Kinematics, meaning: str) -> None:
    decoder = ActionDecoder(joint_action(kinematics, meaning=meaning), kinematics)
    values = np.linspace(-0.9, 0.7, 8)[None]
    step = 0.1 * values[0, :7]
    wanted = {"delta": HOME + step, "velocity": HOME + 0.05 * step, "absolute": step}[meaning]
    assert decoder.decode(values, measured(kinematics))[0, :7] == pytest.approx(wanted, abs=1e-12)


def test_deltas_of_a_chunk_add_up(kinematics: Kinematics) -> None:
    decoder = ActionDecoder(joint_action(kinematics), kinematics)
    decoded = decoder.decode(np.full((3, 8), 0.5), measured(kinematics))
    assert decoded[:, 0] == pytest.approx(HOME[0] + 0.05 * np.array([1, 2, 3]))


def test_columns_are_matched_by_name(kinematics: Kinematics) -> None:
    action = joint_action(kinematics)
    order = [6, 0, 3, 1, 2, 5, 4, 7]
    mixed = dataclasses.replace(action, names=tuple(action.names[i] for i in order))
    values = np.linspace(-0.9, 0.7, 8)[None]
    state = measured(kinematics)
    backwards = measured(kinematics, tuple(reversed(state.names)))
    expected = ActionDecoder(action, kinematics).decode(values, state)
    assert ActionDecoder(mixed, kinematics).decode(values[:, order], backwards) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ("ee_delta", "joint_delta"))
def test_encode_is_the_inverse_of_decode(kinematics: Kinematics, kind: str) -> None:
    decoder = ActionDecoder(world_contract("lift", kind).action, kinematics)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    state = measured(kinematics)
    for _ in range(10):
        values = rng.uniform(-0.5, 0.5, (1, len(decoder.action.names)))
        target = decoder.decode(values, state)[0]
        assert decoder.encode(target, state) == pytest.approx(values[0], abs=1e-3)


def test_values_outside_are_clipped_and_counted_by_name_not_silently(kinematics: Kinematics) -> None:
    decoder = ActionDecoder(world_contract("lift").action, kinematics)
    inside = decoder.decode(np.array([[0, 0, 1.0, 0, 0, 0, 1.0]]), measured(kinematics))
    outside = decoder.decode(np.array([[0, 0, 7.5, 0, 0, 0, 1.0]]), measured(kinematics))
    assert (inside == outside).all()
    assert decoder.clipped == {"z": 1}


def test_what_is_no_action_is_a_named_error(kinematics: Kinematics) -> None:
    decoder = ActionDecoder(world_contract("lift").action, kinematics)
    for bad in (np.zeros((1, 6)), np.zeros(7), np.zeros((0, 7)), np.full((1, 7), np.nan)):
        with pytest.raises(ActionError, match="valid"):
            decoder.decode(bad, measured(kinematics))


def test_an_action_of_another_arm_is_refused(kinematics: Kinematics) -> None:
    action = joint_action(kinematics)
    with pytest.raises(ContractError, match="panda_joint1"):
        ActionDecoder(dataclasses.replace(action, names=("a", *action.names[1:])), kinematics)


def test_a_command_is_due_in_two_periods_and_carries_the_chunks_offset(kinematics: Kinematics) -> None:
    absolute = ActionDecoder(joint_action(kinematics, meaning="absolute", horizon=4, execute=4), kinematics)
    command = absolute.command(np.zeros((3, 8)), measured(kinematics), stamp_ns=7, source="policy", sender="a", offset_s=0.05)
    assert command.time_from_start_s == pytest.approx([0.1, 0.15, 0.2])
    assert (command.stamp_ns, command.offset_s, command.names) == (7, 0.05, absolute.names)
    delta = ActionDecoder(world_contract("lift").action, kinematics)
    assert delta.command(np.zeros((3, 7)), measured(kinematics), stamp_ns=7, source="policy", sender="a").positions.shape == (1, 8)
