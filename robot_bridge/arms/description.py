"""ArmDescription: an arm's kinematics and limits from the URDF or MJCF that it comes with, and a YAML file for what that does not say.

robot: my_arm.urdf                    # URDF or MJCF, beside this file; meshes are not needed
joints: [base, shoulder, elbow]       # those that the controller moves, without the gripper
tool: tool0                           # link, body or site that is the end effector
acceleration: 5.0                     # rad/s^2; one number, or one a joint
jerk: 250.0                           # rad/s^3
velocity: {elbow: 2.0}                # where the file states none, or to tighten what it states
range: {base: [-3.1, 3.1]}            # likewise
workspace: {min: [-0.5, -0.5, 0.0], max: [0.5, 0.5, 0.8]}
gripper: {name: gripper, open: 0.08, closed: 0.0, velocity: 0.1}    # leave it out where there is none
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import yaml

from rl_core.contract import Gripper
from rl_core.errors import ArmstackError
from rl_core.yaml_text import load_yaml
from robot_bridge.control.limits import ArmLimits, LimitsError

_NEEDED = ("robot", "joints", "tool", "acceleration", "jerk", "workspace")
_FIELDS = (*_NEEDED, "velocity", "range", "gripper")
_HAND = (20.0, 4000.0)  # acceleration and jerk of a gripper by its velocity, as of the Franka Hand
_STOP = 2.0  # braking may be so much harder than motion on command
_MAX_LEAD = 1.2


class DescriptionError(ArmstackError):
    """A description of an arm that cannot be meant; names the file, the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class ArmDescription:
    """What a driver needs to say of its arm.

    Attributes:
        limits: joints in the order of the file, gripper last.
        mjcf: kinematics of the arm alone, with site `ee`.
    """

    limits: ArmLimits
    mjcf: str


def describe_arm(path: str | Path) -> ArmDescription:
    """Reads the YAML file and the robot description that it names.

    Raises:
        DescriptionError: a file cannot be read, a field is missing, unknown or wrong, or the robot has no such joint or tool. A limit that
            neither file states is asked for by name.
    """
    path = Path(path)
    try:
        data = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise DescriptionError(f"{path}: {error}") from error
    if not isinstance(data, dict) or not set(_NEEDED) <= set(data) <= set(_FIELDS):
        found = sorted(data) if isinstance(data, dict) else type(data).__name__
        raise DescriptionError(f"{path}: fields {found}, valid: {', '.join(_NEEDED)}, and optionally {', '.join(_FIELDS[len(_NEEDED) :])}")
    robot = path.parent / str(data["robot"])
    try:
        spec, ranges, velocities = _kinematics(robot)
        names = _joints(spec, data["joints"])
        _add_tool(spec, str(data["tool"]))
        limits = _limits(data, names, ranges, velocities, robot.name)
        for joint in spec.joints:
            low, high = (getattr(limits, end)[names.index(joint.name)] for end in ("position_min", "position_max"))
            joint.limited, joint.range = mujoco.mjtLimited.mjLIMITED_TRUE, [low, high]
        spec.compile()
        return ArmDescription(limits=limits, mjcf=spec.to_xml())
    except (DescriptionError, LimitsError) as error:
        raise DescriptionError(f"{path}: {error}") from None
    except (OSError, ET.ParseError, ValueError, TypeError, KeyError, mujoco.FatalError) as error:
        raise DescriptionError(f"{path}: {robot}: {type(error).__name__}: {error}") from error


def _kinematics(robot: Path) -> tuple[mujoco.MjSpec, dict[str, list[float]], dict[str, float]]:
    """What moves of the robot, without shapes, motors and constraints, angles in rad; the ranges; and the velocities a URDF states."""
    root = ET.fromstring(robot.read_text(encoding="utf-8"))
    velocities = {}
    if root.tag == "robot":
        for link in root.iter("link"):
            for shape in [*link.findall("visual"), *link.findall("collision")]:
                link.remove(shape)
        for joint in root.findall("joint"):
            limit = joint.find("limit")
            if limit is not None and float(limit.get("velocity", 0.0)) > 0:
                velocities[str(joint.get("name"))] = float(limit.get("velocity", 0.0))
        for extension in root.findall("mujoco"):
            root.remove(extension)
        options = {"fusestatic": "false", "boundmass": "0.001", "boundinertia": "1e-6", "balanceinertia": "true"}
        ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", options)
        spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    else:
        spec = mujoco.MjSpec.from_file(str(robot))
    for group in (
        "keys",
        "sensors",
        "actuators",
        "tendons",
        "equalities",
        "excludes",
        "pairs",
        "geoms",
        "meshes",
        "skins",
        "textures",
        "materials",
    ):
        for element in list(getattr(spec, group)):
            spec.delete(element)
    spec.compiler.boundmass, spec.compiler.boundinertia = 1e-3, 1e-6  # bodies whose mass came with their shapes
    model = spec.compile()
    joints = [model.joint(i) for i in range(model.njnt)]
    ranges = {joint.name: joint.range.tolist() for joint in joints if model.jnt_limited[joint.id]}
    return mujoco.MjSpec.from_string(spec.to_xml()), ranges, velocities


