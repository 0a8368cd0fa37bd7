"""Instructions as servos understand them, and what a protocol must be able to do with bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

BROADCAST = 0xFE

Kind = Literal["ping", "read", "write", "reboot", "sync_read", "sync_write"]


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One decoded instruction packet.

    Attributes:
        kind: what is asked for.
        ids: whom; `(BROADCAST,)` for everyone.
        address, length: of the bytes asked for.
        data: id -> bytes to write at `address`.
    """

    kind: Kind
    ids: tuple[int, ...]
    address: int = 0
    length: int = 0
    data: Mapping[int, bytes] = field(default_factory=dict)


class Wire(Protocol):
    """A protocol's packets as bytes."""

    def split(self, buffer: bytearray) -> list[bytes]:
        """Takes the whole packets out of `buffer`; what is not the beginning of one is dropped."""
        ...

    def decode(self, packet: bytes) -> Instruction | None:
        """The instruction; None for a damaged packet or one that no servo here understands."""
        ...

    def status(self, id: int, error: int, hardware_error: int, data: bytes) -> bytes:
        """A reply: `error` is the instruction's error number, `hardware_error` the servo's own error bits."""
        ...


def split_blocks(blocks: bytes, length: int) -> dict[int, bytes] | None:
    """id -> data of a sync write's parameters, `length` bytes each; None where they do not add up."""
    if not blocks or len(blocks) % (length + 1):
        return None
    return {blocks[i]: blocks[i + 1 : i + 1 + length] for i in range(0, len(blocks), length + 1)}
