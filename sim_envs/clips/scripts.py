"""Script: a behaviour as a course of states, built event by event. Backwards it shows the opposite with the same pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sim_envs.clips.scene import DRAWER_TRAVEL, HANDLE, HEIGHTS, Array, State, Thing

_HIGH, _CLEAR = 0.30, 0.05
"""Height of the hand on its way, and how far over a thing it waits, metres."""
_OPEN, _HELD = 0.075, 0.05
_SPEED = 0.45
"""Of the hand, m/s."""
_PUSH = 0.15
_TILT = 2.0
_FALL_S, _WAIT_S = 0.25, 0.35


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A state that is reached, how long that takes, and what happens meanwhile in words."""

    state: State
    seconds: float
    words: str


class Script:
    """Events append moments; the hand comes from and returns to where it began.

    Args:
        things: the two things.
        start: where all is at first.
        drawer_y: of the drawer.
    """

    def __init__(self, things: tuple[Thing, Thing], start: State, drawer_y: float) -> None:
        self._things, self._drawer_y, self._home = things, drawer_y, start.hand
        self._words = ""
        self.moments = [Moment(state=start, seconds=0.0, words="")]

    @property
    def state(self) -> State:
        """The newest."""
        return self.moments[-1].state

    def say(self, words: str) -> None:
        """What happens from here on."""
        self._words = words

    # -- events -------------------------------------------------------------------------------------------------------------------

    def lift(self, thing: int) -> None:
        """Lifts a thing and puts it back."""
        self.raise_up(thing)
        self._carry(thing, self._place(thing) - (0, 0, 0.20))
        self._release(thing)
        self.go_home()

    def raise_up(self, thing: int) -> None:
        """Takes a thing and holds it high."""
        self._grasp(thing)
        self._carry(thing, self._place(thing) + (0, 0, 0.20))
        self._wait()

    def drop(self, thing: int) -> None:
        """Lets a thing that is held fall onto the table."""
        self._then(grip=_OPEN, seconds=0.15)
        self._then(things=self._moved(thing, self._on_table(thing)), seconds=_FALL_S)
        self._wait()

    def tap(self, thing: int) -> None:
        """Touches the top of a thing with closed fingers."""
        self._over(thing, grip=0.0)
        self._hand_to(self._top(thing))
        self._wait()
        self._over(thing, grip=0.0)
        self.go_home()

    def push(self, thing: int, side: int) -> None:
        """Pushes a thing to the left (-1) or right (1)."""
        beside = self._place(thing) - (0, side * 0.085, 0.02)
        self._hand_to(np.array([*beside[:2], _HIGH]), grip=0.0)
        self._hand_to(beside)
        goal = self._place(thing) + (0, side * _PUSH, 0)
        self._then(hand=beside + (0, side * _PUSH, 0), things=self._moved(thing, goal), seconds=0.9)
        self._hand_to(np.array([*self.state.hand[:2], _HIGH]))
        self.go_home()

    def stack(self, thing: int, on: int) -> None:
        """Puts a thing on the other one."""
        self._grasp(thing)
        height = HEIGHTS[self._things[thing].kind] / 2
        goal = self._top(on) + (0, 0, height)
        self._carry(thing, np.array([*self._place(thing)[:2], _HIGH]))
        self._carry(thing, np.array([*goal[:2], _HIGH]))
        self._carry(thing, goal)
        self._release(thing)
        self.go_home()

    def pour(self, thing: int, over: int) -> None:
        """Tilts a thing over the other one and puts it back."""
        self._grasp(thing)
        start = self._place(thing)
        side = -1.0 if start[1] < self._place(over)[1] else 1.0
        beside = np.array([self._place(over)[0], self._place(over)[1] + side * 0.07, _HIGH - 0.02])
        self._carry(thing, np.array([*start[:2], _HIGH - 0.02]))
        self._carry(thing, beside)
        for tilt in (side * _TILT, 0.0):
            tilts = self.state.tilts.copy()
            tilts[thing] = tilt
            self._then(tilt=tilt, tilts=tilts, seconds=0.5)
            self._wait()
        self._carry(thing, np.array([*start[:2], _HIGH - 0.02]))
        self._carry(thing, start)
        self._release(thing)
        self.go_home()

    def open_drawer(self) -> None:
        """Pulls the drawer open."""
        handle = np.array([HANDLE[0] + 0.005, self._drawer_y, HANDLE[2] - 0.01])
        self._hand_to(np.array([*handle[:2], _HIGH]), grip=0.03)
        self._hand_to(handle)
        pulled = (DRAWER_TRAVEL, 0, 0)
        self._then(hand=handle + pulled, drawer=DRAWER_TRAVEL, seconds=0.9)
        self._hand_to(self.state.hand + (0, 0, _HIGH - handle[2]))
        self.go_home()

    def go_home(self) -> None:
        """The hand goes back to where it began."""
        self._hand_to(self._home, grip=_OPEN)

    # -- parts of events ----------------------------------------------------------------------------------------------------------

    def _grasp(self, thing: int) -> None:
        self._over(thing, grip=_OPEN)
        self._hand_to(self._grip_at(thing))
        self._then(grip=_HELD, seconds=0.15)

    def _release(self, thing: int) -> None:
        self._then(grip=_OPEN, seconds=0.15)
        self._over(thing, grip=_OPEN)

    def _over(self, thing: int, grip: float) -> None:
        self._hand_to(self._top(thing) + (0, 0, _CLEAR), grip=grip)

    def _carry(self, thing: int, place: Array) -> None:
        moved = place - self._place(thing)
        seconds = max(float(np.linalg.norm(moved)) / _SPEED, 0.05)
        self._then(hand=self.state.hand + moved, things=self._moved(thing, place), seconds=seconds)

    def _hand_to(self, place: Array, **more: float) -> None:
        self._then(hand=np.asarray(place, np.float64), seconds=max(float(np.linalg.norm(place - self.state.hand)) / _SPEED, 0.05), **more)

    def _wait(self) -> None:
        self._then(seconds=_WAIT_S)

    def _then(self, *, seconds: float, **changed: object) -> None:
        self.moments.append(Moment(state=replace(self.state, **changed), seconds=seconds, words=self._words))  # type: ignore[arg-type]

    def _place(self, thing: int) -> Array:
        return self.state.things[thing]

    def _top(self, thing: int) -> Array:
        return self._place(thing) + (0, 0, HEIGHTS[self._things[thing].kind] / 2)

    def _grip_at(self, thing: int) -> Array:
        return self._place(thing) + (0, 0, 0.01)

    def _on_table(self, thing: int) -> Array:
        return np.array([*self._place(thing)[:2], HEIGHTS[self._things[thing].kind] / 2])

    def _moved(self, thing: int, place: Array) -> Array:
        things = self.state.things.copy()
        things[thing] = place
        return things


def backwards(moments: list[Moment], words: str) -> list[Moment]:
    """The same states in the opposite order, which in words is something else."""
    seconds = [moment.seconds for moment in moments[:0:-1]]
    states = [moment.state for moment in moments[::-1]]
    return [Moment(state=state, seconds=took, words=words) for state, took in zip(states, [0.0, *seconds], strict=True)]


def state_at(moments: list[Moment], share: float) -> tuple[State, str]:
    """The state at a share 0..1 of a script's time, and what happens there."""
    ends = np.cumsum([moment.seconds for moment in moments])
    now = float(np.clip(share, 0.0, 1.0)) * ends[-1]
    index = max(int(np.searchsorted(ends, now)), 1)
    begun, until = moments[index - 1], moments[index]
    way = (now - ends[index - 1]) / max(until.seconds, 1e-9)
    return begun.state.towards(until.state, way), until.words


def duration(moments: list[Moment]) -> float:
    """Seconds of a script."""
    return float(sum(moment.seconds for moment in moments))