def _joints(spec: mujoco.MjSpec, wanted: Any) -> list[str]:
    """The wanted joints in the order of the file; all others become rigid."""
    turning = [joint.name for joint in spec.joints if joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)]
    if not isinstance(wanted, list) or not wanted or not set(wanted) <= set(turning) or len(set(wanted)) != len(wanted):
        raise DescriptionError(f"joints: {wanted}, valid: some of {turning}, each once")
    for joint in list(spec.joints):
        if joint.name not in wanted:
            spec.delete(joint)
    return [joint.name for joint in spec.joints]


def _add_tool(spec: mujoco.MjSpec, tool: str) -> None:
    sites, bodies = {site.name: site for site in spec.sites}, {body.name: body for body in spec.bodies}
    if tool not in sites and tool not in bodies:
        raise DescriptionError(f"tool: {tool!r}, valid: a link, body or site: {[*bodies, *sites]}")
    if tool in sites:
        sites[tool].name = "ee"
    else:
        bodies[tool].add_site(name="ee")


def _limits(
    data: Mapping[str, Any], names: Sequence[str], ranges: dict[str, list[float]], velocities: dict[str, float], robot: str
) -> ArmLimits:
    for field, stated in (("velocity", velocities), ("range", ranges)):
        given = _by_joint(field, data.get(field, {}), names)
        wider = [name for name, value in given.items() if name in stated and _wider(value, stated[name])]
        if wider:
            ours, theirs = ({name: found[name] for name in wider} for found in (given, stated))
            raise DescriptionError(f"{field}: {ours} is wider than {robot} states, {theirs}")
        stated.update(given)
        if missing := [name for name in names if name not in stated]:
            example = "{" + ", ".join(f"{name}: {'[-1.5, 1.5]' if field == 'range' else 2.0}" for name in missing) + "}"
            raise DescriptionError(f"{field}: {robot} states none of {', '.join(missing)}; give it here, e.g. {field}: {example}")
    acceleration, jerk = (_by_joint(field, data[field], names) for field in ("acceleration", "jerk"))
    for field, given in (("acceleration", acceleration), ("jerk", jerk)):
        if missing := [name for name in names if name not in given]:
            raise DescriptionError(f"{field}: missing for {', '.join(missing)}; valid: one number, or one for each of {', '.join(names)}")
    rows = [(name, *ranges[name], velocities[name], acceleration[name], jerk[name], _MAX_LEAD) for name in names]
    gripper = None
    if "gripper" in data:
        hand = data["gripper"]
        if not isinstance(hand, dict) or not {"name", "open", "closed", "velocity"} <= set(hand) <= {
            "name",
            "open",
            "closed",
            "velocity",
            "unit",
        }:
            raise DescriptionError(f"gripper: {hand}, valid: name, open, closed, velocity, and optionally unit (m)")
        gripper = Gripper(name=str(hand["name"]), open=float(hand["open"]), closed=float(hand["closed"]), unit=str(hand.get("unit", "m")))
        velocity, (low, high) = float(hand["velocity"]), sorted((gripper.open, gripper.closed))
        rows.append((gripper.name, low, high, velocity, _HAND[0] * velocity, _HAND[1] * velocity, 2 * (high - low)))
    columns: list[Any] = list(zip(*rows, strict=True))
    box = data["workspace"]
    if not isinstance(box, dict) or set(box) != {"min", "max"}:
        raise DescriptionError(f"workspace: {box}, valid: min and max, three numbers each, metres")
    return ArmLimits(
        names=columns[0],
        position_min=columns[1],
        position_max=columns[2],
        velocity=columns[3],
        acceleration=columns[4],
        jerk=columns[5],
        stop_acceleration=tuple(_STOP * value for value in columns[4]),
        stop_jerk=tuple(_STOP * value for value in columns[5]),
        max_lead=columns[6],
        workspace_min=tuple(box["min"]),
        workspace_max=tuple(box["max"]),
        max_orientation_step=1.0,
        gripper=gripper,
    )


def _by_joint(field: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """A number for all joints, or a mapping for some."""
    values = dict(given) if isinstance(given, dict) else dict.fromkeys(names, given)
    if unknown := sorted(set(values) - set(names)):
        raise DescriptionError(f"{field}: {', '.join(unknown)}, valid: {', '.join(names)}")
    for name, value in values.items():
        numbers = value if field == "range" and isinstance(value, list) and len(value) == 2 else [value]
        if not all(isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number) for number in numbers) or (
            field == "range" and len(numbers) != 2
        ):
            raise DescriptionError(f"{field} of {name}: {value!r}, valid: {'[low, high]' if field == 'range' else 'a number'}")
        values[name] = [float(number) for number in numbers] if field == "range" else float(value)
    return values


def _wider(given: Any, stated: Any) -> bool:
    return given[0] < stated[0] or given[1] > stated[1] if isinstance(given, list) else given > stated
