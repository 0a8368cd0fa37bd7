"""FeetechArm: arms of Feetech STS servos (SO-100, SO-101), over Feetech's own library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

from robot_bridge.arms.servo_arm import ServoArm
from robot_bridge.arms.servo_bus import Reply, ServoBus, import_sdk
from robot_bridge.arms.servo_family import ServoFamily
from sim_envs.servo_bus.tables import Register

_HEADER = b"\xff\xff"
FEETECH = ServoFamily(
    state=("Present_Position", "Present_Velocity"),
    health=("Torque_Enable", "Lock"),
    errors={0: "voltage", 1: "encoder", 2: "overheating", 3: "overcurrent", 5: "overload"},
    error_register=None,
    position_mode=0,
    lock="Lock",
    watchdog=None,
)


class FeetechBus(ServoBus):
    """See `ServoBus`; STS/SMS protocol, little-endian, one-byte checksum."""

    _model_number = Register(3, 2)

    @cached_property
    def _sdk(self) -> ModuleType:
        return import_sdk("scservo_sdk", "feetech")

    def _packets(self) -> Any:
        return self._sdk.protocol_packet_handler()

    def _ask(self, ids: Sequence[int], address: int, length: int) -> None:
        self._packets().syncReadTx(self._handler, address, length, list(ids), len(ids))

    def _statuses(self, received: bytes) -> list[tuple[int, Reply]]:
        found = []
        start = received.find(_HEADER)
        while start >= 0:
            end = start + 4 + int.from_bytes(received[start + 3 : start + 4])
            packet, behind = received[start:end], received[end : end + 2]
            whole = 6 <= end - start == len(packet) and ~sum(packet[2:-1]) & 0xFF == packet[-1]
            # A packet that lost a byte borrows the first of the next, and one byte of checksum can be right by chance.
            if whole and (packet[-1] != _HEADER[0] or _HEADER.startswith(behind)):
                found.append((packet[2], Reply(packet[4], packet[5:-1])))
                start = received.find(_HEADER, end)
            else:
                start = received.find(_HEADER, start + 1)
        return found


class FeetechArm(ServoArm):
    """An arm of Feetech servos. See `ServoArm`.

    `stop` makes every joint hold where it was last measured, torque on; the gripper keeps its target. The servos have no watchdog
    on the bus: when this process dies they go on to the last target, never more than one control period away, and hold it.
    Models: `so101`, `so100`.
    """

    bus_type = FeetechBus
    family = FEETECH
