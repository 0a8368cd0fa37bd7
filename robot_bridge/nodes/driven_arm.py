"""The arm behind an arm node that drives hardware: its driver, its kinematics, and the episodes an operator marks."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import time
from pathlib import Path
from typing import Any

from rclpy.node import Node

from rl_core.contract import Action, Channel, RobotContract
from rl_core.errors import ArmstackError
from robot_bridge.arm_parameters import is_for, not_for_it, sections, settings_of, unknown_parameters
from robot_bridge.arms.base import Arm, ArmLost, ArmState
from robot_bridge.arms.registry import SIMULATED, ArmError, make_arm, make_settings, require_library
from robot_bridge.arms.tightening import Tightening
from robot_bridge.control.any_arm import any_arm_contract
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import ArmLimits, LimitsError
from robot_bridge.nodes.episode_requests import End, ended
from robot_bridge.nodes.spin import NodeError
from sim_envs.arm.observation import JOINT_STEP, PERIOD_S, POSE_AXES, POSITION_STEP, ROTATION_STEP

_RATE_HZ = 20.0


class DrivenArm:
    """An `Arm` whose end effector is site `ee` of its kinematic model: observation, inverse kinematics and workspace box agree.

    Args:
        driver: the arm.
        limits: the driver's, or tighter ones.
        description: MJCF text of the arm alone.
        robot: name for the contracts.
        task: what its episodes are said to be of.
    """

    def __init__(self, driver: Arm, *, limits: ArmLimits, description: str, robot: str, task: str = "") -> None:
        self.driver = driver
        self.limits = limits
        self.joint_names = driver.joint_names
        # The loop calls the driver's own methods; nothing here comes between a command and the arm.
        self.connect, self.command, self.stop, self.close = driver.connect, driver.command, driver.stop, driver.close
        self.description = description
        self.contracts = offered_contracts(robot, limits)
        self.task = task
        self.object_names: tuple[str, ...] = ()
        self.objects: dict[str, Any] = {}
        self.episode: dict[str, Any] = {"index": -1, "seed": 0, "task": task, "phase": "over", "success": False, "return": 0.0, "steps": 0}
        self._kinematics = Kinematics(description)

    def read(self) -> ArmState:
        """See `Arm.read`."""
        state = self.driver.read()
        position, quaternion = self._kinematics.fk(state.positions[: self.limits.arm_joints])
        return dataclasses.replace(state, ee_pos=position, ee_quat=quaternion)

    def begin_episode(self, seed: int, restart: Any, *, start: bool = False) -> None:
        """The next episode begins where the arm is: there is no world to reset, and whoever has authority keeps it."""
        index = self.episode["index"] + 1
        self.episode = {
            "index": index, "seed": seed, "task": self.task, "phase": "running", "success": False, "return": 0.0, "steps": 0,
            "stamp_ns": time.time_ns(), "start": start,
        }  # fmt: skip

    def end_episode(self, end: End) -> None:
        """An operator says that the episode is over; the arm stays with whoever has it."""
        self.episode = ended(self.episode, end)


def offered_contracts(robot: str, limits: ArmLimits) -> tuple[RobotContract, ...]:
    """What an arm with `limits` measures, and the actions it understands: end-effector and joint deltas, scaled as in the worlds.

    An arm with a gripper offers its end effector a second time, in the numbers that are the same for all of them (`any_arm_contract`).
    """
    joints, gripper = limits.names[: limits.arm_joints], limits.gripper
    channels = [
        Channel(name="joint_pos", names=joints, unit="rad", rate_hz=_RATE_HZ),
        Channel(name="joint_vel", names=joints, unit="rad/s", rate_hz=_RATE_HZ),
        Channel(name="eef_pos", names=("x", "y", "z"), unit="m", frame="base", rate_hz=_RATE_HZ),
        Channel(name="eef_quat", kind="quaternion", frame="base", rate_hz=_RATE_HZ),
    ]
    if gripper is not None:
        channels.append(Channel(name="gripper_pos", names=(gripper.name,), unit=gripper.unit, rate_hz=_RATE_HZ))
    tail = () if gripper is None else ((gripper.name, 1.0, gripper.unit),)
    steps = {
        "end_effector": [*((n, POSITION_STEP, "m") for n in POSE_AXES[:3]), *((n, ROTATION_STEP, "rad") for n in POSE_AXES[3:]), *tail],
        "joint": [*((name, JOINT_STEP, "rad") for name in joints), *tail],
    }
    actions = [
        Action(
            names=tuple(name for name, _, _ in rows),
            meaning="delta",
            space=space,  # type: ignore[arg-type]
            scale=tuple(scale for _, scale, _ in rows),
            units=tuple(unit for _, _, unit in rows),
            frame="base" if space == "end_effector" else "",
            period_s=PERIOD_S,
            gripper=gripper,
            controller="joint_position",
        )
        for space, rows in steps.items()
    ]
    own = tuple(RobotContract(robot=robot, observation=tuple(channels), action=action) for action in actions)
    return own if gripper is None else (*own, any_arm_contract(own[0]))


def chosen_arm(node: Node) -> str:
    """What parameter `arm` of an arm node says.

    Raises:
        NodeError: no such arm, a parameter that the node does not read, or a file of parameters that are not for it: ROS would ignore
            them in silence, a tighter limit or a required guard among them.
    """
    name = str(node.declare_parameter("arm", SIMULATED).value)
    full_name = node.get_fully_qualified_name()
    try:
        for path in [Path(path) for option, path in itertools.pairwise(sys.argv) if option == "--params-file"]:
            found = dict(sections(path))
            meant = [values for section, values in found.items() if is_for(section, full_name)]
            if not meant:
                raise NodeError(f"{path}: {not_for_it(found, full_name)}")
            for values in meant:
                if unknown := unknown_parameters(name, values):
                    raise NodeError(f"{path}: {unknown}")
        if unknown := unknown_parameters(name, {key: parameter.value for key, parameter in node._parameter_overrides.items()}):
            raise NodeError(unknown)
    except ArmstackError as error:
        raise NodeError(str(error)) from error
    return name


def driven_arm(node: Node, name: str, task: str) -> DrivenArm:
    """The arm that the parameters of `node` ask for: `arm` is `name`, and each of its settings is a parameter.

    Raises:
        NodeError: no such arm or setting, a library is missing, or the arm's kinematics are not known.
    """
    try:
        overrides = node._parameter_overrides
        given = {key: overrides[key].value for key in settings_of(name) if key in overrides}
        for key in sorted(given):
            node.declare_parameter(key, given[key])
        settings = make_settings(name, {key: _value(value) for key, value in given.items()})
        require_library(name)
        driver = make_arm(name, settings)
        limits = tightened(node, driver.limits)
        path = str(node.declare_parameter("kinematics", "").value)  # MJCF file, for arms whose driver knows none
        description = open(path, encoding="utf-8").read() if path else getattr(driver, "description", None)
        if description is None:
            raise NodeError(f"arm {name}: its driver knows no kinematics; parameter kinematics: an MJCF file of the arm with a site `ee`")
        if getattr(settings, "joint_states", "") == node.resolve_topic_name("joint_states"):
            raise NodeError(f"{settings.joint_states} is what this node publishes: start it in a namespace (namespace:=policy_arm)")
        return DrivenArm(driver, limits=limits, description=description, robot=name, task=task)
    except ArmError as error:  # names the arm itself
        raise NodeError(str(error)) from error
    except (ArmstackError, OSError, ValueError) as error:
        raise NodeError(f"arm {name}: {error}") from error


def tightened(node: Node, limits: ArmLimits) -> ArmLimits:
    """`limits` as the node's parameters `speed`, `workspace_min` and `workspace_max` tighten them.

    Raises:
        NodeError: they would widen a limit.
    """
    tightening = Tightening(
        speed=float(node.declare_parameter("speed", 1.0).value or 0.0),
        workspace_min=_box(node, "workspace_min"),
        workspace_max=_box(node, "workspace_max"),
    )
    try:
        return tightening.apply(limits)
    except LimitsError as error:
        raise NodeError(f"limits: {error}") from error


def recovered(arm: Any) -> dict[str, Any]:
    """Clears an error of the arm's controller, because an operator asked for it; gives the answer. The fault stays until the rearm."""
    recover = getattr(getattr(arm, "driver", None), "recover", None)
    if recover is None:
        return {"ok": False, "error": "this arm has no error of its own that could be cleared"}
    try:
        recover()
        return {"ok": True}
    except ArmLost as error:
        return {"ok": False, "error": str(error)}


def _value(value: Any) -> Any:
    return tuple(item for item in value if item) if isinstance(value, (list, tuple)) else value


def _box(node: Node, name: str) -> tuple[float, ...] | None:
    found: list[float] = list(node.declare_parameter(name, [0.0, 0.0, 0.0]).value or ())
    return tuple(float(value) for value in found) if name in node._parameter_overrides else None
