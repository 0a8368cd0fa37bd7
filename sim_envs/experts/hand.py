"""Motions of the hand that tasks are put together from, each as a generator; every action is told with its primitive's tag."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

import numpy as np

from sim_envs.experts.motion import OPEN, towards
from sim_envs.experts.pick import BESIDE_DISTANCE, LET_GO, Pick
from sim_envs.experts.skill import Imperfection, Skill

HASTE = 2.0
"""How much faster than at a single lift the hand moves."""
REST = 0.003
"""A hand that has moved less than this in a step is at rest, metres."""

Obs = Mapping[str, np.ndarray]
Motion = Generator[tuple[str, np.ndarray], Obs, Obs]
"""Yields (tag, action), is sent the next observation, returns the last one."""


class Hand:
    """One episode's hand.

    Args:
        skill: of the demonstrator.
        rng: of the episode.

    Attributes:
        fault: what goes wrong in this episode, None if nothing does.
        miss: by how much a point is missed that is not grasped, metres (3,).
        speed: largest action while moving, share of full scale.
    """

    def __init__(self, skill: Skill, rng: np.random.Generator) -> None:
        self.speed = min(1.0, HASTE * skill.speed)
        self.tolerance = skill.tolerance
        self.fault = skill.faults[rng.integers(len(skill.faults))] if skill.faults else None
        self.imperfection = Imperfection(replace(skill, speed=self.speed), rng)
        beside = rng.uniform(*BESIDE_DISTANCE) * np.array([0.0, rng.choice([-1.0, 1.0]), 0.0])
        self.miss = beside if self.fault else np.zeros(3)
        self._pick = Pick(self.imperfection, self.fault)

    def go(self, obs: Obs, tag: str, point: np.ndarray, gripper: float, yaw: float = 0.0) -> Motion:
        """Straight to a point, metres (3,)."""
        while np.linalg.norm(point - eef(obs)) > self.tolerance:
            obs = yield tag, towards(obs, point, yaw, gripper, self.speed)
        return obs

    def up(self, obs: Obs, tag: str, height: float, gripper: float, yaw: float = 0.0) -> Motion:
        """Straight up to a height, metres."""
        return (yield from self.go(obs, tag, np.array([*eef(obs)[:2], height]), gripper, yaw))

    def let_go(self, obs: Obs, tag: str, height: float, yaw: float = 0.0) -> Motion:
        """Opens first, then goes up, so that a rising finger takes nothing along."""
        point, held = eef(obs), opening(obs)
        while opening(obs) < held + LET_GO:
            obs = yield tag, towards(obs, point, yaw, OPEN, self.speed)
        return (yield from self.up(obs, tag, height, OPEN, yaw))

    def lift(self, obs: Obs, thing: str, tags: tuple[str, str, str], height: float, yaw: float) -> Motion:
        """Grasps a thing, again where it was missed, lifts it to a height and comes to rest; `tags` of reaching, grasping and lifting."""
        reach, grasp, lift = tags
        self._pick.start()
        before = eef(obs)
        while True:
            here = eef(obs)
            action = self._pick.act(obs, thing, yaw, np.array([*here[:2], height]))
            if self._pick.phase == "carry" and here[2] > height - 2 * self.tolerance and np.linalg.norm(here - before) < REST:
                return obs
            before = here
            obs = yield {"approach": reach, "carry": lift}.get(self._pick.phase, grasp), action

    def place(
        self, obs: Obs, thing: str, tags: tuple[str, str, str, str], slot: np.ndarray, heights: tuple[float, float], yaw: float
    ) -> Motion:
        """`lift`s a thing, carries it over a slot (2,) and lets it go there; `heights` on the way and at the release, metres."""
        travel, release = heights
        obs = yield from self.lift(obs, thing, tags[:3], travel, yaw)
        while True:
            sideways = float(np.linalg.norm(slot - eef(obs)[:2]))
            action = self._pick.act(obs, thing, yaw, np.array([*slot, release if sideways < self.tolerance + 0.005 else travel]))
            if self._pick.phase != "carry":  # it was lost on the way
                obs = yield from self.lift(obs, thing, tags[:3], travel, yaw)
            elif sideways < 0.02 and eef(obs)[2] < release + self.tolerance:
                return (yield from self.let_go(obs, tags[3], travel, yaw))
            else:
                obs = yield tags[3], action

    def pull(self, obs: Obs, thing: str, tags: tuple[str, str], way: np.ndarray, height: float) -> Motion:
        """Grasps a handle, again where it slipped, moves it by `way` (3,), and lets it go; `tags` of reaching and pulling."""
        reach, pull = tags
        self._pick.start()
        start, length = point(obs, thing), float(np.linalg.norm(way))
        while True:
            action = self._pick.act(obs, thing, 0.0, start + way)
            moved = float((point(obs, thing) - start) @ way) / length
            if self._pick.phase == "carry" and moved > length - 2 * self.tolerance:
                return (yield from self.let_go(obs, pull, height))
            obs = yield reach if self._pick.phase == "approach" else pull, action


def eef(obs: Obs) -> np.ndarray:
    """Where the hand is, metres (3,)."""
    return point(obs, "eef")


def opening(obs: Obs) -> float:
    """The fingers' opening, metres."""
    return float(np.asarray(obs["gripper_pos"]).reshape(-1)[0])


def point(obs: Obs, name: str) -> np.ndarray:
    """Where a thing is, metres (3,)."""
    return np.asarray(obs[f"{name}_pos"], dtype=np.float64)
