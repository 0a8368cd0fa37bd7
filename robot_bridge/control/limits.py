"""ArmLimits: how far and how fast an arm may move, and how it stops."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rl_core.contract import Gripper
from rl_core.errors import ArmstackError


class LimitsError(ArmstackError):
    """Limits that cannot be meant; names the field, what was found and what is valid."""


def _numbers(field: str, values: Sequence[float], length: int, *, positive: bool) -> tuple[float, ...]:
    """`values` as floats (an int is a number too); NaN never passes, because no comparison with it would ever limit anything."""
    if len(values) != length:
        raise LimitsError(f"{field}: {len(values)} values, valid: {length}")
    numbers = tuple(float(value) for value in values)
    for value in numbers:
        if not math.isfinite(value) or (positive and value <= 0):
            raise LimitsError(f"{field}: {value}, valid: finite numbers{' above 0' if positive else ''}")
    return numbers


@dataclass(frozen=True, kw_only=True)
class ArmLimits:
    """Limits per joint in the order of `names` (rad, m for the gripper), and of the end effector in frame `base`.

    Attributes:
        names: joint names; the gripper, where there is one, is the last.
        position_min, position_max: (J,) joint range.
        velocity, acceleration, jerk: (J,) bounds of motion on command.
        stop_acceleration, stop_jerk: (J,) bounds of braking; at least those of motion.
        max_lead: (J,) a target further than this from the output (or from the point before it) is refused.
        workspace_min, workspace_max: (3,) box the end effector stays in, metres.
        max_orientation_step: largest turn of the end effector asked for at once, rad.
        max_force, max_torque: norms at which motion stops, N and N m; None where no wrench is measured.
        gripper: open and closed values of the last joint; None for an arm without one.
    """

    names: tuple[str, ...]
    position_min: tuple[float, ...]
    position_max: tuple[float, ...]
    velocity: tuple[float, ...]
    acceleration: tuple[float, ...]
    jerk: tuple[float, ...]
    stop_acceleration: tuple[float, ...]
    stop_jerk: tuple[float, ...]
    max_lead: tuple[float, ...]
    workspace_min: tuple[float, ...]
    workspace_max: tuple[float, ...]
    max_orientation_step: float
    max_force: float | None = None
    max_torque: float | None = None
    gripper: Gripper | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        joints = len(self.names)
        if joints == 0 or len(set(self.names)) != joints:
            raise LimitsError(f"names: {self.names}, valid: at least one, each once")
        for field in ("velocity", "acceleration", "jerk", "stop_acceleration", "stop_jerk", "max_lead"):
            object.__setattr__(self, field, _numbers(field, getattr(self, field), joints, positive=True))
        for field, length in (("position_min", joints), ("position_max", joints), ("workspace_min", 3), ("workspace_max", 3)):
            object.__setattr__(self, field, _numbers(field, getattr(self, field), length, positive=False))
        for field in ("max_orientation_step", "max_force", "max_torque"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, _numbers(field, (getattr(self, field),), 1, positive=True)[0])
        for low, high in (
            ("position_min", "position_max"),
            ("workspace_min", "workspace_max"),
            ("acceleration", "stop_acceleration"),
            ("jerk", "stop_jerk"),
        ):
            for a, b in zip(getattr(self, low), getattr(self, high), strict=True):
                if a > b or (a == b and low.endswith("_min")):
                    raise LimitsError(f"{low} {a} is not below {high} {b}")
        if self.gripper is not None:
            if self.gripper.name != self.names[-1]:
                raise LimitsError(f"gripper {self.gripper.name!r}, valid: the last of names, {self.names[-1]!r}")
            for end in (self.gripper.open, self.gripper.closed):
                if not self.position_min[-1] <= end <= self.position_max[-1]:
                    raise LimitsError(f"gripper end {end}, valid: {self.position_min[-1]}..{self.position_max[-1]}")

    @property
    def arm_joints(self) -> int:
        """Number of joints without the gripper."""
        return len(self.names) - (self.gripper is not None)

    def to_json(self) -> str:
        """JSON text; `from_json` gives equal limits."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ArmLimits:
        """Reads `to_json`'s text.

        Raises:
            LimitsError: not JSON, or a field is wrong, unknown or missing.
        """
        try:
            data = json.loads(text)
            gripper = data.pop("gripper", None)
            return cls(gripper=Gripper(**gripper) if gripper else None, **data)
        except (json.JSONDecodeError, TypeError, AttributeError) as error:
            raise LimitsError(f"limits cannot be read: {error}") from error


def panda_limits() -> ArmLimits:
    """The Panda's published joint limits (Franka Control Interface documentation, "Limits for Panda").

    Braking uses the published acceleration and jerk, motion on command half of them. The hand opens 0.08 m and each
    finger moves at most 0.05 m/s (Franka Hand datasheet); its acceleration and jerk are ours.
    """
    acceleration = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
    jerk = (7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0)
    return ArmLimits(
        names=(*(f"panda_joint{i}" for i in range(1, 8)), "gripper"),
        position_min=(-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973, 0.0),
        position_max=(2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973, 0.08),
        velocity=(2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61, 0.1),
        acceleration=(*(a / 2 for a in acceleration), 2.0),
        jerk=(*(j / 2 for j in jerk), 400.0),
        stop_acceleration=(*acceleration, 4.0),
        stop_jerk=(*jerk, 2000.0),
        max_lead=(1.2,) * 7 + (0.1,),
        workspace_min=(0.1, -0.6, -0.105),
        workspace_max=(0.85, 0.6, 0.9),
        max_orientation_step=1.0,
        max_force=40.0,
        max_torque=12.0,
        gripper=Gripper(name="gripper", open=0.08, closed=0.0),
    )
