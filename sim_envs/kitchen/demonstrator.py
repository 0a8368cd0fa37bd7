"""Scripted way-points of the kitchen's tasks: the door pulled by its handle, the kettle, the switch and the cabinet pushed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sim_envs.kitchen.hand import Hand, Pose, pointing
from sim_envs.kitchen.kitchen import Kitchen

Action = NDArray[np.float32]
OPEN, CLOSED = 0.04, 0.0
"""Of a finger, metres."""
_HINGE = np.array([-1.128, 0.455, 1.792])
_HANDLE = np.array([0.486, 0.038, 0.0])
_DOOR_YAW = 0.3
"""The microwave's door: its hinge at the handle's height, its handle from there while it is shut, and how it stands in the kitchen."""


def demonstrate(kitchen: Kitchen, tasks: Sequence[str], speed: float = 1.0) -> Iterator[Action]:
    """Actions (9,) that do the tasks one after the other; each is to be made before the next is asked for.

    Args:
        kitchen: just reset.
        tasks: names of `SCRIPTS`.
        speed: share of the usual speed.
    """
    hand = Hand(kitchen, speed)
    for task in tasks:
        yield from SCRIPTS[task](hand)


def microwave(hand: Hand) -> Iterator[Action]:
    """Grasps the handle and pulls it along its arc; the hand keeps its direction, and the handle turns between the fingers."""
    ahead = pointing((-np.sin(_DOOR_YAW), np.cos(_DOOR_YAW), 0.0), opening=(np.cos(_DOOR_YAW), np.sin(_DOOR_YAW), 0.0))
    back = 0.015 * ahead[:, 2]

    def handle(angle: float) -> Pose:
        turned = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
        return _HINGE + turned @ _HANDLE - back, ahead

    at, _ = handle(0.0)
    yield from hand.go((at - 0.1 * ahead[:, 2], ahead), OPEN)
    yield from hand.go((at, ahead), OPEN)
    yield from hand.hold(CLOSED, 5)
    for angle in np.arange(-0.1, -0.75, -0.1):
        yield from hand.go(handle(angle), CLOSED)
    yield from hand.hold(OPEN, 3)
    yield from hand.go((hand.position - 0.1 * ahead[:, 2], ahead), OPEN)


def kettle(hand: Hand) -> Iterator[Action]:
    """Pushes the kettle's body away from the robot with both fingertips, low enough not to topple it."""
    down = pointing((0.0, np.cos(0.5), -np.sin(0.5)), opening=(1.0, 0.0, 0.0))
    foot = hand.body("kettleroot")
    yield from hand.go((foot + (0.0, -0.24, 0.14), down), OPEN)
    yield from hand.go((foot + (0.0, -0.20, 0.075), down), OPEN)
    yield from hand.go((foot + (0.0, 0.05, 0.075), down), OPEN, speed=0.6)
    yield from hand.go((foot + (0.0, -0.05, 0.12), down), OPEN)


def light_switch(hand: Hand) -> Iterator[Action]:
    """Pushes the lever to the left from its right."""
    ahead = pointing((0.0, 1.0, 0.0), opening=(0.0, 0.0, 1.0))
    lever = hand.site("light_site")
    yield from hand.go((lever + (0.055, -0.15, 0.0), ahead), CLOSED)
    yield from hand.go((lever + (0.055, 0.0, 0.0), ahead), CLOSED)
    yield from hand.go((lever + (-0.025, 0.0, 0.0), ahead), CLOSED, speed=0.6)
    yield from hand.go((lever + (0.0, -0.12, 0.0), ahead), CLOSED)


def slide_cabinet(hand: Hand) -> Iterator[Action]:
    """Pushes the door's handle to the right from its left."""
    ahead = pointing((0.0, 1.0, 0.0), opening=(0.0, 0.0, 1.0))
    handle = hand.site("slide_site") - (0.0, 0.0, 0.05)
    yield from hand.go((handle + (-0.12, -0.15, -0.1), ahead), CLOSED)
    yield from hand.go((handle + (-0.09, 0.0, 0.0), ahead), CLOSED)
    yield from hand.go((handle + (0.30, 0.0, 0.0), ahead), CLOSED)


SCRIPTS: dict[str, Callable[[Hand], Iterator[Action]]] = {
    "microwave": microwave,
    "kettle": kettle,
    "light switch": light_switch,
    "slide cabinet": slide_cabinet,
}
