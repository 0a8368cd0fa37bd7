"""A serial arm's geometry as MJCF text: what forward and inverse kinematics, and viewers, need to know of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

Vector = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Link:
    """A joint and the link that it turns, as in a URDF.

    Attributes:
        name: of the joint.
        xyz: of the joint in the frame of the joint before it (base for the first), metres.
        rpy: roll, pitch, yaw about the fixed axes of that frame, rad.
        axis: the joint turns about, in its own frame.
        low, high: range of the joint, rad.
    """

    name: str
    xyz: Vector
    rpy: Vector = (0.0, 0.0, 0.0)
    axis: Vector = (0.0, 0.0, 1.0)
    low: float = -math.pi
    high: float = math.pi


def chain_mjcf(links: Sequence[Link], *, tool_xyz: Vector, tool_rpy: Vector = (0.0, 0.0, 0.0)) -> str:
    """MJCF text of the arm alone, world frame = base frame, site `ee` at the tool.

    Args:
        links: base to tip.
        tool_xyz: of the end effector in the frame of the last joint, metres.
        tool_rpy: likewise, rad.
    """

    def numbers(values: Sequence[float]) -> str:
        return '"' + " ".join(repr(float(value)) for value in values) + '"'

    opening = "".join(
        f"<body name={quoteattr(link.name + '_link')} pos={numbers(link.xyz)} euler={numbers(link.rpy)}>"
        '<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>'
        f"<joint name={quoteattr(link.name)} axis={numbers(link.axis)} range={numbers((link.low, link.high))}/>\n"
        for link in links
    )
    tool = f'<site name="ee" pos={numbers(tool_xyz)} euler={numbers(tool_rpy)}/>\n'
    # XYZ in capitals: about fixed axes, the way a URDF counts roll, pitch and yaw.
    compiler = '<compiler angle="radian" autolimits="true" eulerseq="XYZ"/>'
    return f"<mujoco>{compiler}<worldbody>\n{opening}{tool}{'</body>' * len(links)}</worldbody></mujoco>"
