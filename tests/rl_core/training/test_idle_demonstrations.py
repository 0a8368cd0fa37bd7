"""Pauses in demonstrations: a policy trained on them stays in the pose of the pause."""

from __future__ import annotations

import numpy as np
import torch
from tensordict import TensorDict

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.checkup import check_dataset
from rl_core.data.editing import trim
from rl_core.data.episode import Dataset, Episode
from rl_core.methods import get_method, make_learner, make_source, training_data

IDLE, MOVING = 40, 20
STEP_M = 0.02
AXES = ("x", "y", "z")
CONTRACT = RobotContract(
    robot="point",
    observation=(Channel(name="eef_pos", names=AXES, unit="m", frame="base"),),
    action=Action(names=AXES, meaning="delta", space="end_effector", scale=(STEP_M,) * 3, units=("m",) * 3),
)


def demonstrations() -> Dataset:
    """From a start of its own each waits 40 steps, then goes 0.4 m along x."""
    rng = np.random.default_rng(0)
    episodes = []
    for index in range(10):
        actions = np.zeros((IDLE + MOVING, 3), np.float32)
        actions[IDLE:, 0] = 1.0
        path = np.cumsum(np.vstack([np.zeros(3), STEP_M * actions]), axis=0) + rng.normal(scale=0.01, size=3)
        episodes.append(
            Episode(
                observations={"eef_pos": path.astype(np.float32)},
                actions=actions,
                rewards=np.zeros(len(actions), np.float32),
                terminal=True,
                truncated=False,
                stamps_ns=np.arange(len(path), dtype=np.int64) * 50_000_000,
                success=True,
                uuid=f"paused-{index}",
            )
        )
    return Dataset(contract=CONTRACT, episodes=tuple(episodes))


def way(dataset: Dataset) -> float:
    """How far along x behaviour cloning of `dataset` comes in 20 steps from the start, m."""
    config = get_method("bc").config_class.preset("cpu").override(batch_size=128, hidden=(64, 64))
    data = training_data("bc", dataset)
    learner, source = make_learner("bc", config, data, seed=0), make_source("bc", config, data, seed=0)
    for _ in range(300):
        learner.update(source.next_batch())
    policy = learner.policy()
    position = torch.zeros(1, 3)
    state = policy.reset([0])
    for _ in range(MOVING):
        chunk, state = policy.act(TensorDict({"eef_pos": position}, batch_size=[1]), policy.prepare({}), state)
        position = position + STEP_M * chunk.values[:, 0]
    return float(position[0, 0])


def test_a_policy_of_demonstrations_with_pauses_leaves_the_pose_once_they_are_trimmed() -> None:
    paused = demonstrations()
    figures = check_dataset(paused).figures
    assert figures["idle_share"] == IDLE / (IDLE + MOVING) and figures["idle_at_start"] == [IDLE] * 10
    trimmed = trim(paused, idle=0).dataset
    assert check_dataset(trimmed).figures["idle_share"] == 0
    whole_way = STEP_M * MOVING
    assert way(trimmed) > 0.7 * whole_way
    assert way(paused) < 0.5 * whole_way  # the fault itself
