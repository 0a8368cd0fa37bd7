"""GoalCarry: the demonstrator of the goal tasks; the thing is brought to its place and, where the task says so, let go."""

from __future__ import annotations

from functools import partial

import numpy as np

from sim_envs.arm.tasks.goal_tasks import GoalTask
from sim_envs.experts.hand import Hand, Motion, Obs, point
from sim_envs.experts.motion import CLOSE, OPEN, yaw_of
from sim_envs.experts.skill import Skill
from sim_envs.experts.tagged import TaggedExpert

LIFT = 0.05
"""How far a thing is lifted before it goes sideways, metres."""
OVER = 0.09
"""How far over its place a thing arrives, metres..."""
RELEASE = 0.02
"""...and where it is let go, metres."""


class GoalCarry(TaggedExpert):
    """Demonstrator for a goal task; see `make_expert`.

    Args:
        task: what to do.
        skill: how well.
    """

    def __init__(self, task: GoalTask, skill: Skill) -> None:
        super().__init__(partial(_play, task), skill)
        self._task = task

    def act(self, obs: Obs) -> np.ndarray:
        """The next action (7,)."""
        thing, (x, y, z) = self._task.thing, self._task.grasp
        yaw = yaw_of(obs[f"{thing}_quat"])
        held = (x * np.cos(yaw) - y * np.sin(yaw), x * np.sin(yaw) + y * np.cos(yaw), z)
        return super().act({**obs, f"{thing}_pos": point(obs, f"{thing}") + held})


def _play(task: GoalTask, hand: Hand, obs: Obs) -> Motion:
    tags = (f"reach_{task.thing}", f"grasp_{task.thing}", "lift")
    place = point(obs, "goal") + task.rest + task.grasp
    if not task.retreat:
        obs = yield from hand.lift(obs, task.thing, tags, point(obs, task.thing)[2] + LIFT, 0.0)
        return (yield from hand.go(obs, "carry", place, CLOSE))
    heights = (place[2] + OVER, place[2] + RELEASE)
    obs = yield from hand.place(obs, task.thing, (*tags, "place"), place[:2], heights, 0.0)
    return (yield from hand.go(obs, "retreat", place + (0.0, 0.0, task.retreat), OPEN))
