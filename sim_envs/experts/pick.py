"""Picking one object from above: approach, close, carry; with the faults that a demonstrator may have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim_envs.experts.motion import CLOSE, OPEN, towards
from sim_envs.experts.skill import Fault, Imperfection

FUNNEL = 3.0
"""Height kept over the object, metres a metre of sideways distance: the way in is a cone."""
HOVER = 0.09
"""Most height kept over the object, metres."""
GRIP_STALL = 0.0005
"""The fingers have met something, or each other, when they move less than this a step, metres."""
EMPTY = 0.008
"""An opening below this holds nothing, metres."""
LET_GO = 0.01
"""Fingers that have opened by this have let go, metres."""
LOST = 0.045
"""An object farther from the hand than this is not held, metres."""

EARLY_HEIGHT = (0.035, 0.05)
BESIDE_DISTANCE = (0.045, 0.055)
DROP_RISE = (0.006, 0.011)
DWELL = (4, 9)
"""What faulty demonstrators do, drawn an episode: metres over the object, metres beside it, metres risen (Lift is done at 19 mm), steps
of waiting."""


class Pick:
    """The state machine for one object after another; `phase` is `approach`, `close`, `carry`, `dwell`, `release` or `gave_up`.

    Args:
        imperfection: habits and random numbers of the episode.
        fault: what goes wrong, None if nothing does.
    """

    def __init__(self, imperfection: Imperfection, fault: Fault | None) -> None:
        self._imperfection = imperfection
        self._fault = fault
        rng = imperfection.rng
        self._early = np.array([0.0, 0.0, rng.uniform(*EARLY_HEIGHT)])
        self._beside = rng.uniform(*BESIDE_DISTANCE) * np.array([0.0, rng.choice([-1.0, 1.0]), 0.0])
        self._rise = rng.uniform(*DROP_RISE)
        self._dwell = int(rng.integers(*DWELL))
        self.start()

    def start(self) -> None:
        """Begins with an object, or begins again."""
        self.phase = "approach"
        self._aim = self._imperfection.aim()
        self._waited = 0
        self._opening = np.inf
        self._grasp = np.zeros(3)

    def act(self, obs: Mapping[str, np.ndarray], name: str, yaw: float, destination: np.ndarray) -> np.ndarray:
        """The action (7,) before imperfections.

        Args:
            obs: channels with `NAME_pos`.
            name: the object.
            yaw: of the grasp, rad.
            destination: where to carry the object, metres: (3,).
        """
        eef, thing = (np.asarray(obs[key], dtype=np.float64) for key in ("eef_pos", f"{name}_pos"))
        opening = float(np.asarray(obs["gripper_pos"]).reshape(-1)[0])
        speed = self._imperfection.skill.speed
        self._next_phase(eef, thing, opening)
        if self.phase == "approach":
            return towards(obs, self._approach_point(eef, thing), yaw, OPEN, speed)
        if self.phase == "close":
            return towards(obs, self._grasp, yaw, CLOSE, speed)
        if self.phase == "carry":
            return towards(obs, destination, yaw, CLOSE, speed)
        if self.phase in ("dwell", "release"):
            return towards(obs, self._grasp + (0.0, 0.0, self._rise), yaw, CLOSE if self.phase == "dwell" else OPEN, speed)
        return towards(obs, destination, yaw, OPEN if self._fault == "drop" else CLOSE, speed)

    def _next_phase(self, eef: np.ndarray, thing: np.ndarray, opening: float) -> None:
        if self.phase == "approach" and np.linalg.norm(self._target(thing) - eef) < self._imperfection.skill.tolerance:
            self._enter("close")
            self._grasp = self._target(thing)
        elif self.phase == "close":
            stalled = abs(self._opening - opening) < GRIP_STALL
            self._opening = opening
            self._waited += 1
            if self._waited >= 4 and stalled:
                # Who closed in the wrong place is sure to have it, and lifts.
                self._enter({"drop": "dwell", None: "carry"}.get(self._fault, "gave_up"))
        elif self.phase == "carry":
            if opening < EMPTY or np.linalg.norm(thing - eef) > LOST:
                self.start()
        elif self.phase == "dwell":
            self._waited += 1
            if self._waited > self._dwell:
                self._enter("release")
        elif self.phase == "release" and opening > self._opening + LET_GO:
            self._enter("gave_up")

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self._waited = 0

    def _target(self, thing: np.ndarray) -> np.ndarray:
        offset = {"early": self._early, "beside": self._beside}.get(self._fault or "", np.zeros(3))
        return thing + self._aim + offset

    def _approach_point(self, eef: np.ndarray, thing: np.ndarray) -> np.ndarray:
        target = self._target(thing)
        sideways = float(np.linalg.norm((target - eef)[:2]))
        return target + (0.0, 0.0, min(FUNNEL * max(sideways - 0.005, 0.0), HOVER))
