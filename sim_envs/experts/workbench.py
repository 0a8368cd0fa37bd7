"""The motions of the workbench's tasks, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.workbench import ABOVE, Step
from sim_envs.arm.tasks.workbench_scene import FIXTURES, PRESSED
from sim_envs.experts.hand import Hand, Motion, Obs, point
from sim_envs.experts.motion import CLOSE, OPEN, nearest_turn, towards, yaw_of

TRAVEL = TABLE_TOP + 0.13
"""Height on the way to a tray and after each step, metres."""
RELEASE = TABLE_TOP + 0.045
"""Height at which an object is let go, metres."""
PULL = (-0.125, 0.0, 0.0)
"""How a closed drawer is pulled, metres."""
PUSH_STEPS = 40
"""Steps after which a button that does not yield is tried again."""


def play_steps(steps: Sequence[Step], hand: Hand, obs: Obs) -> Motion:
    """One step after another."""
    for step in steps:
        obs = yield from _PLAYS[step.kind](hand, obs, step)
    return obs


def _reach(hand: Hand, obs: Obs, step: Step) -> Motion:
    above = point(obs, step.thing) + (0.0, 0.0, ABOVE) + hand.imperfection.aim() + hand.miss
    return (yield from hand.go(obs, step.primitives[0], above, OPEN))


def _lift(hand: Hand, obs: Obs, step: Step) -> Motion:
    reach, grasp, lift = step.primitives
    return (yield from hand.lift(obs, step.thing, (reach, grasp, lift), TRAVEL, _grasp_yaw(obs, step.thing)))


def _place(hand: Hand, obs: Obs, step: Step) -> Motion:
    reach, grasp, lift, place = step.primitives
    slot = point(obs, f"{step.side}_tray")[:2]
    return (yield from hand.place(obs, step.thing, (reach, grasp, lift, place), slot, (TRAVEL, RELEASE), _grasp_yaw(obs, step.thing)))


def _push(hand: Hand, obs: Obs, step: Step) -> Motion:
    """From over the button down on it with closed fingers, again where it did not yield; who misses it thinks it is done."""
    reach, push = step.primitives
    while True:
        top = point(obs, "button") + hand.imperfection.aim() + hand.miss
        obs = yield from hand.go(obs, reach, top + (0.0, 0.0, 0.04), CLOSE)
        for _ in range(PUSH_STEPS):
            obs = yield push, towards(obs, top - (0.0, 0.0, 0.03), 0.0, CLOSE, hand.speed)
            if _is_pressed(obs):
                break
        obs = yield from hand.up(obs, push, TRAVEL, CLOSE)
        if _is_pressed(obs) or hand.fault:
            return obs


def _open(hand: Hand, obs: Obs, step: Step) -> Motion:
    reach, pull = step.primitives
    return (yield from hand.pull(obs, step.thing, (reach, pull), np.array(PULL), TRAVEL))


_PLAYS = {"reach": _reach, "lift": _lift, "place": _place, "push": _push, "open": _open}


def _is_pressed(obs: Obs) -> bool:
    return bool(point(obs, "button")[2] < FIXTURES["button"][2] - PRESSED - 0.001)


def _grasp_yaw(obs: Obs, thing: str) -> float:
    """How the hand is turned to the object: the block's sides are alike, the can is round."""
    return nearest_turn(yaw_of(obs["block_quat"]), np.pi / 2) if thing == "block" else 0.0
