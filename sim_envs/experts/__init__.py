"""Scripted demonstrators for the arm's tasks, in three skills. They know neither ROS nor a simulator: channels in, `ee_delta` out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from sim_envs.experts.lift import LiftExpert
from sim_envs.experts.pick_place import PickPlaceExpert
from sim_envs.experts.reach import ReachExpert
from sim_envs.experts.skill import SKILLS, Skill, SkillName

__all__ = ["EXPERTS", "SKILLS", "Expert", "Skill", "SkillName", "make_expert"]


class Expert(Protocol):
    """Acts on observation channels; equal seeds and observations give equal actions."""

    def reset(self, seed: int) -> None:
        """Starts an episode."""
        ...

    def act(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The next `ee_delta` action (7,) in [-1, 1], float64."""
        ...


EXPERTS: dict[str, type[ReachExpert] | type[LiftExpert] | type[PickPlaceExpert]] = {
    "reach": ReachExpert,
    "lift": LiftExpert,
    "pick_place": PickPlaceExpert,
}


def make_expert(task: str, skill: SkillName = "expert", seed: int = 0) -> Expert:
    """A demonstrator for `task`.

    Args:
        task: `reach`, `lift` or `pick_place`.
        skill: `expert`, `sloppy` (slow, noisy, succeeds mostly) or `failing` (sure of itself and wrong).
        seed: of the first episode; `reset` takes the next ones.

    Raises:
        ValueError: unknown task or skill; names the valid ones.
    """
    if task not in EXPERTS:
        raise ValueError(f"no expert for task {task!r}; tasks: {', '.join(EXPERTS)}")
    if skill not in SKILLS:
        raise ValueError(f"no skill {skill!r}; skills: {', '.join(SKILLS)}")
    expert = EXPERTS[task](SKILLS[skill])
    expert.reset(seed)
    return expert
