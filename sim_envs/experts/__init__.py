"""Scripted demonstrators for the arm's tasks, in three skills. They know neither ROS nor a simulator: channels in, `ee_delta` out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import numpy as np

from sim_envs.arm.tasks.goal_tasks import GOAL_TASKS
from sim_envs.arm.tasks.workbench import WORKBENCH
from sim_envs.experts.goal_carry import GoalCarry
from sim_envs.experts.lift import LiftExpert
from sim_envs.experts.pick_place import PickPlaceExpert
from sim_envs.experts.reach import ReachExpert
from sim_envs.experts.skill import SKILLS, Skill, SkillName
from sim_envs.experts.sort import play_sort
from sim_envs.experts.tagged import TaggedExpert
from sim_envs.experts.workbench import play_steps

__all__ = ["EXPERTS", "SKILLS", "Expert", "Skill", "SkillName", "TaggedExpert", "make_expert", "make_tagged_expert"]


class Expert(Protocol):
    """Acts on observation channels; equal seeds and observations give equal actions."""

    def reset(self, seed: int) -> None:
        """Starts an episode."""
        ...

    def act(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The next `ee_delta` action (7,) in [-1, 1], float64."""
        ...


EXPERTS: dict[str, Callable[[Skill], Expert]] = {
    "reach": ReachExpert,
    "lift": LiftExpert,
    "pick_place": PickPlaceExpert,
    "sort": partial(TaggedExpert, play_sort),
    **{name: partial(TaggedExpert, partial(play_steps, task.steps)) for name, task in WORKBENCH.items()},
    **{name: partial(GoalCarry, task) for name, task in GOAL_TASKS.items()},
}


def make_expert(task: str, skill: SkillName = "expert", seed: int = 0) -> Expert:
    """A demonstrator for `task`.

    Args:
        task: `reach`, `lift`, `pick_place`, `sort`, a task of the workbench or one with a goal (whose demonstrator is a `TaggedExpert`).
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


def make_tagged_expert(task: str, seed: int = 0) -> TaggedExpert:
    """A skilled demonstrator that tells its primitives; see `make_expert`.

    Raises:
        ValueError: the task is not made of primitives; names those that are.
    """
    expert = make_expert(task, "expert", seed) if task in EXPERTS else None
    if not isinstance(expert, TaggedExpert):
        raise ValueError(f"no tagged expert for task {task!r}; tasks: {', '.join((*WORKBENCH, *GOAL_TASKS))}")
    return expert
