"""One demonstration of a task made of primitives, as an episode with its tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium

from rl_core.data.annotations import PRIMITIVES, primitive_runs
from rl_core.data.episode import Episode
from robot_bridge.recorded_steps import RecordedSteps
from sim_envs.experts.tagged import TaggedExpert

SETTLED = 5
"""A demonstration ends once it has been successful for this many steps after the last motion."""


def play_to_success(
    env: gymnasium.Env[Any, Any], expert: TaggedExpert, seed: int, *, uuid: str, facts: Mapping[str, Any]
) -> Episode | None:
    """Plays a demonstrator from the start that `seed` gives until its task is done; None where it isn't before the time limit.

    Args:
        env: a world with a `contract`; `info["action_applied"]` is kept where it has it.
        expert: the demonstrator, reset with `seed` here.
        seed: of the world and the demonstrator.
        uuid: of the episode.
        facts: for the episode's meta, to which the seed and the primitives are added.
    """
    observation, _ = env.reset(seed=seed)
    expert.reset(seed)
    steps, tags = RecordedSteps(env, observation), []
    settled, over = 0, False
    while settled < SETTLED:
        if over:
            return None
        action = expert.act(observation)
        tags.append(expert.primitive)
        observation, terminated, truncated, info = steps.step(action)
        over = terminated or truncated
        settled = settled + 1 if expert.done and info["success"] else 0
    return steps.episode(
        terminal=False,  # success ends no episode of these worlds
        truncated=True,
        success=True,
        uuid=uuid,
        meta={**facts, "seed": seed, "skill": "expert", PRIMITIVES: primitive_runs(tags)},
    )
