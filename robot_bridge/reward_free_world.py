"""Worlds that give no reward unless one is named: what a command makes of its --reward."""

from __future__ import annotations

from typing import Any

from rl_core.errors import ArmstackError
from rl_core.training.worlds import make_world


def reward_kwargs(world: str, reward: str) -> dict[str, Any]:
    """Arguments of the Gymnasium world `world` for the named reward `reward`; none where it is "" and the world has rewards of its own.

    Raises:
        ArmstackError: no such world; it knows no such reward, or gives none unless it is named. Names the valid ones.
    """
    env = make_world(world)
    named = sorted(env.get_wrapper_attr("rewards")) if env.has_wrapper_attr("rewards") else []
    env.close()
    if named and reward not in named:
        found = f"knows no {reward!r}" if reward else "gives no reward of its own"
        raise ArmstackError(f"--reward: {world} {found}, valid: {', '.join(named)}")
    if reward and not named:
        raise ArmstackError(f"--reward {reward}: {world} has no named rewards; leave it out")
    return {"reward": reward} if reward else {}
