"""One demonstration of a task made of primitives, as an episode with its tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from rl_core.data.annotations import PRIMITIVES, primitive_runs
from rl_core.data.episode import Episode
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
    observations, actions, applied, rewards, tags = [observation], [], [], [], []
    settled, over = 0, False
    while settled < SETTLED:
        if over:
            return None
        action = expert.act(observation)
        tags.append(expert.primitive)
        observation, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        observations.append(observation)
        actions.append(action)
        applied.append(info.get("action_applied", action))
        rewards.append(reward)
        settled = settled + 1 if expert.done and info["success"] else 0
    period_ns = round(env.get_wrapper_attr("contract").action.period_s * 1e9)
    return Episode(
        observations={name: np.stack([o[name] for o in observations]) for name in observation},
        actions=np.asarray(actions, np.float32),
        action_applied=np.asarray(applied, np.float32),
        rewards=np.asarray(rewards, np.float32),
        terminal=False,  # success ends no episode of these worlds
        truncated=True,
        stamps_ns=np.arange(len(observations), dtype=np.int64) * period_ns,
        success=True,
        uuid=uuid,
        meta={**facts, "seed": seed, "skill": "expert", PRIMITIVES: primitive_runs(tags)},
    )
