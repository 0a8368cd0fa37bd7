"""Feetech's STS/SMS protocol on the servos' side: instruction and status packets with a one-byte checksum."""

from __future__ import annotations

from sim_envs.servo_bus.wire import BROADCAST, Instruction, split_blocks

_HEADER = b"\xff\xff"


def checksum(body: bytes) -> int:
    """Of everything after the header."""
    return ~sum(body) & 0xFF


class Sts:
    """See `Wire`."""

    def split(self, buffer: bytearray) -> list[bytes]:
        """See `Wire.split`."""
        packets: list[bytes] = []
        while True:
            start = buffer.find(_HEADER)
            if start < 0:
                del buffer[: max(len(buffer) - 1, 0)]
                return packets
            del buffer[:start]
            if len(buffer) < 4 or len(buffer) < (end := 4 + buffer[3]):
                return packets
            packets.append(bytes(buffer[:end]))
            del buffer[:end]

    def decode(self, packet: bytes) -> Instruction | None:
        """See `Wire.decode`."""
        if len(packet) < 6 or not packet.startswith(_HEADER) or len(packet) != 4 + packet[3]:
            return None
        if checksum(packet[2:-1]) != packet[-1]:
            return None
        id, instruction, parameters = packet[2], packet[4], packet[5:-1]
        match instruction:
            case 1:
                return Instruction(kind="ping", ids=(id,))
            case 2 if len(parameters) == 2:
                return Instruction(kind="read", ids=(id,), address=parameters[0], length=parameters[1])
            case 3 if len(parameters) > 1:
                return Instruction(kind="write", ids=(id,), address=parameters[0], data={id: parameters[1:]})
            case 0x82 if id == BROADCAST and len(parameters) > 2:
                return Instruction(kind="sync_read", ids=tuple(parameters[2:]), address=parameters[0], length=parameters[1])
            case 0x83 if id == BROADCAST and len(parameters) > 2:
                data = split_blocks(parameters[2:], parameters[1])
                return Instruction(kind="sync_write", ids=tuple(data), address=parameters[0], data=data) if data else None
        return None

    def status(self, id: int, error: int, hardware_error: int, data: bytes) -> bytes:
        """See `Wire.status`; the error byte is the servo's own, instructions have none."""
        body = bytes([id, len(data) + 2, hardware_error]) + data
        return _HEADER + body + bytes([checksum(body)])
