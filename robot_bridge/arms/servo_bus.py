"""ServoBus: what the buses of Dynamixel and Feetech servos have in common, over the makers' own libraries."""

from __future__ import annotations

import fcntl
import importlib
import os
import select
import termios
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from robot_bridge.arms.base import ArmLost
from sim_envs.servo_bus.tables import Register

_TRIES = 5  # of an exchange outside the control loop
_POLL_S = 0.005  # the makers' ports ask for bytes without a pause
_PATIENCE_S = 0.05  # for a reply outside the control loop


@dataclass(frozen=True)
class Reply:
    """What a servo answered: its error byte and the bytes asked for."""

    error: int
    data: bytes


def import_sdk(module: str, extra: str) -> ModuleType:
    """The maker's library.

    Raises:
        ArmLost: it is not installed; says which extra brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ArmLost(f"no library {module}: pip install 'armstack[{extra}]'") from error


class ServoBus(ABC):
    """One serial port. A sync read ends within `reply_timeout_s` and is never repeated; single servos are asked up to five times.

    The makers' group reads give up at the first servo whose reply is damaged and lose those behind it. Here the bytes that came are
    searched for whole packets, so that one damaged reply is one reply lost.

    Args:
        port: serial port.
        baudrate: bit/s.
        reply_timeout_s: a sync read waits no longer for replies.

    Attributes:
        counts: `replies` that came in sync reads; `lost`: those that did not come in time, or damaged; `late`: those that came whole
            after their time. What was damaged on the way is `lost` - `late`.
    """

    def __init__(self, port: str, baudrate: int, reply_timeout_s: float) -> None:
        self.port = port
        self.counts: Counter[str] = Counter()
        self._baudrate = baudrate
        self._timeout_s = reply_timeout_s
        self._lock = threading.RLock()
        self._handler: Any = None
        self._received = b""

    # -- what the makers' libraries differ in ---------------------------------------------------------------------------

    _model_number: Register

    @property
    @abstractmethod
    def _sdk(self) -> ModuleType:
        """The maker's library."""

    @abstractmethod
    def _packets(self) -> Any:
        """Its packet handler."""

    @abstractmethod
    def _ask(self, ids: Sequence[int], address: int, length: int) -> None:
        """Sends a sync read."""

    @abstractmethod
    def _statuses(self, received: bytes) -> list[tuple[int, Reply]]:
        """Ids and contents of the whole status packets in what was received, in order."""

    # -- connection -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Opens the port, exclusively; closes it before where it was open.

        Raises:
            ArmLost: the library or the port is missing, or may not be used.
        """
        self.close()
        sdk = self._sdk
        if not os.path.exists(self.port):
            raise ArmLost(f"{self.port}: no such port; is the adapter plugged in?")
        if not os.access(self.port, os.R_OK | os.W_OK):
            raise ArmLost(f"{self.port}: no permission; add yourself to the group that owns it (often dialout) and log in again")
        handler = sdk.PortHandler(self.port)
        handler.baudrate = self._baudrate
        try:
            if not handler.openPort():
                raise ArmLost(f"{self.port}: {self._baudrate} bit/s is no rate that the library knows")
            handler.ser.timeout = _POLL_S
            fcntl.flock(handler.ser.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handler.closePort()
            raise ArmLost(f"{self.port}: another process uses it") from None
        except (OSError, termios.error) as error:
            raise ArmLost(f"{self.port}: {error}") from error
        self._handler, self._received = handler, b""

    def close(self) -> None:
        """Closes the port."""
        with self._lock:
            handler, self._handler = self._handler, None
            if handler is not None:
                try:
                    handler.closePort()
                except (OSError, termios.error):  # unplugged
                    pass

    # -- single servos, outside of the control loop ---------------------------------------------------------------------

    def scan(self, ids: Iterable[int], tries: int = _TRIES) -> dict[int, int]:
        """id -> model number of the servos that answer."""
        found = ((id, self._try_read(id, self._model_number, tries)) for id in ids)
        return {id: number for id, number in found if number is not None}

    def read(self, id: int, register: Register) -> int:
        """One register.

        Raises:
            ArmLost: no whole reply in five tries.
        """
        value = self._try_read(id, register, _TRIES)
        if value is None:
            raise ArmLost(f"servo {id} on {self.port}: no answer when register {register.address} was read")
        return value

    def _try_read(self, id: int, register: Register, tries: int) -> int | None:
        for _ in range(tries):
            with self._exchange() as handler:
                data, result, _ = self._packets().readTxRx(handler, id, register.address, register.size)
                if result == self._sdk.COMM_SUCCESS and len(data) == register.size:
                    return register.decode(bytes(data))
                self._wait_for_silence(handler)
        return None

    def write(self, id: int, register: Register, value: int) -> None:
        """One register, acknowledged.

        Raises:
            ArmLost: no acknowledgement in five tries, or the servo refused it.
        """
        data = list(register.encode(value))
        for _ in range(_TRIES):
            with self._exchange() as handler:
                result, error = self._packets().writeTxRx(handler, id, register.address, register.size, data)
                if result == self._sdk.COMM_SUCCESS:
                    if refusal := self._refusal(error):
                        raise ArmLost(f"servo {id} on {self.port}: {value} refused in register {register.address}: {refusal}")
                    return
                self._wait_for_silence(handler)
        raise ArmLost(f"servo {id} on {self.port}: no answer when register {register.address} was written")

    def _wait_for_silence(self, handler: Any) -> None:
        """After a reply that did not come: one that is late must not be taken for the answer to the next question."""
        while select.select([handler.ser.fileno()], [], [], _PATIENCE_S)[0]:
            _available(handler.ser.fileno())

    def _refusal(self, error: int) -> str:
        """Why a servo refused an instruction; empty where it did not."""
        return ""

    # -- all servos at once, in the control loop ------------------------------------------------------------------------

    def sync_read(self, ids: Sequence[int], address: int, length: int) -> dict[int, Reply]:
        """Asks all `ids` at once; returns the replies that came whole and in time.

        Raises:
            ArmLost: the port is gone.
        """
        with self._exchange() as handler:
            fd = handler.ser.fileno()
            self._ask(ids, address, length)
            handler.is_using = False
            deadline = time.monotonic() + self._timeout_s
            replies: dict[int, Reply] = {}
            statuses: list[tuple[int, Reply]] = []
            self._received = b""
            while len(replies) < len(ids) and select.select([fd], [], [], max(deadline - time.monotonic(), 0.0))[0]:
                self._received += _available(fd)
                statuses = self._statuses(self._received)
                replies = {id: reply for id, reply in statuses if id in ids and len(reply.data) == length}
            self.counts["replies"] += len(replies)
            self.counts["lost"] += len(ids) - len(replies)
            self.counts["late"] += len(statuses) - len(replies)
            return replies

    def sync_write(self, register: Register, values: Mapping[int, int]) -> None:
        """Writes a register of several servos at once. Nothing is acknowledged: what is damaged is overwritten by the next.

        Raises:
            ArmLost: the port is gone.
        """
        parameters = [byte for id, value in values.items() for byte in (id, *register.encode(value))]
        with self._exchange() as handler:
            self._packets().syncWriteTxOnly(handler, register.address, register.size, parameters, len(parameters))
            handler.is_using = False

    def _count_late(self, fd: int) -> None:
        """Takes what came after its time out of the way of the next reply."""
        before = len(self._statuses(self._received))
        while select.select([fd], [], [], 0.0)[0]:
            self._received += _available(fd)
        self.counts["late"] += len(self._statuses(self._received)) - before
        self._received = b""

    @contextmanager
    def _exchange(self) -> Iterator[Any]:
        with self._lock:
            if self._handler is None:
                raise ArmLost(f"{self.port}: not connected")
            try:
                self._count_late(self._handler.ser.fileno())
                yield self._handler
            except (OSError, termios.error) as error:
                raise ArmLost(f"{self.port}: {error}; was it unplugged?") from error
            finally:
                if self._handler is not None:
                    self._handler.is_using = False


def _available(fd: int) -> bytes:
    received = os.read(fd, 4096)
    if not received:
        raise OSError("the port was closed")
    return received
