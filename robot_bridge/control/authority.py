"""Authority: one sender at a time may command the arm, told apart by its publisher's identity."""

from __future__ import annotations

from dataclasses import dataclass

PRIORITY = ("policy", "replay", "console", "teleop")
"""Sources from the weakest to the strongest."""

SILENT_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who has authority. `sender` is None until the first command of that source binds it."""

    source: str
    sender: str | None


class Authority:
    """Grants authority: teleop > console > replay > policy; a silent holder (1 s) may be replaced by anybody.

    `epoch` counts changes of the holder: whoever follows it sees a take-over. `released`: nobody has authority, and the last holder gave
    it back by itself.
    """

    def __init__(self) -> None:
        self.holder: Holder | None = None
        self.epoch = 0
        self.refused = 0
        self.released = False
        self._heard_ns = 0

    def take(self, source: str, now_ns: int, sender: str | None = None) -> str | None:
        """Asks for authority.

        Args:
            source: one of `PRIORITY`.
            now_ns: monotonic time.
            sender: identity of the publisher of commands; None binds the first one that commands as `source`.

        Returns:
            None when granted, else why not.
        """
        if source not in PRIORITY:
            return f"unknown source {source!r}, valid: {list(reversed(PRIORITY))}"
        holder = self.holder
        if holder is not None:
            if sender is not None and sender == holder.sender and source == holder.source:
                return None
            stronger = PRIORITY.index(source) > PRIORITY.index(holder.source)
            if not stronger and now_ns - self._heard_ns <= SILENT_NS:
                return f"{holder.source} ({holder.sender or 'not heard yet'}) has authority; it must release it or fall silent for 1 s"
        self.holder = Holder(source=source, sender=sender)
        self.released = False
        self.epoch += 1
        self._heard_ns = now_ns
        return None

    def release(self, source: str, sender: str | None = None) -> str | None:
        """Gives authority back; returns None when done, else why not."""
        holder = self.holder
        if holder is None or holder.source != source or (sender is not None and holder.sender not in (None, sender)):
            return f"{source} does not have authority; holder: {holder}"
        self.revoke()
        self.released = True
        return None

    def revoke(self) -> None:
        """Takes authority from whoever has it (e-stop, fault, rearm): a sender must take it anew."""
        if self.holder is not None:
            self.holder = None
            self.epoch += 1

    def check(self, source: str, sender: str, now_ns: int) -> str | None:
        """Whether a command of this publisher counts; returns None or why it is refused (and counts the refusal)."""
        holder = self.holder
        if holder is not None and holder.source == source and holder.sender in (None, sender):
            if holder.sender is None:
                self.holder = Holder(source=source, sender=sender)
            self._heard_ns = now_ns
            return None
        self.refused += 1
        return f"command of {source} ({sender}); authority: {'nobody' if holder is None else f'{holder.source} ({holder.sender})'}"
