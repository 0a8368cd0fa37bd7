"""How well a demonstrator does its task, in numbers, and the imperfections those numbers make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

SkillName = Literal["expert", "sloppy", "failing"]
Fault = Literal["early", "drop", "beside"]


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A demonstrator's habits.

    Attributes:
        speed: largest action while moving, share of full scale.
        noise: standard deviation of the correlated noise on motions, share of full scale.
        aim: standard deviation of the misplaced aim of each attempt, metres in x and y.
        tolerance: how near to the aim is near enough, metres.
        pause: chance of a pause beginning at a step.
        faults: what goes wrong, one drawn an episode: `early` closes over the object, `drop` opens again while lifting,
            `beside` grasps next to the object. Whoever has a fault never tries again.
    """

    speed: float
    noise: float
    aim: float
    tolerance: float
    pause: float = 0.0
    faults: tuple[Fault, ...] = ()


SKILLS: dict[SkillName, Skill] = {
    "expert": Skill(speed=0.25, noise=0.03, aim=0.001, tolerance=0.008),
    "sloppy": Skill(speed=0.16, noise=0.07, aim=0.012, tolerance=0.014, pause=0.03),
    "failing": Skill(speed=0.25, noise=0.03, aim=0.001, tolerance=0.008, faults=("drop", "drop", "drop", "early", "beside")),
}


class Imperfection:
    """Noise, pauses and misplaced aims of one episode."""

    def __init__(self, skill: Skill, rng: np.random.Generator) -> None:
        self.skill = skill
        self.rng = rng
        self._drift = np.zeros(6)
        self._pause = 0

    def aim(self) -> np.ndarray:
        """A new misplaced aim (3,), metres; none in height."""
        return np.append(self.skill.aim * self.rng.standard_normal(2), 0.0)

    def spoil(self, action: np.ndarray) -> np.ndarray:
        """The action as this demonstrator makes it: (7,) clipped to [-1, 1]; the gripper's entry stays."""
        # An AR(1) process: correlated over some 0.15 s, as a hand's deviations are; stationary deviation `noise`.
        self._drift = 0.7 * self._drift + np.sqrt(1 - 0.7**2) * self.skill.noise * self.rng.standard_normal(6)
        starts = self.rng.random() < self.skill.pause
        length = int(self.rng.integers(4, 13))  # drawn every step, so that the stream never depends on what happened
        if self._pause > 0:
            self._pause -= 1
        elif starts:
            self._pause = length
        moved = action.copy()
        moved[:6] = 0.0 if self._pause > 0 else moved[:6] + self._drift
        return np.clip(moved, -1.0, 1.0)
