"""ReachExpert: goes straight to the goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sim_envs.experts.motion import OPEN, towards
from sim_envs.experts.skill import Imperfection, Skill

HASTE = 2.0
"""How much faster than at a lift the hand moves: there is nothing to hit."""
WRONG_GOAL = (0.05, 0.08)
"""How far from the goal a failing demonstrator stops, metres."""


class ReachExpert:
    """Demonstrator for Reach; see `make_expert`."""

    def __init__(self, skill: Skill) -> None:
        self._skill = replace(skill, speed=HASTE * skill.speed)

    def reset(self, seed: int) -> None:
        """Starts an episode."""
        rng = np.random.default_rng(seed)
        self._imperfection = Imperfection(self._skill, rng)
        self._offset = self._imperfection.aim()
        self._wrong = rng.standard_normal(3) if self._skill.faults else None
        self._wrong_by = rng.uniform(*WRONG_GOAL)

    def act(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The next action (7,)."""
        goal = np.asarray(obs["goal_pos"], dtype=np.float64)
        if self._wrong is not None:
            # Beside the goal as seen from the start, so that the way does not lead through it.
            way = goal - np.asarray(obs["eef_pos"], dtype=np.float64)
            beside = self._wrong - way * (self._wrong @ way) / max(float(way @ way), 1e-9)
            self._offset, self._wrong = beside * (self._wrong_by / np.linalg.norm(beside)), None
        return self._imperfection.spoil(towards(obs, goal + self._offset, 0.0, OPEN, self._skill.speed))
