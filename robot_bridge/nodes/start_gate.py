"""Whether a sender (a policy, a teleoperator) may ask for authority by itself.

After an e-stop, a fault or a lost arm motion never goes on by itself, nor after the sender stopped itself, and a person who took the arm
over keeps it until he gives it back.
"""

from __future__ import annotations

from robot_bridge.control.authority import PRIORITY

_STOPPED = ("stopped", "fault")


class StartGate:
    """Follows what the arm says, in the order it came. Not thread-safe.

    Args:
        source: the policy's own, in the sense of `Authority`.
        start: how a person starts it again, for the messages.
    """

    def __init__(self, source: str, start: str) -> None:
        self._weaker = PRIORITY[: PRIORITY.index(source) + 1]
        self._who = f"the {source}"
        self._start = start
        self._state = ""
        self._rearms: int | None = None
        self._stopped = ""
        self._held = ""
        self._holder = ""
        self._taken_by = ""

    @property
    def waits(self) -> str:
        """Why the policy does not ask for authority, and what to do; empty where it may."""
        if self._stopped:
            return f"{self._who} waits: {self._stopped}; nothing goes on by itself. Rearm the arm if it is stopped, then {self._start}"
        if self._held:
            return f"{self._who} waits: {self._held}; see to the arm, then {self._start}"
        if self._taken_by:
            return f"{self._who} waits: {self._taken_by} took the arm over. It must release arm/authority, or afterwards {self._start}"
        return ""

    @property
    def held(self) -> bool:
        """Whether the sender itself may not go on, whatever the arm does."""
        return bool(self._held)

    def hold(self, reason: str) -> None:
        """The sender found that it must not go on."""
        self._held = reason

    def status(self, state: str, reason: str, rearms: int) -> None:
        """An `arm/status`."""
        if state in _STOPPED:
            self._stopped = f"the arm was in state {state} ({reason})"
        elif self._rearms is not None and rearms != self._rearms and not self._stopped:
            self._stopped = "the arm was stopped and rearmed"
        self._state, self._rearms = state, rearms

    def authority(self, holder: str, released: bool) -> None:
        """An `arm/authority`: who has it now; where nobody has, whether the last holder gave it back."""
        self._holder = holder
        if holder and holder not in self._weaker:
            self._taken_by = holder
        elif released:
            self._taken_by = ""

    def lost(self) -> None:
        """The arm node went away and another came."""
        self._stopped, self._rearms = "the arm node was lost and started anew", None

    def start(self) -> str | None:
        """A person asks the policy to go on; returns None when it may, else why not."""
        if self._state in _STOPPED:
            return f"the arm is in state {self._state}: rearm it first (service arm/rearm)"
        if self._holder and self._holder not in self._weaker:
            return f"{self._holder} has authority; it must release it first"
        self._stopped = self._held = self._taken_by = ""
        return None

    def episode(self) -> None:
        """An operator asked for a new episode while the arm was neither stopped nor in fault: as good as a start after a stop."""
        self._stopped = self._held = ""
