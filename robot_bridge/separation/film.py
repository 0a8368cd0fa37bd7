"""Film of an arm beside a person, from a bag of `launch/separation`: from the side and from above, true and found keypoints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from rl_core.training.video import write_mp4
from robot_bridge.auxiliary.monitoring.rfmamba.interface import BONES
from robot_bridge.control.arm_shape import ArmShape
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.separation.report import messages_of, read_separation
from robot_bridge.separation.trace import Array

_TOPICS = {"contract": "/arm/contract", "joints": "/joint_states", "true": "/sim/person", "found": "/human/keypoints"}
_SIZE, _BAR = 360, 40
_SPANS = {"side": ((-0.6, 3.2), (-0.9, 1.6)), "top": ((-0.6, 3.2), (-1.25, 1.25))}
"""Metres that are shown, of x and of z or y."""
_WIDTH = round(_SIZE * 3.8 / 2.5)
ARM, TRUE, FOUND, _TEXT = (30, 110, 40), (31, 90, 180), (235, 120, 20), (20, 20, 20)
_FREE, _HELD = (255, 255, 255), (214, 214, 214)


def write_film(bag: str | Path, file: str | Path, *, fps: float = 10.0, seconds: float = 60.0) -> Path:
    """Writes the first `seconds` of a bag as MP4 at true speed; grey while the arm is held.

    Raises:
        BagError: no bag there, or one without an arm or a simulated person.
        ContractError: an arm's contract that cannot be read.
    """
    found = messages_of(bag, _TOPICS, needed=("contract", "joints", "true"))
    offer = ArmOffer.from_json(found["contract"][-1][1].data)
    names = offer.limits.names[: offer.limits.arm_joints]
    shape, trace = ArmShape(offer.ik_model, names, tool=offer.tool_frame), read_separation(bag)
    poses = {name: [(stamp, _points(message)) for stamp, message in found[name]] for name in ("true", "found")}
    begin_ns = found["true"][0][0]
    first_ns = found["joints"][0][0]

    def frames() -> Iterator[NDArray[np.uint8]]:
        last_ns = min(found["true"][-1][0], begin_ns + round(seconds * 1e9))
        for stamp_ns in range(begin_ns, last_ns + 1, round(1e9 / fps)):
            joints = _at(found["joints"], max(stamp_ns, first_ns))
            period = min(int(np.searchsorted(trace.seconds, (stamp_ns - trace.begin_ns) * 1e-9)), len(trace.seconds) - 1)
            order = [list(joints.name).index(name) for name in names]
            segments = shape.segments(np.asarray(joints.position)[order])
            picture = Image.new("RGB", (2 * _WIDTH, _SIZE + _BAR), _HELD if trace.held[period] else _FREE)
            draw = ImageDraw.Draw(picture)
            for number, (view, axis) in enumerate((("side", 2), ("top", 1))):
                _lines(draw, segments, view, axis, number * _WIDTH, ARM, 7)
                for name, colour, width in (("true", TRUE, 4), ("found", FOUND, 2)):
                    if (points := _at(poses[name], stamp_ns)) is not None:
                        _lines(draw, np.stack([points[[a, b]] for a, b in BONES]), view, axis, number * _WIDTH, colour, width)
            told = "-" if np.isnan(trace.heard_m[period]) else f"{trace.heard_m[period]:.2f} m"
            text = f"{(stamp_ns - begin_ns) * 1e-9:5.1f} s   distance {trace.distance_m[period]:.2f} m   heard {told}   " + (
                "hold" if trace.held[period] else f"allowed speed {100 * np.nan_to_num(trace.scale[period]):.0f} %"
            )
            draw.text((10, _SIZE + 8), text, fill=_TEXT, font=ImageFont.load_default(18))
            for number, label in enumerate(("from the side", "from above")):
                draw.text((number * _WIDTH + 10, 8), label, fill=_TEXT, font=ImageFont.load_default(14))
            yield np.asarray(picture)

    return write_mp4(file, frames(), fps)


def _points(message: Any) -> Array:
    return np.array([(pose.position.x, pose.position.y, pose.position.z) for pose in message.poses])


def _at(rows: list[tuple[int, Any]], stamp_ns: int) -> Any:
    """The newest at that time; None before the first."""
    index = bisect_right(rows, stamp_ns, key=lambda row: row[0]) - 1
    return None if index < 0 else rows[index][1]


def _lines(draw: ImageDraw.ImageDraw, segments: Array, view: str, axis: int, left: int, colour: tuple[int, int, int], width: int) -> None:
    """Line segments (n, 2, 3), metres, in one of the two views."""
    (x_low, x_high), (low, high) = _SPANS[view]
    places = (segments[..., [0, axis]] - (x_low, low)) / (x_high - x_low, high - low)
    for (x, y), (to_x, to_y) in places:
        ends = [(left + x * _WIDTH, (1 - y) * _SIZE), (left + to_x * _WIDTH, (1 - to_y) * _SIZE)]
        draw.line(ends, fill=colour, width=width, joint="curve")
