"""PickPlaceExpert: carries the parts, one after another, into the right bin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.pick_place import BIN_HALF, PARTS, TARGET
from sim_envs.experts.motion import OPEN, nearest_turn, towards, yaw_of
from sim_envs.experts.pick import LET_GO, Pick
from sim_envs.experts.skill import Imperfection, Skill

SYMMETRY = {"block": np.pi / 2, "can": 0.0, "bar": np.pi}
"""Turn about the vertical after which a part looks the same to the fingers, rad; 0 = any."""
HASTE = 3.0
"""How much faster than at a single lift the hand moves: the ways are long."""
CARRY_HEIGHT = 0.13
RELEASE_HEIGHT = 0.045
"""Metres over the table: on the way, and where a part is let go."""
SLOTS = ((-0.06, 0.0), (0.0, 0.06), (0.06, -0.03))
"""Where the parts go, metres from the right bin's middle."""


class PickPlaceExpert:
    """Demonstrator for PickPlace; see `make_expert`."""

    def __init__(self, skill: Skill) -> None:
        self._skill = replace(skill, speed=min(1.0, HASTE * skill.speed))

    def reset(self, seed: int) -> None:
        """Starts an episode."""
        rng = np.random.default_rng(seed)
        fault = self._skill.faults[rng.integers(len(self._skill.faults))] if self._skill.faults else None
        self._imperfection = Imperfection(self._skill, rng)
        self._pick = Pick(self._imperfection, fault)
        self._part: str | None = None
        self._yaw = 0.0
        self._released: float | None = None

    def act(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The next action (7,)."""
        return self._imperfection.spoil(self._act(obs))

    def _act(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        eef = np.asarray(obs["eef_pos"], dtype=np.float64)
        opening = float(np.asarray(obs["gripper_pos"]).reshape(-1)[0])
        if self._released is not None:
            if opening > self._released + LET_GO and eef[2] > TABLE_TOP + CARRY_HEIGHT - 0.04:
                self._released = None
            else:
                # Open first, then up, so that a rising finger takes nothing along.
                up = np.array([*eef[:2], TABLE_TOP + CARRY_HEIGHT if opening > self._released + LET_GO else eef[2]])
                return towards(obs, up, self._yaw, OPEN, self._skill.speed)
        if self._part is None:
            self._part = next((name for name in PARTS if not _placed(obs, name)), None)
            if self._part is None:
                return towards(obs, np.array([*TARGET, TABLE_TOP + CARRY_HEIGHT + 0.05]), 0.0, OPEN, self._skill.speed)
            self._pick.start()
            period = SYMMETRY[self._part]
            self._yaw = nearest_turn(yaw_of(obs[f"{self._part}_quat"]), period) if period else 0.0
        slot = np.add(TARGET, SLOTS[list(PARTS).index(self._part)])
        action = self._pick.act(obs, self._part, self._yaw, self._way(eef, slot))
        if self._pick.phase == "carry" and np.linalg.norm(eef - (*slot, TABLE_TOP + RELEASE_HEIGHT)) < 0.015:
            self._part, self._released = None, opening
        return action

    def _way(self, eef: np.ndarray, slot: np.ndarray) -> np.ndarray:
        """The next point of the way: up, across over the walls, down."""
        sideways = float(np.linalg.norm(slot - eef[:2]))
        if sideways < 0.02:
            return np.array([*slot, TABLE_TOP + RELEASE_HEIGHT])
        height = TABLE_TOP + CARRY_HEIGHT
        if eef[2] < height - 0.04:
            return np.array([*eef[:2], height])
        return np.array([*slot, height])


def _placed(obs: Mapping[str, np.ndarray], name: str) -> bool:
    position = np.asarray(obs[f"{name}_pos"], dtype=np.float64)
    return bool(np.all(np.abs(position[:2] - TARGET) < BIN_HALF) and position[2] < TABLE_TOP + 0.04)
