"""Builds the MuJoCo model of a task: the Panda of `models/panda.xml`, a table, the task's things, motors and, if asked for, cameras.

The model's world frame is the robot's base frame: nothing in this room converts positions. robosuite's frame is `ROBOSUITE_BASE` away.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np

if TYPE_CHECKING:
    from sim_envs.arm.tasks import Task

Controller = Literal["joint_position", "osc_pose"]

ARM_JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))
FINGER_JOINTS = ("finger_joint1", "finger_joint2")
CAMERAS = ("front", "wrist")
GRIPPER_OPEN = 0.08
"""Finger opening of the open gripper, metres; closed is 0."""

ROBOSUITE_BASE = (-0.56, 0.0, 0.912)
"""The robot base in robosuite's world frame for an 0.8 m table, metres (`Panda.base_xpos_offset`, `RethinkMount.top_offset`)."""

TABLE_CENTRE = (0.56, 0.0)
TABLE_TOP = -0.112
"""Height of the table top, metres in the base frame: 0.8 m over robosuite's floor."""
FLOOR = -0.912

HOME = (0.0, np.pi / 16.0, 0.0, -np.pi / 2.0 - np.pi / 3.0, 0.0, np.pi - 0.2, np.pi / 4)
"""Joint angles at a reset before noise, rad (robosuite `Panda.init_qpos`)."""
HOME_FINGER = 0.020833

# The joint servo: kp = w^2 M and kv = 2 w M at the home pose, w = 60 rad/s, so targets are followed critically damped with a lag of
# 2 / w = 33 ms. That is slow enough for MuJoCo's explicit integration of servos, which runs twice as fast as its implicit one. Torque
# limits are the real arm's; rotor inertia is MuJoCo Menagerie's, since robosuite's (5 kg m^2 at joint 1) is far too heavy for those.
SERVO_FREQUENCY = 60.0
SERVO_INERTIA = (2.6, 2.9, 1.9, 1.8, 0.65, 0.5, 0.33)
SERVO_TORQUE = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
SERVO_ARMATURE = 0.1

OSC_TORQUE = (80.0, 80.0, 80.0, 80.0, 80.0, 12.0, 12.0)
"""Motor limits of robosuite's Panda, N m."""
FINGER_FORCE = 20.0
FINGER_KP = 1000.0


def panda_xml() -> str:
    """The text of `models/panda.xml`."""
    return (files("sim_envs.arm") / "models" / "panda.xml").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def kinematics_xml() -> str:
    """The arm alone as MJCF text: seven joints, fingers fixed open, no motors, site `ee` at the end effector, root frame = base."""
    spec = mujoco.MjSpec.from_string(panda_xml())
    for name in FINGER_JOINTS:
        spec.delete(spec.joint(name))
    spec.compile()
    return spec.to_xml()


def build(task: Task, controller: Controller, visual: bool) -> mujoco.MjModel:
    """Compiles the model of `task`.

    Args:
        task: adds its things to the table.
        controller: `joint_position` gives each arm joint a position servo with gravity compensation, `osc_pose` robosuite's motors.
            The actuators carry the names of their joints, arm first, then the two fingers.
        visual: adds light, sky and the task's fixed cameras for `rendering`; physics is the same with and without.
    """
    spec = mujoco.MjSpec.from_string(panda_xml())
    _add_table(spec)
    task.build(spec)
    _add_actuators(spec, controller)
    if visual:
        _add_visuals(spec)
    return spec.compile()


def _add_table(spec: mujoco.MjSpec) -> None:
    world = spec.worldbody
    world.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(3, 3, 0.125), pos=(0, 0, FLOOR), rgba=(0.75, 0.75, 0.72, 1))
    table = world.add_body(name="table", pos=(*TABLE_CENTRE, TABLE_TOP - 0.025))
    table.add_geom(name="table", type=mujoco.mjtGeom.mjGEOM_BOX, size=(0.4, 0.4, 0.025), rgba=(0.82, 0.78, 0.7, 1))


def _add_actuators(spec: mujoco.MjSpec, controller: Controller) -> None:
    for i, name in enumerate(ARM_JOINTS):
        motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        joint = spec.joint(name)
        if controller == "osc_pose":
            motor.set_to_motor()
            motor.ctrllimited = True
            motor.ctrlrange = (-OSC_TORQUE[i], OSC_TORQUE[i])
            continue
        stiffness, damping = SERVO_INERTIA[i] * SERVO_FREQUENCY**2, 2 * SERVO_INERTIA[i] * SERVO_FREQUENCY
        motor.set_to_position(kp=stiffness, kv=damping)
        motor.ctrllimited = True
        motor.ctrlrange = joint.range
        motor.forcelimited = True
        motor.forcerange = (-SERVO_TORQUE[i], SERVO_TORQUE[i])
        joint.armature = SERVO_ARMATURE
        joint.frictionloss = 0.0
    for name in FINGER_JOINTS:
        motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.set_to_position(kp=FINGER_KP)
        motor.ctrllimited = True
        motor.ctrlrange = spec.joint(name).range
        motor.forcelimited = True
        motor.forcerange = (-FINGER_FORCE, FINGER_FORCE)
    if controller == "joint_position":
        for body in spec.body("link1").find_all(mujoco.mjtObj.mjOBJ_BODY):
            body.gravcomp = 1.0
        spec.body("link1").gravcomp = 1.0


def _add_visuals(spec: mujoco.MjSpec) -> None:
    world = spec.worldbody
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(0.9, 0.9, 1.0), rgb2=(0.2, 0.3, 0.4), width=64, height=384,
    )  # fmt: skip
    world.add_light(pos=(1.5, 1.0, 1.5), dir=(-0.6, -0.4, -1), type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, castshadow=False)
    # Looks at the table's middle from the far side of the table, as a camera in front of the robot does.
    world.add_camera(name="front", pos=(1.3, 0.0, 0.38), xyaxes=(0, 1, 0, -0.429, 0, 0.903), fovy=45)
    # Beside the hand, looking along the fingers (robosuite's `eye_in_hand`, lowered so that the hand's box does not fill the picture).
    spec.body("right_hand").add_camera(name="wrist", pos=(0.05, 0, 0.045), quat=(0, 0.707108, 0.707108, 0), fovy=75)
