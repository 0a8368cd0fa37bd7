"""ServoArmModel: what is the same for every copy of an arm made of bus servos, read from `models/NAME.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rl_core.errors import ArmstackError
from rl_core.yaml_text import load_yaml
from robot_bridge.arms.chain import Link, chain_mjcf
from sim_envs.servo_bus.tables import ServoModel, servo_models

_MODELS = Path(__file__).with_name("models")


class ServoModelError(ArmstackError):
    """A description of an arm that cannot be meant; names the file, the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class Shadow:
    """A second servo on a joint's shaft, which follows the first by its Secondary_ID; `registers` are its own."""

    id: int
    registers: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class ServoJoint:
    """A joint and its servo.

    Attributes:
        name: of the joint.
        id: of the servo on the bus.
        servo: its model.
        range_min, range_max: the model's range, rad; for the gripper 0 (closed) and its opening, rad or m.
        velocity: largest on command, in units of the range a second.
        direction: 1 where the position grows with the encoder's ticks, else -1; of the gripper calibration finds it.
        registers: what the servo's registers must hold before torque goes on.
        shadow: a second servo on the same shaft.
    """

    name: str
    id: int
    servo: ServoModel
    range_min: float
    range_max: float
    velocity: float
    direction: int
    registers: Mapping[str, int]
    shadow: Shadow | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ServoArmModel:
    """See the module.

    Attributes:
        name: `so101`.
        description: for people.
        protocol: `dynamixel` or `feetech`.
        baudrate: of the bus, bit/s.
        joints: the gripper last.
        gripper_unit: `rad` or `m`, unit of the last joint.
        zero_pose: how the arm is held when calibration begins.
        workspace_min, workspace_max: (3,) metres, frame base.
        mjcf: kinematics for `robot_bridge.control.kinematics.Kinematics`; None where the links are not known.
    """

    name: str
    description: str
    protocol: str
    baudrate: int
    joints: tuple[ServoJoint, ...]
    gripper_unit: str
    zero_pose: str
    workspace_min: tuple[float, ...]
    workspace_max: tuple[float, ...]
    mjcf: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Joint names, gripper last."""
        return tuple(joint.name for joint in self.joints)

    @property
    def servos(self) -> dict[int, str]:
        """id -> model of every servo on the bus, shadows included."""
        ids = {joint.id: joint.servo.name for joint in self.joints}
        return ids | {joint.shadow.id: joint.servo.name for joint in self.joints if joint.shadow}

    def joint_of(self, id: int) -> str:
        """Name of the joint that servo `id` moves."""
        return next(joint.name for joint in self.joints if id in (joint.id, joint.shadow and joint.shadow.id))


def servo_arm_names() -> tuple[str, ...]:
    """The arms described."""
    return tuple(sorted(file.stem for file in _MODELS.glob("*.yaml")))


def load_servo_arm(name: str | Path) -> ServoArmModel:
    """The arm `name`, or one described in a YAML file of one's own.

    Raises:
        ServoModelError: there is no such arm, or its description is wrong.
    """
    path = _MODELS / f"{name}.yaml" if str(name) in servo_arm_names() else Path(name)
    if path.suffix != ".yaml" or not path.is_file():
        raise ServoModelError(f"no arm {str(name)!r}, valid: {', '.join(servo_arm_names())}, or a YAML file like them")
    try:
        return _arm(path.stem, load_yaml(path.read_text()))
    except ServoModelError as error:
        raise ServoModelError(f"{path}: {error}") from None
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ServoModelError(f"{path}: {type(error).__name__}: {error}; valid: see {_MODELS / 'so101.yaml'}") from None


def _arm(name: str, data: dict[str, Any]) -> ServoArmModel:
    common = data.get("registers", {})
    joints = [_joint(joint, values, common) for joint, values in data["joints"].items()]
    gripper = data["gripper"]
    ends = {"range": [0.0, gripper["open"]], "velocity": 1.5 * gripper["open"]}
    joints.append(_joint(gripper["name"], {**gripper, **ends}, common))
    arm = ServoArmModel(
        name=name,
        description=data["description"],
        protocol=data["protocol"],
        baudrate=int(data["baudrate"]),
        joints=tuple(joints),
        gripper_unit=gripper["unit"],
        zero_pose=data["zero_pose"],
        workspace_min=tuple(data["workspace"]["min"]),
        workspace_max=tuple(data["workspace"]["max"]),
        mjcf=_mjcf(data["chain"], data["tool"], {j.name: j for j in joints[:-1]}) if "chain" in data else None,
    )
    ids = [*(joint.id for joint in joints), *(joint.shadow.id for joint in joints if joint.shadow)]
    if len(set(ids)) != len(ids) or len(set(arm.names)) != len(joints):
        raise ServoModelError(f"ids {ids}, joints {list(arm.names)}; valid: each once")
    wrong = {joint.name: joint.servo.name for joint in joints if joint.servo.protocol != arm.protocol}
    if wrong:
        raise ServoModelError(f"protocol {arm.protocol!r}: {wrong} do not speak it")
    return arm


def _joint(name: str, values: dict[str, Any], common: dict[str, int]) -> ServoJoint:
    if values["servo"] not in servo_models():
        raise ServoModelError(f"{name}: servo {values['servo']!r}, valid: {sorted(servo_models())}")
    servo = servo_models()[values["servo"]]
    registers = {**common, **values.get("registers", {})}
    shadow = Shadow(**values["shadow"]) if "shadow" in values else None
    unknown = sorted((set(registers) | set(shadow.registers if shadow else ())) - set(servo.registers))
    if unknown:
        raise ServoModelError(f"{name}: registers {unknown}, valid for {servo.name}: {sorted(servo.registers)}")
    low, high = (float(end) for end in values["range"])
    if not low < high:
        raise ServoModelError(f"{name}: range {low} .. {high}, valid: the first below the second")
    return ServoJoint(
        name=name,
        id=int(values["id"]),
        servo=servo,
        range_min=low,
        range_max=high,
        velocity=float(values["velocity"]),
        direction=int(values.get("direction", 1)),
        registers=registers,
        shadow=shadow,
    )


def _mjcf(chain: list[dict[str, Any]], tool: dict[str, Any], joints: Mapping[str, ServoJoint]) -> str:
    if [link["joint"] for link in chain] != list(joints):
        raise ServoModelError(f"chain: joints {[link['joint'] for link in chain]}, valid: {list(joints)}")
    links = []
    for link in chain:
        joint = joints[link["joint"]]
        pose = {"xyz": tuple(link["xyz"]), "rpy": tuple(link["rpy"]), "axis": tuple(link["axis"])}
        links.append(Link(name=joint.name, low=joint.range_min, high=joint.range_max, **pose))
    return chain_mjcf(links, tool_xyz=tuple(tool["xyz"]), tool_rpy=tuple(tool["rpy"]))
