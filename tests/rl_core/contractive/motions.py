"""Small datasets of motions: a curve in the plane, and an arm's tool pose with a gripper."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from rl_core.contract import Action, Channel, Gripper, RobotContract
from rl_core.contractive import ContractiveConfig, ContractiveLearner
from rl_core.data.episode import Dataset, Episode
from rl_core.methods import make_source

PERIOD_S = 0.05
PLANE = RobotContract(
    robot="pen",
    observation=(Channel(name="position", names=("x", "y"), unit="mm", frame="target"),),
    action=Action(
        names=("x", "y"), meaning="velocity", space="end_effector", scale=(400.0, 400.0), units=("mm/s",) * 2, frame="target",
        period_s=PERIOD_S,
    ),
)  # fmt: skip
ARM = RobotContract(
    robot="arm",
    observation=(
        Channel(name="joint_pos", names=tuple(f"j{i}" for i in range(7)), unit="rad"),
        Channel(name="eef_pos", names=("x", "y", "z"), unit="m", frame="base"),
        Channel(name="eef_quat", kind="quaternion", frame="base"),
        Channel(name="cube_pos", names=("x", "y", "z"), unit="m", frame="base"),
    ),
    action=Action(
        names=("x", "y", "z", "rx", "ry", "rz", "gripper"),
        meaning="delta",
        space="end_effector",
        scale=(0.5,) * 6 + (1.0,),
        units=("m", "m", "m", "rad", "rad", "rad", "1"),
        period_s=PERIOD_S,
        gripper=Gripper(name="gripper", open=0.08, closed=0.0),
    ),
)


def _episode(observations: dict[str, Any], actions: np.ndarray, uuid: str) -> Episode:
    return Episode(
        observations={name: np.asarray(values, np.float32) for name, values in observations.items()},
        actions=actions.astype(np.float32),
        rewards=np.zeros(len(actions), np.float32),
        terminal=True,
        truncated=False,
        stamps_ns=np.arange(len(actions) + 1, dtype=np.int64) * round(PERIOD_S * 1e9),
        uuid=uuid,
    )


def plane_dataset(*, episodes: int = 2, steps: int = 24, end: tuple[float, float] = (0.0, 0.0)) -> Dataset:
    """An arc of 40 mm from (-40, 0) that slows down, shifted to end at `end`."""
    made = []
    for index in range(episodes):
        s = np.linspace(0, 1, steps + 1) ** 0.7
        path = np.stack([-40 * (1 - s), (12 + index) * np.sin(np.pi * s)], axis=1) + np.array(end)
        velocity = np.diff(path, axis=0) / PERIOD_S / np.array(PLANE.action.scale)
        made.append(_episode({"position": path}, velocity, f"arc-{index}"))
    return Dataset(contract=PLANE, episodes=tuple(made), source="arcs")


def arm_dataset(*, episodes: int = 3, steps: int = 30) -> Dataset:
    """Reaching for a cube from above, turning about z by 0.6 rad on the way; the gripper closes in the last third."""
    rng = np.random.default_rng(0)
    made = []
    for index in range(episodes):
        length = steps + 2 * index
        s = np.linspace(0, 1, length + 1)[:, None]
        cube = np.array([0.5, 0.0, 0.02]) + rng.uniform(-0.05, 0.05, 3) * [1, 1, 0]
        start = cube + np.array([-0.15, 0.05, 0.2])
        position = start + (cube + [0, 0, 0.01] - start) * s
        position[:, 2] += 0.05 * np.sin(np.pi * s[:, 0])
        down = Rotation.from_rotvec([np.pi, 0, 0])
        turns = Rotation.from_rotvec(np.stack([0 * s[:, 0], 0 * s[:, 0], 0.6 * (1 - s[:, 0])], axis=1)) * down
        actions = np.zeros((length, 7))
        actions[:, :3] = np.diff(position, axis=0) / 0.5
        actions[:, 5] = -0.6 / length / 0.5
        actions[:, 6] = np.where(s[:-1, 0] > 0.66, 1.0, -1.0)
        observations = {
            "joint_pos": rng.normal(size=(length + 1, 7)),
            "eef_pos": position,
            "eef_quat": turns.as_quat(),
            "cube_pos": np.tile(cube, (length + 1, 1)),
        }
        made.append(_episode(observations, actions, f"reach-{index}"))
    return Dataset(contract=ARM, episodes=tuple(made), source="reaches")


def trained(dataset: Dataset, updates: int, **overrides: Any) -> ContractiveLearner:
    """A small learner after some updates."""
    small = {"c": 1.1, "latent": 8, "horizon": 25, "blocks": 2, "block_width": 8, "jitter_copies": 2, "lr_decay_steps": max(updates, 1)}
    config = ContractiveConfig(**{**small, **overrides})
    learner = ContractiveLearner(config, dataset.contract, seed=0, data=dataset)
    source = make_source("contractive", config, dataset, seed=0)
    for _ in range(updates):
        learner.update(source.next_batch())
    return learner
