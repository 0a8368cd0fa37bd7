"""A tiny dataset with a contract, for tests of learning: actions are a function of the observation plus noise."""

from __future__ import annotations

import numpy as np

from rl_core.contract import Action, Channel, Gripper, RobotContract
from rl_core.data.episode import Dataset, Episode

CONTRACT = RobotContract(
    robot="point",
    observation=(
        Channel(name="position", names=("x", "y", "z"), unit="m", frame="base"),
        Channel(name="goal", names=("x", "y", "z"), unit="m", frame="base"),
    ),
    action=Action(
        names=("x", "y", "z", "gripper"),
        meaning="delta",
        space="joint",
        scale=(0.1, 0.1, 0.1, 1.0),
        units=("rad", "rad", "rad", "1"),
        gripper=Gripper(name="gripper", open=0.08, closed=0.0),
    ),
)


def synthetic_dataset(*, episodes: int = 6, steps: int = 12, seed: int = 0) -> Dataset:
    """Walks towards a goal; the first episodes are clean, the later ones ever noisier, so returns differ."""
    rng = np.random.default_rng(seed)
    made = []
    for index in range(episodes):
        goal = rng.uniform(-1, 1, 3)
        position = np.zeros((steps + 1, 3))
        actions = np.zeros((steps, 4), np.float32)
        for t in range(steps):
            actions[t, :3] = np.clip(3 * (goal - position[t]) + rng.normal(0, 0.1 + 0.3 * index, 3), -1, 1)
            actions[t, 3] = 1.0 if t > steps // 2 else -1.0
            position[t + 1] = position[t] + 0.1 * actions[t, :3]
        made.append(
            Episode(
                observations={"position": position.astype(np.float32), "goal": np.tile(goal, (steps + 1, 1)).astype(np.float32)},
                actions=actions,
                rewards=-np.linalg.norm(position[1:] - goal, axis=1).astype(np.float32),
                terminal=False,
                truncated=True,
                stamps_ns=np.arange(steps + 1, dtype=np.int64) * 50_000_000,
                uuid=f"episode-{index}",
                meta={"seed": index},
            )
        )
    return Dataset(contract=CONTRACT, episodes=tuple(made), source="synthetic")
