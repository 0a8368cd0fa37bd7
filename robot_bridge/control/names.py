"""Values by joint name: the one place where an order of names is turned into another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rl_core.errors import ArmstackError

NameFault = Literal["duplicate_name", "unknown_name", "missing_name"]


class JointNameError(ArmstackError):
    """Names that do not fit; `reason` is duplicate_name, unknown_name or missing_name; the message lists both sides."""

    def __init__(self, reason: NameFault, found: Sequence[str], wanted: Sequence[str], culprits: Sequence[str]) -> None:
        self.reason: NameFault = reason
        super().__init__(f"{reason.replace('_', ' ')} {list(culprits)}: found {list(found)}, valid: {list(wanted)}, each once")


def order_by_name(found: Sequence[str], wanted: Sequence[str], *, allow_more: bool = False) -> list[int]:
    """Indices into `found` that give the order of `wanted`.

    Args:
        found: names as they arrived, any order.
        wanted: names in the order needed.
        allow_more: names in `found` that nobody wants are ignored instead of refused.

    Raises:
        JointNameError: a name is there twice, missing, or (without `allow_more`) unknown.
    """
    place = {name: index for index, name in enumerate(found)}
    if len(place) != len(found):
        raise JointNameError("duplicate_name", found, wanted, sorted({name for name in found if list(found).count(name) > 1}))
    unknown = [name for name in found if name not in wanted]
    if unknown and not allow_more:
        raise JointNameError("unknown_name", found, wanted, unknown)
    missing = [name for name in wanted if name not in place]
    if missing:
        raise JointNameError("missing_name", found, wanted, missing)
    return [place[name] for name in wanted]
