"""Control tables of bus servos, read from `servos.yaml`: where a register lies and how its number is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

TICKS = 4096
"""Encoder ticks of one turn, of every servo listed."""


@dataclass(frozen=True)
class Register:
    """One number of a control table, little-endian.

    Attributes:
        address: of its first byte.
        size: bytes.
        sign: None for numbers that are never negative, `twos`, or the bit that is the sign of a magnitude.
    """

    address: int
    size: int
    sign: str | int | None = None

    def decode(self, data: bytes) -> int:
        """The number in `data` (size,)."""
        if isinstance(self.sign, int):
            raw = int.from_bytes(data, "little")
            magnitude = raw & ((1 << self.sign) - 1)
            return -magnitude if raw >> self.sign & 1 else magnitude
        return int.from_bytes(data, "little", signed=self.sign == "twos")

    def encode(self, value: int) -> bytes:
        """The bytes of `value`.

        Raises:
            OverflowError: it does not fit.
        """
        if isinstance(self.sign, int):
            if abs(value) >> self.sign:
                raise OverflowError(f"{value} does not fit into {self.sign} bits and a sign")
            value = abs(value) | (value < 0) << self.sign
            return value.to_bytes(self.size, "little")
        return value.to_bytes(self.size, "little", signed=self.sign == "twos")


@dataclass(frozen=True, kw_only=True, eq=False)
class ServoModel:
    """A servo as its maker describes it.

    Attributes:
        name: `sts3215`.
        protocol: `dynamixel` (Protocol 2.0) or `feetech` (STS).
        number: what it answers when asked for its model.
        speed: without load, rad/s.
        registers: name -> register.
        ram_from: registers below lie in the EEPROM.
        torque_locks_eeprom: whether a write there is refused while torque is on.
        read_only_from: registers from here on cannot be written.
        initial: values when new.
        velocity_unit: rad/s of one unit of Present_Velocity.
    """

    name: str
    protocol: str
    number: int
    speed: float
    registers: Mapping[str, Register]
    ram_from: int
    torque_locks_eeprom: bool
    read_only_from: int
    initial: Mapping[str, int]
    velocity_unit: float


@cache
def servo_models() -> Mapping[str, ServoModel]:
    """Every servo known, by name."""
    data = yaml.safe_load(Path(__file__).with_name("servos.yaml").read_text())
    models = {}
    for name, servo in data["servos"].items():
        series = dict(data["series"][servo["series"]])
        registers = {register: Register(*place) for register, place in series.pop("registers").items()}
        models[name] = ServoModel(name=name, number=servo["number"], speed=servo["speed"], registers=registers, **series)
    return models
