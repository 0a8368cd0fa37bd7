"""DynamixelArm: arms of Dynamixel X servos (Koch, WidowX 250, ViperX 300), Protocol 2.0 over ROBOTIS's own library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

from robot_bridge.arms.servo_arm import ServoArm
from robot_bridge.arms.servo_bus import Reply, ServoBus, import_sdk
from robot_bridge.arms.servo_family import ServoFamily
from sim_envs.servo_bus.tables import Register

_HEADER = b"\xff\xff\xfd\x00"
_STATUS = 0x55
_ALERT = 0x80
DYNAMIXEL = ServoFamily(
    state=("Present_Velocity", "Present_Position"),
    health=("Torque_Enable", "Bus_Watchdog"),
    errors={0: "voltage", 2: "overheating", 3: "encoder", 4: "electrical shock", 5: "overload"},
    error_register="Hardware_Error_Status",
    position_mode=4,
    lock=None,
    watchdog="Bus_Watchdog",
)


class DynamixelBus(ServoBus):
    """See `ServoBus`; Protocol 2.0."""

    _model_number = Register(0, 2)

    @cached_property
    def _sdk(self) -> ModuleType:
        return import_sdk("dynamixel_sdk", "dynamixel")

    def _packets(self) -> Any:
        return self._sdk.Protocol2PacketHandler()

    def _ask(self, ids: Sequence[int], address: int, length: int) -> None:
        self._packets().syncReadTx(self._handler, address, length, list(ids), len(ids), False)

    def _refusal(self, error: int) -> str:
        return str(self._packets().getRxPacketError(error & ~_ALERT)) if error & ~_ALERT else ""

    def _statuses(self, received: bytes) -> list[tuple[int, Reply]]:
        found = []
        start = received.find(_HEADER)
        while start >= 0:
            end = start + 7 + int.from_bytes(received[start + 5 : start + 7], "little")
            packet = received[start:end]
            if 11 <= end - start == len(packet) and packet[7] == _STATUS and self._sound(packet):
                body = packet[8:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
                found.append((packet[4], Reply(body[0], body[1:])))
                start = received.find(_HEADER, end)
            else:
                start = received.find(_HEADER, start + 1)
        return found

    def _sound(self, packet: bytes) -> bool:
        return self._packets().updateCRC(0, packet, len(packet) - 2) == int.from_bytes(packet[-2:], "little")


class DynamixelArm(ServoArm):
    """An arm of Dynamixel X servos. See `ServoArm`.

    `stop` makes every joint hold where it was last measured, torque on; the gripper keeps its target. The servos' Bus_Watchdog is
    set: when the bus falls silent for half a second (this process died, the cable came off) they stop by themselves, hold, and take
    no target until `connect`. Models: `koch_v1_1`, `wx250`, `vx300s`.
    """

    bus_type = DynamixelBus
    family = DYNAMIXEL
