"""What an offered contract lacks of a needed one, and what fits but is not quite the same; behind `RobotContract.accepts`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_core.contract import RobotContract

_CAMERA_MOVED_M = 0.01
_CAMERA_TURNED_RAD = math.radians(2.0)


def differences(need: RobotContract, offered: RobotContract) -> list[str]:
    """Each difference that makes them unfit, both sides named."""
    found: list[str] = []
    for group in ("observation", "condition"):
        there = {channel.name: channel for channel in getattr(offered, group)}
        for channel in getattr(need, group):
            if channel.name not in there:
                found.append(f"{group}.{channel.name}: needed, but only {sorted(there)} offered")
                continue
            fields = ["kind", "names", "unit", "frame"] + (["shape", "encoding", "row_order"] if channel.kind == "image" else [])
            found += _unequal(f"{group}.{channel.name}", channel, there[channel.name], fields)
    fields = ["names", "meaning", "space", "scale", "units", "frame", "period_s", "gripper"]
    return found + _unequal("action", need.action, offered.action, fields)


def cautions(need: RobotContract, offered: RobotContract) -> Iterator[str]:
    """What is known to differ in contracts that fit: another controller, a camera that looks from elsewhere."""
    made_for, found = need.action.controller, offered.action.controller
    if made_for and found and made_for != found:
        yield f"made for the controller {made_for}, found {found}: the same action moves the arm differently"
    there = {channel.name: channel.calibration for channel in offered.observation}
    for channel in need.observation:
        was, now = channel.calibration, there[channel.name]
        if was is None or now is None:
            continue
        if was.frame != now.frame:
            yield f"camera {channel.name} was calibrated in frame {was.frame}, now in {now.frame}"
            continue
        moved_m, turned = now.moved_from(was)
        if moved_m > _CAMERA_MOVED_M or turned > _CAMERA_TURNED_RAD:
            yield f"camera {channel.name} stands {moved_m:.3f} m and {math.degrees(turned):.1f} degrees from where it was"


def _unequal(where: str, need: object, have: object, fields: Sequence[str]) -> list[str]:
    return [
        f"{where}.{field}: needs {getattr(need, field)!r}, offered {getattr(have, field)!r}"
        for field in fields
        if getattr(need, field) != getattr(have, field)
    ]
