"""Named channels of the arm's worlds: the contract they offer, and the numbers under those names."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np

from rl_core.contract import Action, Channel, Gripper, RobotContract
from rl_core.data.derived import add_derived
from sim_envs.arm.scene import ARM_JOINTS, GRIPPER_OPEN, Controller
from sim_envs.arm.tasks import find_task
from sim_envs.arm.tasks.goal_tasks import GoalTask
from sim_envs.arm.world import ArmReading

ActionKind = Literal["ee_delta", "joint_delta"]

PERIOD_S = 0.05
"""Policy period, seconds."""
POSE_AXES = ("x", "y", "z", "rx", "ry", "rz")
GRIPPER = Gripper(name="gripper", open=GRIPPER_OPEN, closed=0.0, unit="m")
POSITION_STEP = 0.05
"""Displacement of an `ee_delta` action of 1, metres (robosuite's default Panda controller)."""
ROTATION_STEP = 0.5
"""Rotation of an `ee_delta` action of 1, rad."""
JOINT_STEP = 0.1
"""Rotation of a `joint_delta` action of 1, rad."""


def observation(reading: ArmReading, task: str) -> dict[str, np.ndarray]:
    """The contract's channels, in contract order.

    Args:
        reading: the world, or the same values from a robot's sensors.
        task: the task whose objects are wanted.

    Returns:
        channel -> (size,) float64.
    """
    kind = find_task(task)
    channels = {
        "joint_pos": reading.joint_pos,
        "joint_vel": reading.joint_vel,
        "eef_pos": reading.eef_pos,
        "eef_quat": reading.eef_quat,
        "gripper_pos": np.array([reading.gripper_pos]),
    }
    for name in kind.objects:
        channels[f"{name}_pos"], channels[f"{name}_quat"] = reading.objects[name]
    for name in kind.goals:
        channels[f"{name}_pos"] = reading.objects[name][0]
    for name, position in targets(reading, task).items():
        channels[f"{name}_pos"] = position
    return add_derived(channels)


def targets(reading: ArmReading, task: str) -> dict[str, np.ndarray]:
    """name -> where hand or object shall be (3,), metres; empty for a task without a goal for both."""
    kind = find_task(task)
    return kind.targets(reading.objects["goal"][0]) if isinstance(kind, GoalTask) else {}


def world_contract(task: str, action: ActionKind = "ee_delta", controller: Controller = "joint_position") -> RobotContract:
    """What an arm world with `task` offers: its channels, and actions of the kind asked for, followed by `controller`.

    Raises:
        ValueError: unknown task or action kind; names the valid ones.
    """
    kind = find_task(task)
    aims = tuple(kind.targets(np.zeros(3))) if isinstance(kind, GoalTask) else ()
    points = (*kind.objects, *kind.goals, *aims)
    channels = [
        Channel(name="joint_pos", names=ARM_JOINTS, unit="rad", rate_hz=20.0),
        Channel(name="joint_vel", names=ARM_JOINTS, unit="rad/s", rate_hz=20.0),
        _position("eef_pos"),
        _orientation("eef_quat"),
        Channel(name="gripper_pos", names=(GRIPPER.name,), unit=GRIPPER.unit, rate_hz=20.0),
    ]
    for name in points:
        channels.append(_position(f"{name}_pos"))
        if name in kind.objects:
            channels.append(_orientation(f"{name}_quat"))
    channels += [_position(f"gripper_to_{name}_pos") for name in points]
    return RobotContract(robot="panda", observation=tuple(channels), action=dataclasses.replace(_action(action), controller=controller))


def _position(name: str) -> Channel:
    return Channel(name=name, names=("x", "y", "z"), unit="m", frame="base", rate_hz=20.0)


def _orientation(name: str) -> Channel:
    return Channel(name=name, kind="quaternion", frame="base", rate_hz=20.0)


def _action(kind: ActionKind) -> Action:
    if kind == "ee_delta":
        return Action(
            names=(*POSE_AXES, GRIPPER.name), meaning="delta", space="end_effector",
            scale=(POSITION_STEP,) * 3 + (ROTATION_STEP,) * 3 + (1.0,),
            units=("m",) * 3 + ("rad",) * 3 + (GRIPPER.unit,), period_s=PERIOD_S, gripper=GRIPPER,
        )  # fmt: skip
    if kind == "joint_delta":
        return Action(
            names=(*ARM_JOINTS, GRIPPER.name), meaning="delta", space="joint", scale=(JOINT_STEP,) * 7 + (1.0,),
            units=("rad",) * 7 + (GRIPPER.unit,), frame="", period_s=PERIOD_S, gripper=GRIPPER,
        )  # fmt: skip
    raise ValueError(f"no action kind {kind!r}; kinds: {', '.join(get_args(ActionKind))}")
