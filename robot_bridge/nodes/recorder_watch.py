"""What a teleoperator knows of the episode recorder, so that no demonstration begins unheard and none is left unfinished."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray

RECORDER = "episode recorder"
SILENT_S = 3.0
"""A recorder that said nothing for this long is not heard any more."""


class RecorderWatch:
    """Follows the recorder's diagnostics.

    Args:
        expected: somebody wants episodes recorded: none begins before the recorder listens.
    """

    def __init__(self, *, expected: bool) -> None:
        self._expected = expected
        self._heard_s = -SILENT_S
        self.values: Mapping[str, str] = {}

    def hear(self, message: DiagnosticArray) -> None:
        """A message on `diagnostics`."""
        for status in message.status:
            if status.name == RECORDER:
                self.values = {pair.key: pair.value for pair in status.values}
                self._heard_s = time.monotonic()

    @property
    def heard(self) -> bool:
        """Whether the recorder said something lately."""
        return time.monotonic() - self._heard_s <= SILENT_S

    @property
    def lost(self) -> list[str]:
        """Episodes that the recorder could not write, each with the reason."""
        return list(json.loads(self.values.get("losses", "[]")))

    def waits(self) -> str:
        """Why an episode that began now would be lost, in words; empty where it would be recorded or nobody expects it."""
        if not self._expected:
            return ""
        if not self.heard:
            return "no episode recorder is heard" if not self.values else "the episode recorder is not heard any more"
        topics = json.loads(self.values.get("awaits", "[]"))
        return f"the episode recorder does not hear {', '.join(topics)} yet" if topics else ""

    def has(self, episode: Mapping[str, Any] | None) -> bool:
        """Whether the recorder knows of this record on `episode`, and wrote or lost every episode that is over; True where nobody
        expects it or there is none.
        """
        if not self._expected or episode is None or episode["index"] < 0:
            return True
        newest = json.loads(self.values.get("newest", "null"))
        known = newest is not None and tuple(newest) == (episode["index"], episode["phase"])
        return known and self.values.get("pending") == "0"
