"""Dynamixel Protocol 2.0 on the servos' side: byte stuffing, CRC-16, instruction and status packets (ROBOTIS e-manual)."""

from __future__ import annotations

from sim_envs.servo_bus.wire import BROADCAST, Instruction, split_blocks

_HEADER = b"\xff\xff\xfd\x00"
_STATUS = 0x55
_ALERT = 0x80


def _remainder(byte: int) -> int:
    crc = byte << 8
    for _ in range(8):
        crc = (crc << 1 ^ (0x8005 if crc & 0x8000 else 0)) & 0xFFFF
    return crc


_REMAINDERS = [_remainder(byte) for byte in range(256)]


def crc16(data: bytes) -> int:
    """CRC-16 with polynomial 0x8005, no reflection, start 0."""
    crc = 0
    for byte in data:
        crc = (crc << 8 ^ _REMAINDERS[crc >> 8 ^ byte]) & 0xFFFF
    return crc


def _word(low: int, high: int) -> int:
    return low | high << 8


class Protocol2:
    """See `Wire`."""

    def split(self, buffer: bytearray) -> list[bytes]:
        """See `Wire.split`."""
        packets: list[bytes] = []
        while True:
            start = buffer.find(_HEADER)
            if start < 0:
                del buffer[: max(len(buffer) - len(_HEADER) + 1, 0)]
                return packets
            del buffer[:start]
            if len(buffer) < 7 or len(buffer) < (end := 7 + _word(buffer[5], buffer[6])):
                return packets
            packets.append(bytes(buffer[:end]))
            del buffer[:end]

    def decode(self, packet: bytes) -> Instruction | None:
        """See `Wire.decode`."""
        if len(packet) < 10 or not packet.startswith(_HEADER) or len(packet) != 7 + _word(packet[5], packet[6]):
            return None
        if crc16(packet[:-2]) != _word(packet[-2], packet[-1]):
            return None
        id, instruction = packet[4], packet[7]
        parameters = packet[7:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")[1:]
        address = _word(*parameters[:2]) if len(parameters) >= 2 else 0
        match instruction:
            case 0x01:
                return Instruction(kind="ping", ids=(id,))
            case 0x02 if len(parameters) == 4:
                return Instruction(kind="read", ids=(id,), address=address, length=_word(*parameters[2:4]))
            case 0x03 if len(parameters) > 2:
                return Instruction(kind="write", ids=(id,), address=address, data={id: parameters[2:]})
            case 0x08:
                return Instruction(kind="reboot", ids=(id,))
            case 0x82 if id == BROADCAST and len(parameters) > 4:
                return Instruction(kind="sync_read", ids=tuple(parameters[4:]), address=address, length=_word(*parameters[2:4]))
            case 0x83 if id == BROADCAST and len(parameters) > 4:
                data = split_blocks(parameters[4:], _word(*parameters[2:4]))
                return Instruction(kind="sync_write", ids=tuple(data), address=address, data=data) if data else None
        return None

    def status(self, id: int, error: int, hardware_error: int, data: bytes) -> bytes:
        """See `Wire.status`; hardware errors only raise the alert bit."""
        body = (bytes([_STATUS, error | (_ALERT if hardware_error else 0)]) + data).replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")
        packet = _HEADER + bytes([id]) + (len(body) + 2).to_bytes(2, "little") + body
        return packet + crc16(packet).to_bytes(2, "little")
