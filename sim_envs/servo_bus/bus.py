"""EmulatedBus: servos on one wire behind a pseudo-terminal."""

from __future__ import annotations

import os
import select
import threading
import time
import tty
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sim_envs.servo_bus.faults import Faults
from sim_envs.servo_bus.protocol2 import Protocol2
from sim_envs.servo_bus.servo import Servo
from sim_envs.servo_bus.sts import Sts
from sim_envs.servo_bus.tables import servo_models
from sim_envs.servo_bus.wire import BROADCAST, Instruction, Wire

_WIRES: dict[str, Callable[[], Wire]] = {"dynamixel": Protocol2, "feetech": Sts}


class EmulatedBus:
    """Answers what is written to `port`. A context manager: it is plugged in at the beginning and unplugged at the end.

    A reply is there as soon as the instruction is: the time that bytes take on a real wire, and the latency of a USB adapter,
    are not modelled.

    Args:
        servos: id -> name of its model; all of one protocol.
        link: where the serial port appears; a link, as udev makes them, because a new pseudo-terminal has a new name.
        faults: what happens to packets; none by default.
        clock: the servos' time, seconds.

    Attributes:
        port: the serial port's path.
        servos: id -> servo. `with bus.lock` while a test reads or turns one.

    Raises:
        ValueError: an unknown model, or models of two protocols.
    """

    def __init__(
        self, servos: Mapping[int, str], link: Path, *, faults: Faults | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        models = servo_models()
        unknown = sorted(set(servos.values()) - set(models))
        if unknown:
            raise ValueError(f"no servo {unknown}, valid: {sorted(models)}")
        protocols = {models[name].protocol for name in servos.values()}
        if len(protocols) != 1:
            raise ValueError(f"servos of {sorted(protocols)} on one bus, valid: one protocol")
        self.servos = {id: Servo(id, models[name], clock=clock) for id, name in servos.items()}
        self.faults = faults or Faults()
        self.port = str(link)
        self.lock = threading.Lock()
        self._wire = _WIRES[protocols.pop()]()
        self._clock = clock
        self._link = link
        self._fds: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> EmulatedBus:
        self.plug_in()
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def plug_in(self) -> None:
        """The port appears; the servos are as they were left."""
        self._fds = master, slave = os.openpty()
        tty.setraw(slave)
        self._link.symlink_to(os.ttyname(slave))
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, args=(master, self._stop_read), name="servo-bus", daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        """The port disappears, also for whoever has it open."""
        if self._fds is None or self._thread is None:
            return
        os.write(self._stop_write, b"x")
        self._thread.join()
        self._link.unlink()
        for fd in (*self._fds, self._stop_read, self._stop_write):
            os.close(fd)
        self._fds = None

    def _serve(self, master: int, stop: int) -> None:
        buffer = bytearray()
        while True:
            readable, _, _ = select.select([master, stop], [], [])
            if stop in readable:
                return
            buffer += os.read(master, 4096)
            for packet in self._wire.split(buffer):
                with self.lock:
                    answer = self._answer(packet)
                os.write(master, answer)

    def _answer(self, packet: bytes) -> bytes:
        asked = self._wire.decode(packet)
        if asked is None:
            return b""
        arrived = self._wire.decode(self.faults.lose_bytes(packet))
        if arrived != asked:
            self.faults.counts["damaged_instructions"] += 1
            self.faults.counts["damaged_sync_writes"] += asked.kind == "sync_write"
            self.faults.counts["missing_replies"] += len(self._repliers(asked))
            return b""
        now = self._clock()
        for servo in self.servos.values():
            servo.heard = now
        errors = {servo.id: self._do(servo, asked) for servo in self.servos.values() if self._is_meant(servo, asked)}
        return b"".join(self._reply(servo, asked, errors[servo.id]) for servo in self._repliers(asked))

    def _is_meant(self, servo: Servo, asked: Instruction) -> bool:
        """Also a servo whose Secondary_ID is addressed, which does as it is told and does not answer."""
        second = servo.get("Secondary_ID") if "Secondary_ID" in servo.model.registers else BROADCAST
        return servo.id in asked.ids or BROADCAST in asked.ids or (second < BROADCAST - 1 and second in asked.ids)

    def _repliers(self, asked: Instruction) -> Sequence[Servo]:
        if asked.kind == "sync_write" or (BROADCAST in asked.ids and asked.kind != "ping"):
            return ()
        ids = sorted(self.servos) if BROADCAST in asked.ids else asked.ids
        return [self.servos[id] for id in ids if id in self.servos]

    @staticmethod
    def _do(servo: Servo, asked: Instruction) -> int:
        if asked.kind == "reboot":
            servo.reboot()
        if not asked.data:
            return 0
        second = servo.get("Secondary_ID") if "Secondary_ID" in servo.model.registers else BROADCAST
        data = asked.data.get(servo.id) or asked.data.get(BROADCAST) or asked.data[second]
        return servo.write(asked.address, data)

    def _reply(self, servo: Servo, asked: Instruction, error: int) -> bytes:
        data = b""
        if asked.kind in ("read", "sync_read"):
            data = servo.read(asked.address, asked.length)
        elif asked.kind == "ping" and servo.model.protocol == "dynamixel":
            data = servo.get("Model_Number").to_bytes(2, "little") + bytes([servo.get("Firmware_Version")])
        return self.faults.reply(self._wire.status(servo.id, error, servo.error_bits, data))
