"""LiftExpert: grasps the cube from above and holds it up. The hand is not turned: closing fingers turn the cube into line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim_envs.experts.pick import Pick
from sim_envs.experts.skill import Imperfection, Skill

LIFTED = 0.10
"""How far up the cube is held, metres over where it was first seen."""


class LiftExpert:
    """Demonstrator for Lift; see `make_expert`."""

    def __init__(self, skill: Skill) -> None:
        self._skill = skill

    def reset(self, seed: int) -> None:
        """Starts an episode."""
        rng = np.random.default_rng(seed)
        fault = self._skill.faults[rng.integers(len(self._skill.faults))] if self._skill.faults else None
        self._imperfection = Imperfection(self._skill, rng)
        self._pick = Pick(self._imperfection, fault)
        self._destination: np.ndarray | None = None

    def act(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The next action (7,)."""
        if self._destination is None:
            self._destination = np.asarray(obs["cube_pos"], dtype=np.float64) + (0.0, 0.0, LIFTED)
        return self._imperfection.spoil(self._pick.act(obs, "cube", 0.0, self._destination))
