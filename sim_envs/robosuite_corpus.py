"""A few of robosuite's own tasks made of primitives, with instructions and demonstrators. Needs robosuite only when a world is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sim_envs.experts.hand import Hand, Motion, Obs, point
from sim_envs.experts.motion import nearest_turn, yaw_of
from sim_envs.experts.skill import SKILLS
from sim_envs.experts.tagged import TaggedExpert

CAN_BIN = (0.65, 0.46)
"""Inside the can's own bin, clear of the walls that divide it from the others, metres in the base frame."""


@dataclass(frozen=True, kw_only=True)
class RobosuiteTask:
    """A task of robosuite and how it is done.

    Attributes:
        world: robosuite's name of it; `armstack/Robosuite{world}-v0` where it is registered.
        instruction: the task in words.
        primitives: tags of its motions, in order.
        play: its motions, from a hand, the tags and the first observation.
        horizon: policy steps of an episode.
    """

    world: str
    instruction: str
    primitives: tuple[str, ...]
    play: Callable[[tuple[str, ...], Hand, Obs], Motion]
    horizon: int = 250

    def expert(self, seed: int) -> TaggedExpert:
        """A skilled demonstrator for `RobosuiteEnv(world)`."""
        expert = TaggedExpert(partial(self.play, self.primitives), SKILLS["expert"])
        expert.reset(seed)
        return expert


def _lift(tags: tuple[str, ...], hand: Hand, obs: Obs) -> Motion:
    reach, grasp, lift = tags
    return (yield from hand.lift(obs, "cube", (reach, grasp, lift), point(obs, "cube")[2] + 0.10, _yaw(obs, "cube")))


def _stack(tags: tuple[str, ...], hand: Hand, obs: Obs) -> Motion:
    reach, grasp, lift, place = tags
    below = point(obs, "cubeB")
    heights = below[2] + 0.12, below[2] + 0.047  # half of either cube and 2 mm
    return (yield from hand.place(obs, "cubeA", (reach, grasp, lift, place), below[:2], heights, _yaw(obs, "cubeA")))


def _can(tags: tuple[str, ...], hand: Hand, obs: Obs) -> Motion:
    reach, grasp, lift, place = tags
    floor = point(obs, "Can")[2]
    heights = floor + 0.18, floor + 0.03
    return (yield from hand.place(obs, "Can", (reach, grasp, lift, place), np.array(CAN_BIN), heights, 0.0))


def _yaw(obs: Obs, cube: str) -> float:
    return nearest_turn(yaw_of(obs[f"{cube}_quat"]), np.pi / 2)


ROBOSUITE_TASKS: dict[str, RobosuiteTask] = {
    "robosuite_lift": RobosuiteTask(
        world="Lift", instruction="pick up the red cube", primitives=("reach_cube", "grasp_cube", "lift"), play=_lift, horizon=150
    ),
    "robosuite_stack": RobosuiteTask(
        world="Stack", instruction="put the red cube on the green cube",
        primitives=("reach_cube", "grasp_cube", "lift", "place_on_cube"), play=_stack,
    ),
    "robosuite_can": RobosuiteTask(
        world="PickPlaceCan", instruction="put the can in its bin", primitives=("reach_can", "grasp_can", "lift", "place_left"), play=_can,
        horizon=400,
    ),
}  # fmt: skip
