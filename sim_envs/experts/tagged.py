"""TaggedExpert: a demonstrator that says which primitive each of its actions belongs to, and when it is done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sim_envs.experts.hand import Hand, Motion, Obs, eef
from sim_envs.experts.motion import CLOSE, OPEN, towards
from sim_envs.experts.skill import Skill

Play = Callable[[Hand, Obs], Motion]
"""All motions of one task."""


class TaggedExpert:
    """Demonstrator for a task made of primitives; see `make_expert`.

    Args:
        play: the task's motions.
        skill: how well they are done.

    Attributes:
        primitive: tag of the last action.
        done: all motions were made; what follows holds the hand where it is.
    """

    def __init__(self, play: Play, skill: Skill) -> None:
        self._play = play
        self._skill = skill

    def reset(self, seed: int) -> None:
        """Starts an episode."""
        self._hand = Hand(self._skill, np.random.default_rng(seed))
        self._motion: Motion | None = None
        self.primitive = ""
        self.done = False

    def act(self, obs: Obs) -> np.ndarray:
        """The next action (7,)."""
        if self._motion is None:
            self._motion = self._act(obs)
            self.primitive, action = next(self._motion)
        else:
            self.primitive, action = self._motion.send(obs)
        return self._hand.imperfection.spoil(action)

    def _act(self, obs: Obs) -> Motion:
        gripper = OPEN
        motion = self._play(self._hand, obs)
        tag, action = next(motion)
        while True:
            gripper = CLOSE if action[-1] > 0 else OPEN
            obs = yield tag, action
            try:
                tag, action = motion.send(obs)
            except StopIteration:
                break
        self.done = True
        place = eef(obs)
        while True:
            obs = yield tag, towards(obs, place, 0.0, gripper, self._skill.speed)
