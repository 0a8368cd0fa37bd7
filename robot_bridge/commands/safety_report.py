"""`armstack safety-report ARM`: the limits an arm is driven within, where each comes from, and what it does when the process dies."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from rl_core.contract import RobotContract
from rl_core.errors import ArmstackError
from robot_bridge.arm_parameters import read_arm_file, settings_of
from robot_bridge.arms.registry import ARMS, SIMULATED, ArmEntry, find_arm, make_arm, make_settings
from robot_bridge.arms.tightening import Tightening
from robot_bridge.commands.output import console, emit_json
from robot_bridge.control.limits import ArmLimits, panda_limits
from robot_bridge.control.settings import FilterSettings

_BOTH_END = "the world is in that process: both end"
_PER_JOINT = ("position_min", "position_max", "velocity", "acceleration", "jerk", "stop_acceleration", "stop_jerk", "max_lead")
_WHOLE = ("workspace_min", "workspace_max", "max_orientation_step", "max_force", "max_torque")
_TIGHTENING = tuple(field.name for field in dataclasses.fields(Tightening))


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Effective limits of an arm and the source of each: the vendor, the policy's contract, or tightening in the arm node's parameters."""

    arm: Annotated[str, tyro.conf.Positional]
    """simulated, franka, trossen, ur, dynamixel, feetech, ros2_control."""
    config: Path | None = None
    """Parameter file of the arm node (launch/config/arm.yaml): the driver's settings and the tightening."""
    bundle: Path | None = None
    """Policy bundle: what its contract asks for at most."""
    json: bool = False
    """Print one JSON object on the last line."""


@dataclass(frozen=True)
class Limit:
    """One row.

    Attributes:
        name: what is limited, a field of `ArmLimits`.
        joint: of which joint; empty: of the whole arm.
        value: what holds.
        source: `vendor`, `armstack` (the vendor states none), `config` (tightened in the arm node's parameters) or `contract`.
    """

    name: str
    joint: str
    value: Any
    source: str


def _arm(name: str, parameters: dict[str, Any]) -> tuple[ArmLimits, ArmEntry]:
    if name == SIMULATED:
        return panda_limits(), dataclasses.replace(ARMS["franka"], when_process_dies=_BOTH_END, watchdog_s=None)
    fields = settings_of(name)
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in parameters.items() if key in fields}
    if "host" in fields:
        values.setdefault("host", "not asked")  # nothing is connected
    return make_arm(name, make_settings(name, values)).limits, find_arm(name)


def effective(own: ArmLimits, vendor: Collection[str], tightening: Tightening, contract: RobotContract | None = None) -> list[Limit]:
    """Every limit that holds.

    Args:
        own: the driver's.
        vendor: those of its fields that the vendor states.
        tightening: of the arm node's parameters.
        contract: of a policy; it limits by what an output of 1 asks for in a period.
    """
    limits = tightening.apply(own)
    asked: dict[str, float] = {}
    if contract is not None and contract.action.space == "joint" and contract.action.meaning == "delta":
        action = contract.action
        steps = zip(action.names, action.scale, strict=True)
        asked = {name: scale / action.period_s for name, scale in steps if action.gripper is None or name != action.gripper.name}
    rows = []
    for field in _PER_JOINT:
        for joint, value, original in zip(limits.names, getattr(limits, field), getattr(own, field), strict=True):
            by = _source(field, vendor) if value == original else "config"
            if field == "velocity" and asked.get(joint, value) < value:
                value, by = asked[joint], "contract"
            rows.append(Limit(field, joint, value, by))
    for field in _WHOLE:
        value = getattr(limits, field)
        if value is not None:
            rows.append(Limit(field, "", value, _source(field, vendor) if value == getattr(own, field) else "config"))
    return rows


def _source(field: str, vendor: Collection[str]) -> str:
    return "vendor" if field in vendor else "armstack"


def braking_s(limits: ArmLimits) -> float:
    """Longest time from a joint's highest velocity to rest at the stop limits, seconds; the gripper is left out."""
    joints = zip(limits.velocity, limits.stop_acceleration, limits.stop_jerk, strict=True)
    return max([v / a + a / j for v, a, j in joints][: limits.arm_joints])


def stops_within_s(entry: ArmEntry, limits: ArmLimits) -> float:
    """Longest time from the death of the process that drives an arm to the end of its motion, seconds.

    The vendor's watchdog takes its time, where there is one; what was handed to the arm is one control period of motion, which ends,
    like the watchdog's stop, by braking from the highest velocity that `limits` allow.
    """
    if entry.when_process_dies == _BOTH_END:
        return 0.0
    return (entry.watchdog_s or 0.0) + FilterSettings().control_period_s + braking_s(limits)


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack safety-report")
    settings_of(arguments.arm)  # an arm that there is
    parameters = {} if arguments.config is None else read_arm_file(arguments.config, arguments.arm)
    try:
        own, entry = _arm(arguments.arm, parameters)
    except ArmstackError as error:
        raise ArmstackError(f"{arguments.config}: {error}" if arguments.config is not None else str(error)) from error
    given: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in parameters.items() if key in _TIGHTENING}
    tightening = Tightening(**given)
    contract = None
    if arguments.bundle is not None:
        from rl_core.bundle import Bundle
        from rl_core.methods import load_policy

        contract = load_policy(Bundle.load(arguments.bundle)).contract
    rows = effective(own, entry.vendor_limits, tightening, contract)
    settings = FilterSettings()
    limits = tightening.apply(own)
    dead_s, stop_s = stops_within_s(entry, limits), settings.control_period_s + braking_s(limits)
    facts = {
        "vendor": entry.vendor,
        "when the process dies": entry.when_process_dies,
        "vendor's watchdog": "none" if entry.watchdog_s is None else f"after {entry.watchdog_s:g} s",
        "motion after the process died": f"ends within {dead_s:.2f} s",
        "when commands stop": f"brakes after {settings.command_age_s:g} s, at rest {stop_s:.2f} s later",
        "handed to the arm at once": f"one control period of motion, {settings.control_period_s:g} s",
        "required guards": ", ".join(filter(None, parameters.get("required_guards", []))) or "none",
        "required e-stops": ", ".join(filter(None, parameters.get("required_estops", []))) or "none",
    }
    table = Table("limit", "joint", "value", "from", title=f"{arguments.arm}: limits (rad, m, s, N, N m)")
    for row in rows:
        table.add_row(row.name, row.joint, _shown(row.value), row.source)
    console.print(table)
    for name, value in facts.items():
        console.print(f"{name}: {value}")
    if arguments.json:
        named = {name.replace("'", "").replace("-", "_").replace(" ", "_"): value for name, value in facts.items()}
        figures = {"stops_within_s": dead_s, "watchdog_s": entry.watchdog_s}
        emit_json({"arm": arguments.arm, "limits": [dataclasses.asdict(row) for row in rows], **named, **figures})
    return 0


def _shown(value: Any) -> str:
    return ", ".join(f"{v:g}" for v in value) if isinstance(value, tuple) else f"{value:g}"
