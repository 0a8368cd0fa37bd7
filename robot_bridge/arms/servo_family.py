"""ServoFamily: what the servos of one maker have of their own, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServoFamily:
    """What the servos of one maker have of their own.

    Attributes:
        state: first and last register of what is read in every period.
        health: likewise, of what is read now and then.
        errors: bit -> meaning.
        error_register: register with these bits; None where the error byte of every reply has them.
        position_mode: Operating_Mode in which a goal is a position.
        lock: register that protects the EEPROM.
        watchdog: register that stops the servo when the bus is silent.
    """

    state: tuple[str, str]
    health: tuple[str, str]
    errors: Mapping[int, str]
    error_register: str | None
    position_mode: int
    lock: str | None
    watchdog: str | None

    def meaning(self, bits: int) -> str:
        """Error bits in words."""
        return ", ".join(text for bit, text in self.errors.items() if bits >> bit & 1) or f"error bits {bits:#04x}"
