"""What each key means, for a keyboard and for scripts of keys."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from robot_bridge.teleop.base import Event

MOVES: Mapping[str, tuple[int, float]] = {
    "w": (0, 1.0), "s": (0, -1.0), "a": (1, 1.0), "d": (1, -1.0), "r": (2, 1.0), "f": (2, -1.0),
    "u": (3, 1.0), "o": (3, -1.0), "i": (4, 1.0), "k": (4, -1.0), "j": (5, 1.0), "l": (5, -1.0),
}  # fmt: skip
"""Key -> axis of the twist and its sign."""

ACTIONS: Mapping[str, Event] = {
    " ": "gripper", "+": "faster", "=": "faster", "-": "slower",
    "t": "take", "h": "release", "b": "begin", "y": "success", "n": "failure", "x": "discard", "q": "quit",
}  # fmt: skip

MOVE_HELP: Mapping[str, str] = {
    "w s": "forward, back (x)", "a d": "left, right (y)", "r f": "up, down (z)",
    "u o": "roll (about x)", "i k": "pitch (about y)", "j l": "yaw (about z)",
}  # fmt: skip
ACTION_HELP: Mapping[str, str] = {
    "space": "gripper", "+ -": "faster, slower", "t": "take the arm over", "h": "hand it back",
    "b": "begin an episode", "y": "end it: success", "n": "end it: failure", "x": "end it: discard", "q": "quit",
}  # fmt: skip

HELD_S = 0.2
"""A key counts for so long after it was last heard: a terminal tells no release, it repeats a key that is held."""


class HeldKeys:
    """The twist of the keys that are held."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}

    def press(self, key: str, now_s: float) -> None:
        """A key was heard; only those of `MOVES` count."""
        if key in MOVES:
            self._until_s[key] = now_s + HELD_S

    def twist(self, now_s: float) -> NDArray[np.float64] | None:
        """(6,) shares -1..1; None while no key is held."""
        self._until_s = {key: until_s for key, until_s in self._until_s.items() if now_s < until_s}
        return keys_twist(*self._until_s) if self._until_s else None


def keys_twist(*keys: str) -> NDArray[np.float64]:
    """(6,) shares -1..1 of keys held together."""
    twist = np.zeros(6)
    for key in keys:
        axis, sign = MOVES[key]
        twist[axis] += sign
    return twist
