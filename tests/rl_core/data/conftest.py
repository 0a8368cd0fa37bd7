"""Datasets that the tests of this room share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rl_core.contract import Action, Channel, Gripper, RobotContract
from rl_core.data.derived import add_derived
from rl_core.data.episode import Dataset, Episode

JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))
PERIOD_NS = 50_000_000


@pytest.fixture
def contract() -> RobotContract:
    gripper = Gripper(name="gripper", open=0.08, closed=0.0)
    position = {"names": ("x", "y", "z"), "unit": "m", "frame": "base"}
    return RobotContract(
        robot="panda",
        observation=(
            Channel(name="joint_pos", names=JOINTS, unit="rad"),
            Channel(name="eef_pos", **position),
            Channel(name="eef_quat", kind="quaternion", frame="base"),
            Channel(name="gripper_pos", names=("gripper",), unit="m"),
            Channel(name="cube_pos", **position),
            Channel(name="gripper_to_cube_pos", **position),
        ),
        action=Action(
            names=("x", "y", "z", "rx", "ry", "rz", "gripper"),
            meaning="delta",
            space="end_effector",
            scale=(0.05,) * 3 + (0.5,) * 3 + (1.0,),
            units=("m",) * 3 + ("rad",) * 3 + ("m",),
            gripper=gripper,
        ),
    )


@pytest.fixture
def make_episode() -> Callable[..., Episode]:
    """make_episode(seed, steps, **changes): an episode of the shared contract; no number appears twice."""

    def make(seed: int = 0, steps: int = 6, **changes: Any) -> Episode:
        rng = np.random.default_rng(seed)
        walk = np.cumsum(rng.normal(scale=0.02, size=(steps + 1, 15)), axis=0)
        quaternion = rng.normal(size=(steps + 1, 4))
        observations = {
            "joint_pos": walk[:, :7],
            "eef_pos": walk[:, 7:10],
            "eef_quat": quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True),
            "gripper_pos": 0.08 * np.tanh(np.abs(walk[:, 10:11])),
            "cube_pos": walk[:, 11:14],
        }
        observations = {name: values.astype(np.float32) for name, values in add_derived(observations).items()}
        fields: dict[str, Any] = {
            "observations": observations,
            "actions": rng.uniform(-1, 1, (steps, 7)).astype(np.float32),
            "rewards": rng.random(steps).astype(np.float32),
            "terminal": False,
            "truncated": True,
            "stamps_ns": np.arange(steps + 1, dtype=np.int64) * PERIOD_NS,
            "success": bool(seed % 2),
            "uuid": f"lift-0-{seed:05d}",
            "meta": {"seed": seed},
        }
        return Episode(**{**fields, **changes})

    return make


@pytest.fixture
def make_dataset(contract: RobotContract, make_episode: Callable[..., Episode]) -> Callable[..., Dataset]:
    """make_dataset(lengths): one episode a length; every second one is terminal."""

    def make(lengths: tuple[int, ...] = (6, 3, 9)) -> Dataset:
        episodes = tuple(make_episode(seed, steps, terminal=seed % 2 == 0, truncated=seed % 2 == 1) for seed, steps in enumerate(lengths))
        return Dataset(contract=contract, episodes=episodes)

    return make
