"""Servo: a control table and the joint behind it, which follows its goal with bounded speed and acceleration."""

from __future__ import annotations

import math
from collections.abc import Callable

from sim_envs.servo_bus.tables import TICKS, ServoModel

_STEP_S = 0.002
_ACCELERATION = 40.0  # rad/s^2
_FULL_LOAD = 60.0  # ticks of error at which it pushes with all it has
_OVERLOAD = 1 << 5
_WATCHDOG_UNIT_S = 0.02
_WATCHDOG_TRIPPED = 255
_GOALS = ("Goal_Position", "Goal_Current")

# Error numbers of Protocol 2.0; the STS servos say nothing of the kind.
ACCESS_ERROR = 7
RANGE_ERROR = 4


class Servo:
    """One servo on the bus. Time passes in it up to `clock()` whenever it is read or written.

    Args:
        id: its address on the bus.
        model: what it is.
        shaft: where the shaft stands, encoder ticks; beyond 0..4095 after whole turns.
        clock: seconds.

    Attributes:
        obstacle: the shaft cannot leave this interval, ticks.
        heard: when the bus last carried a whole packet, seconds.
    """

    def __init__(self, id: int, model: ServoModel, *, shaft: float = 2048.0, clock: Callable[[], float]) -> None:
        self.id = id
        self.model = model
        self.obstacle = (-math.inf, math.inf)
        self._clock = clock
        self._time = self.heard = clock()
        self._shaft = shaft
        self._speed = 0.0
        self._table = bytearray(256)
        for name, value in {**model.initial, "Model_Number": model.number, "ID": id}.items():
            self.set(name, value)
        self._target = shaft

    @property
    def shaft(self) -> float:
        """Where the shaft stands now, ticks."""
        self._advance()
        return self._shaft

    def get(self, name: str) -> int:
        """A register's number as it is in the table."""
        register = self.model.registers[name]
        return register.decode(bytes(self._table[register.address : register.address + register.size]))

    def set(self, name: str, value: int) -> None:
        """Sets a register from the servo's own side: no rule of access applies."""
        register = self.model.registers[name]
        self._table[register.address : register.address + register.size] = register.encode(value)

    def turn_by_hand(self, ticks: float) -> None:
        """Turns the shaft; only with torque off does it give way."""
        self._advance()
        if not self.get("Torque_Enable"):
            self._shaft += ticks
            self._target = self._shaft

    def overload(self) -> None:
        """The protection trips: error bit on, torque off."""
        self._advance()
        self.set(self._error_register, self.get(self._error_register) | _OVERLOAD)
        self.set("Torque_Enable", 0)

    def reboot(self) -> None:
        """As after a power cycle: no error, torque off, whole turns forgotten."""
        self.set(self._error_register, 0)
        self.set("Torque_Enable", 0)
        self._shaft %= TICKS
        self._speed = 0.0

    @property
    def error_bits(self) -> int:
        """Of Hardware_Error_Status or Status."""
        return self.get(self._error_register)

    def read(self, address: int, length: int) -> bytes:
        """Bytes of the table, measured now."""
        self._measure()
        return bytes(self._table[address : address + length])

    def write(self, address: int, data: bytes) -> int:
        """Writes `data`; returns 0, or the error number of Protocol 2.0 when it is refused and nothing was written."""
        self._advance()
        written = {name: r for name, r in self.model.registers.items() if address <= r.address < address + len(data)}
        locked = self.model.torque_locks_eeprom and address < self.model.ram_from and self.get("Torque_Enable")
        if address >= self.model.read_only_from or locked:
            return ACCESS_ERROR
        if "Bus_Watchdog" in self.model.registers and self.get("Bus_Watchdog") == _WATCHDOG_TRIPPED and set(written) & set(_GOALS):
            return RANGE_ERROR
        self._table[address : address + len(data)] = data
        if "Torque_Enable" in written and self.get("Torque_Enable") and self.error_bits:
            self.set("Torque_Enable", 0)  # not before the error is cleared
        if "Goal_Position" in written:
            self._target = self._shaft_at(self.get("Goal_Position"))
        return 0

    @property
    def _error_register(self) -> str:
        return "Status" if self.model.protocol == "feetech" else "Hardware_Error_Status"

    @property
    def _wraps(self) -> bool:
        """Whether positions are those of one turn, or count on beyond it (extended and current-based position mode)."""
        return self.model.protocol == "feetech" or self.get("Operating_Mode") not in (4, 5)

    @property
    def _offset(self) -> int:
        """What is added to the shaft's ticks; the makers disagree on the sign of Homing_Offset."""
        homing = self.get("Homing_Offset")
        return -homing if self.model.protocol == "feetech" else homing

    @property
    def _sign(self) -> int:
        """-1 where Drive_Mode turns the servo's sense of direction round."""
        return -1 if "Drive_Mode" in self.model.registers and self.get("Drive_Mode") & 1 else 1

    def _shown(self) -> int:
        shown = self._sign * round(self._shaft) + self._offset
        return shown % TICKS if self._wraps else shown

    def _shaft_at(self, position: int) -> float:
        """The shaft angle shown as `position`: within the present turn where positions wrap, so the way leads never across 4095 -> 0."""
        turn = math.floor((self._sign * self._shaft + self._offset) / TICKS) * TICKS if self._wraps else 0
        return self._sign * (turn + position - self._offset)

    def _advance(self) -> None:
        now = self._clock()
        watchdog = self.get("Bus_Watchdog") if "Bus_Watchdog" in self.model.registers else 0
        trips_at = self.heard + watchdog * _WATCHDOG_UNIT_S if 0 < watchdog < _WATCHDOG_TRIPPED else math.inf
        while self._time < now and self.get("Torque_Enable") and (self._speed or self._shaft != self._target):
            step = min(_STEP_S, now - self._time)
            self._time += step
            if self._time > trips_at:
                self.set("Bus_Watchdog", _WATCHDOG_TRIPPED)
                self._target, trips_at = self._shaft, math.inf
            self._move(step)
        if self._time < now:
            self._time = now
            self._speed = 0.0
            if now > trips_at and self.get("Torque_Enable"):
                self.set("Bus_Watchdog", _WATCHDOG_TRIPPED)

    def _move(self, step: float) -> None:
        per_rad = TICKS / math.tau
        error = self._target - self._shaft
        if abs(error) < 1e-3 and abs(self._speed) * step < 1e-3:
            self._shaft, self._speed = self._target, 0.0
            return
        fastest = min(self.model.speed * per_rad, math.sqrt(2 * _ACCELERATION * per_rad * abs(error)), abs(error) / step)
        change = _ACCELERATION * per_rad * step
        wanted = math.copysign(fastest, error)
        self._speed += max(-change, min(change, wanted - self._speed))
        moved = self._shaft + self._speed * step
        self._shaft = max(self.obstacle[0], min(self.obstacle[1], moved))
        if self._shaft != moved:
            self._speed = 0.0

    def _measure(self) -> None:
        self._advance()
        torque = self.get("Torque_Enable")
        load = max(-1.0, min(1.0, (self._target - self._shaft) / _FULL_LOAD)) if torque else 0.0
        self.set("Present_Position", self._shown())
        self.set("Present_Velocity", round(self._sign * self._speed * math.tau / TICKS / self.model.velocity_unit))
        self.set("Present_Current", round(load * 500))
        self.set("Moving", int(abs(self._speed) > 1))
        if "Present_Load" in self.model.registers:
            self.set("Present_Load", round(load * 1000))
