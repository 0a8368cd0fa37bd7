"""Keyboard: the keys of the terminal a person sits at."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from typing import Any, Literal

from robot_bridge.teleop.base import Event, Reading, SourceError, View
from robot_bridge.teleop.keys import ACTIONS, HeldKeys

_ESCAPE = "\x1b"


class Keyboard:
    """See `TeleopSource`. A tap moves for a fifth of a second; a key that is held moves on.

    Args:
        fd: the terminal's; standard input by default.
        moves: False leaves the keys that move to another source.
    """

    space: Literal["end_effector", "joint"] = "end_effector"

    def __init__(self, *, fd: int | None = None, moves: bool = True) -> None:
        self._fd = sys.stdin.fileno() if fd is None else fd
        self._moves = moves
        self._before: list[Any] | None = None
        self._held = HeldKeys()

    def open(self) -> None:
        """Takes single keys, without echo; Ctrl-C and Ctrl-Z stay what they are.

        Raises:
            SourceError: no terminal.
        """
        if not os.isatty(self._fd):
            raise SourceError(
                "keyboard: standard input is no terminal; valid: run it in one, or another source (leader, spacemouse, script)"
            )
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)

    def read(self, view: View) -> Reading:
        """See `TeleopSource.read`.

        Raises:
            SourceError: the terminal was closed.
        """
        events: list[Event] = []
        for key in self._keys():
            if key in ACTIONS:
                events.append(ACTIONS[key])
            elif self._moves:
                self._held.press(key, view.now_s)
        return Reading(events=tuple(events), twist=self._held.twist(view.now_s))

    def _keys(self) -> str:
        received = b""
        try:
            while select.select([self._fd], [], [], 0.0)[0]:
                part = os.read(self._fd, 1024)
                if not part:
                    raise OSError("end of input")
                received += part
        except (OSError, ValueError) as error:
            raise SourceError(f"keyboard: the terminal is gone: {error}") from error
        text = received.decode(errors="ignore")
        return text.partition(_ESCAPE)[0]  # arrows and function keys are sequences of letters that mean something else here

    def close(self) -> None:
        """The terminal as it was."""
        before, self._before = self._before, None
        if before is not None:
            try:
                termios.tcsetattr(self._fd, termios.TCSADRAIN, before)
            except termios.error:  # the terminal was closed
                pass
