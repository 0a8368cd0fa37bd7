"""RopeWorlds: ropes that are poked into shapes. A goal is a shape that a few pokes across the rope have made."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.pear.worlds import Demonstration, GoalObservation, GoalSpace, GoalWorldError
from sim_envs.rope.pictures import draw_rope
from sim_envs.rope.poker import poke_across, poke_towards
from sim_envs.rope.rope import BEADS, HIGH, LOW, Rope

THRESHOLD = 0.15
"""Norm of all beads' distances from their goals, metres [code]; 3.9 cm a bead."""
FAR = 0.3
"""Norm of the distances between the straight rope and a goal, at least, metres."""
POKES = 4
"""Pokes that make a goal, at least."""
_MIDDLE, _HALF = (LOW + HIGH) / 2, (HIGH - LOW) / 2
_NAMES = tuple(f"bead{i}_{axis}" for i in range(BEADS) for axis in "xy")

CONTRACT = RobotContract(
    robot="rope_poker",
    observation=(
        Channel(name="beads", names=_NAMES, unit="m", frame="base"),
        Channel(name="desired_goal", names=_NAMES, unit="m", frame="base"),
    ),
    action=Action(
        names=("x", "y", "direction"), meaning="absolute", space="end_effector", scale=(*_HALF, math.pi), units=("m", "m", "rad"),
        frame="field", period_s=0.1,
    ),
)  # fmt: skip


class RopeWorlds:
    """`n` ropes; a `rl_core.pear.worlds.GoalWorlds`, registered as `armstack/Rope-v0`.

    Observation: the beads (30,), metres. Goal: where they shall be. Action: a whole poke of 8 cm, its start in the field (x, y, from the
    field's middle) and its direction from +x, (-pi, pi]; it takes some 0.5 s.

    Args:
        n: how many.
    """

    contract = CONTRACT
    goal = GoalSpace(centre=np.tile(_MIDDLE, BEADS), half_width=np.tile(_HALF, BEADS), threshold=THRESHOLD)
    horizon = 25
    primitives = None

    def __init__(self, n: int) -> None:
        self.n = n
        self.ropes = [Rope() for _ in range(n)]
        self.reset(range(n))

    def reset(self, seeds: Sequence[int]) -> GoalObservation:
        """See `GoalWorlds.reset`; all ropes start straight."""
        if len(seeds) != self.n:
            raise GoalWorldError(f"{len(seeds)} seeds, valid: one for each of the {self.n} rows")
        self._goals = np.array([_goal(rope, seed)[0] for rope, seed in zip(self.ropes, seeds, strict=True)])
        return self._observe()

    def step(self, actions: NDArray[np.float32]) -> GoalObservation:
        """One poke of every rope: (n, 3).

        Raises:
            GoalWorldError: not finite, or of another shape.
        """
        actions = np.asarray(actions, np.float64)
        if actions.shape != (self.n, 3) or not np.isfinite(actions).all():
            raise GoalWorldError(f"actions of shape {actions.shape}, valid: finite, {(self.n, 3)}")
        for rope, action in zip(self.ropes, np.clip(actions, -1.0, 1.0).astype(np.float32), strict=True):
            _poke(rope, action)
        return self._observe()

    def demonstrations(self, seeds: Sequence[int]) -> list[Demonstration]:
        """Each poke is the best of some that would bring a bead to its goal, tried on the rope itself; see `poke_towards`.

        Where that leads nowhere, the pokes that made the goal are the demonstration.
        """
        return [_demonstrate(seed) for seed in seeds]

    def render(self, row: int = 0, subgoals: Sequence[NDArray[np.float32]] = ()) -> NDArray[np.uint8]:
        """The rope of a row from above, its goal and subgoals (30,)."""
        return draw_rope(self.ropes[row].beads, self._goals[row], subgoals)

    def close(self) -> None:
        """Nothing to free."""

    def _observe(self) -> GoalObservation:
        beads = np.array([rope.beads.ravel() for rope in self.ropes], np.float32)
        return {"observation": beads, "achieved_goal": beads.copy(), "desired_goal": self._goals.reshape(self.n, -1).astype(np.float32)}


def _poke(rope: Rope, action: NDArray[np.float32]) -> None:
    rope.poke(_MIDDLE + _HALF * action[:2], math.pi * float(action[2]))


def _action(start: NDArray[np.float64], direction: float) -> NDArray[np.float32]:
    """The action of a poke; float32, so that what is planned with it is what will happen."""
    return np.clip([*(start - _MIDDLE) / _HALF, math.remainder(direction, 2 * math.pi) / math.pi], -1.0, 1.0).astype(np.float32)


def _goal(rope: Rope, seed: int) -> tuple[NDArray[np.float64], list[NDArray[np.float32]]]:
    """The goal (15, 2) of an episode and the pokes that make it; leaves the rope straight."""
    rng = np.random.default_rng(seed)
    rope.straighten()
    straight, pokes = rope.beads, list[NDArray[np.float32]]()
    while len(pokes) < POKES or np.linalg.norm(rope.beads - straight) < FAR:
        pokes.append(_action(*poke_across(rope.beads, rng)))
        _poke(rope, pokes[-1])
    goal = rope.beads
    rope.straighten()
    return goal, pokes


def _demonstrate(seed: int) -> Demonstration:
    rope = Rope()
    goal, made_of = _goal(rope, seed)
    actions, beads = list[NDArray[np.float32]](), [rope.beads]
    while np.linalg.norm(beads[-1] - goal) > THRESHOLD / 2 and len(actions) < RopeWorlds.horizon:
        here, tried = rope.snapshot(), list[tuple[float, NDArray[np.float32]]]()
        for candidate in poke_towards(beads[-1], goal):
            rope.restore(here)
            _poke(rope, _action(*candidate))
            tried.append((float(np.linalg.norm(rope.beads - goal)), _action(*candidate)))
        left, action = min(tried, key=lambda pair: pair[0])
        rope.restore(here)
        if left >= np.linalg.norm(beads[-1] - goal):
            break
        _poke(rope, action)
        actions.append(action)
        beads.append(rope.beads)
    if np.linalg.norm(beads[-1] - goal) > THRESHOLD:
        rope.straighten()
        actions, beads = made_of, [rope.beads]
        for action in actions:
            _poke(rope, action)
            beads.append(rope.beads)
    flat = np.array(beads, np.float32).reshape(len(beads), -1)
    return Demonstration(seed=seed, observation=flat, achieved=flat, actions=np.array(actions), goal=goal.ravel().astype(np.float32))
