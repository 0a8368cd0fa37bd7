"""One turn, from the simulator through a dataset on disk to a ROS message."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import read_dataset, write_dataset
from robot_bridge.nodes.messages import pose, pose_arrays
from sim_envs.arm.observation import observation, world_contract
from sim_envs.arm.world import ArmWorld


def test_quaternion_order_is_xyzw_from_the_simulator_through_a_dataset_to_a_message(tmp_path: Path) -> None:
    """90 degrees of yaw are (0.7071, 0, 0, 0.7071) in MuJoCo, which keeps w first, and z = w = 0.7071 from there on."""
    half = np.sqrt(0.5)
    world = ArmWorld("lift")
    world.place("cube", (0.56, 0.0, 0.1), yaw=np.pi / 2)
    mujoco.mj_forward(world.model, world.data)
    np.testing.assert_allclose(world.data.body("cube").xquat, [half, 0, 0, half], atol=1e-12)
    seen = {name: np.stack([values, values]).astype(np.float32) for name, values in observation(world.state(), "lift").items()}
    episode = Episode(
        observations=seen,
        actions=np.zeros((1, 7), np.float32),
        rewards=np.zeros(1, np.float32),
        terminal=False,
        truncated=True,
        stamps_ns=np.array([0, 50_000_000], np.int64),
        uuid="turned",
    )
    path = write_dataset(Dataset(contract=world_contract("lift"), episodes=(episode,)), tmp_path / "turned.hdf5")
    dataset = read_dataset(path)
    channel, stored = dataset.contract.channel("cube_quat"), dataset.episodes[0].observations["cube_quat"][0]
    assert channel.kind == "quaternion" and channel.names == ("x", "y", "z", "w")
    message = pose(np.zeros(3), stored.astype(np.float64), frame="base", stamp_ns=0)
    turn = message.pose.orientation
    np.testing.assert_allclose([turn.x, turn.y, turn.z, turn.w], [0, 0, half, half], atol=1e-6)
    np.testing.assert_allclose(pose_arrays(message)[1], stored, atol=1e-6)
