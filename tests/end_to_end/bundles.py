"""Small bundles of methods that learn in worlds: random weights, scaled by what the arm really shows."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.learner import DVFBLearner
from rl_core.dvfb.policy import with_goal
from rl_core.dvfb.states import CarriedStates
from rl_core.pear.config import PEARConfig
from rl_core.pear.learner import PEARLearner
from sim_envs.arm.goal_worlds import ArmGoalWorlds
from sim_envs.arm.reward_free import ExploreArm
from sim_envs.reward_free.labelled import flat

SMALL = {"z_dim": 8, "hidden": 32, "feature": 16, "backward_hidden": 32, "novelty_features": 8}
STATES = 400


def pear_bundle(folder: Path, *, task: str = "goal_pick", gain: float = 1.0, **changes: Any) -> Path:
    """Two levels for the arm's goal world; `gain` widens the last layers, so that weights as they are drawn ask for more than nothing."""
    worlds = ArmGoalWorlds(8, task)
    try:
        config = PEARConfig.preset("cpu").override(**{"hidden": (32, 32), "primitive_steps": 7, **changes})
        learner = PEARLearner(config, worlds.contract, worlds.goal, seed=1)
        seen = worlds.reset(range(8))
    finally:
        worlds.close()
    learner.observe(seen["observation"], np.concatenate([seen["desired_goal"], seen["achieved_goal"]]))
    bundle = learner.bundle()
    weights = {name: value * gain if value.shape[0] in (8, 12) else value for name, value in bundle.weights.items()}
    return dataclasses.replace(bundle, weights=weights).save(folder)


@cache
def _explored() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    env, rng = ExploreArm("reach"), np.random.default_rng(0)
    rows: list[tuple[Any, Any, Any]] = []
    while len(rows) < STATES:
        before, _ = env.reset(seed=len(rows))
        action = rng.uniform(-1, 1, 7).astype(np.float32)
        for _ in range(40):
            after, *_, info = env.step(action)
            rows.append((flat(before), info["action_applied"], flat(after)))
            before = after
    observation, action, following = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    return observation, action, following


def dvfb_bundle(folder: Path, *, goals: bool = True, **changes: Any) -> Path:
    """A skill for every reward over states of the arm's hand; with `goals` it is told where the hand shall be."""
    observation, action, following = (torch.from_numpy(values) for values in _explored())
    learner = DVFBLearner(DVFBConfig.preset("cpu").override(**{**SMALL, **changes}), ExploreArm("reach").contract, seed=1)
    states = CarriedStates(observation=observation, action=action, next_observation=following)
    bundle = dataclasses.replace(learner.bundle(), arrays=states.arrays())
    return (with_goal(bundle, "eef_pos") if goals else bundle).save(folder)


def seen_places(folder: Path) -> NDArray[np.float64]:
    """Positions (N, 3) of the hand that a bundle's states hold, metres."""
    from rl_core.bundle import Bundle

    return Bundle.load(folder).arrays["states.next_observation"][:, :3].double().numpy()
