"""Faults: what a bad cable does to packets, from a fixed seed, counted."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Faults:
    """Probabilities may be changed while the bus runs.

    Attributes:
        byte_loss: of each byte, in either direction.
        bad_checksum: of each reply, whose last byte is then another.
        lost_reply: of each reply.
        seed: of the random numbers.
        counts: `damaged_instructions` and, of those, `damaged_sync_writes`; `missing_replies`: replies that were damaged or lost,
            or not given because the question was damaged.
    """

    byte_loss: float = 0.0
    bad_checksum: float = 0.0
    lost_reply: float = 0.0
    seed: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def lose_bytes(self, packet: bytes) -> bytes:
        """What arrives of `packet`."""
        if not self.byte_loss:
            return packet
        return bytes(byte for byte in packet if self._random.random() >= self.byte_loss)

    def reply(self, packet: bytes) -> bytes:
        """What arrives of a servo's reply."""
        arrives = self.lose_bytes(packet)
        if self.bad_checksum and self._random.random() < self.bad_checksum:
            arrives = arrives[:-1] + bytes([packet[-1] ^ self._random.randint(1, 255)])
        if self.lost_reply and self._random.random() < self.lost_reply:
            arrives = b""
        self.counts["missing_replies"] += arrives != packet
        return arrives
