"""Channels of the arm's worlds: names, order of quaternions, derived values."""

import mujoco
import numpy as np
import pytest

from rl_core.data.derived import add_derived
from sim_envs.arm.observation import observation, world_contract
from sim_envs.arm.tasks import TASKS
from sim_envs.arm.world import ArmWorld


@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.parametrize("action", ["ee_delta", "joint_delta"])
def test_observation_has_the_contracts_channels_in_order(task, action):
    world = ArmWorld(task)
    channels, contract = observation(world.state(), task), world_contract(task, action)
    assert list(channels) == [channel.name for channel in contract.observation]
    for channel in contract.observation:
        assert channels[channel.name].shape == (channel.size,)
        assert channels[channel.name].dtype == np.float64
    assert contract.action.names[-1] == "gripper" and contract.action.gripper is not None
    assert (contract.action.gripper.open, contract.action.gripper.closed) == (0.08, 0.0)


def test_quaternions_are_xyzw_from_simulator_to_dataset():
    """A yaw of 90 degrees is z = w = 0.7071 in the channel, though MuJoCo keeps w first."""
    world = ArmWorld("lift")
    world.place("cube", (0.56, 0.0, 0.1), yaw=np.pi / 2)
    mujoco.mj_forward(world.model, world.data)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(world.data.body("cube").xquat, [half, 0, 0, half])
    contract, channels = world_contract("lift"), observation(world.state(), "lift")
    named = dict(zip(contract.channel("cube_quat").names, channels["cube_quat"], strict=True))
    assert named == pytest.approx({"x": 0.0, "y": 0.0, "z": half, "w": half})
    assert contract.channel("cube_quat").kind == "quaternion"


def test_gripper_to_object_is_object_minus_gripper():
    world = ArmWorld("lift")
    channels = observation(world.state(), "lift")
    np.testing.assert_array_equal(channels["gripper_to_cube_pos"], channels["cube_pos"] - channels["eef_pos"])
    sources = {name: value for name, value in channels.items() if not name.startswith("gripper_to_")}
    np.testing.assert_array_equal(add_derived(sources)["gripper_to_cube_pos"], channels["gripper_to_cube_pos"])


def test_end_effector_orientation_never_jumps_in_sign():
    """A turn of the last joint through its whole range moves every component of the quaternion continuously."""
    world = ArmWorld("reach")
    world.reset(0)
    quats = []
    for angle in np.linspace(-2.8, 2.8, 200):
        world.data.qpos[6] = angle
        mujoco.mj_forward(world.model, world.data)
        quats.append(world.state().eef_quat)
    assert np.abs(np.diff(quats, axis=0)).max() < 0.03


def test_readings_are_copies():
    world = ArmWorld("lift")
    reading = world.state()
    before = reading.joint_pos.copy(), reading.eef_pos.copy(), reading.objects["cube"][0].copy()
    world.set_joint_target(reading.joint_pos + 0.2, 0.0)
    world.advance(50)
    for old, kept in zip(before, (reading.joint_pos, reading.eef_pos, reading.objects["cube"][0]), strict=True):
        np.testing.assert_array_equal(old, kept)


def test_unknown_action_kind_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="ee_delta, joint_delta"):
        world_contract("lift", "torque")  # type: ignore[arg-type]
