"""Sets the stage: puts the objects, the bin, the arm and the lights of one picture into the crate's model."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sim_envs.arm.scene import HOME, TABLE_TOP
from sim_envs.parts.catalogue import EVERY, RADIUS, PartClass, Pose
from sim_envs.parts.crate import BIN_WALL, HIDDEN, Crate
from sim_envs.parts.factors import Factors
from sim_envs.parts.solids import Solid

Array = NDArray[np.float64]
_DRAWN = 0
_SUN_DISTANCE = 0.8
"""Of the directional light from the object; from there its shadows are worked out, metres."""
_FACING_DEG = 50.0
"""A defect is turned towards the camera up to so many degrees."""


def set_stage(crate: Crate, data: Any, label: int, factors: Factors) -> None:
    """Changes model and data so that the picture of `factors` can be drawn; everything that is not in it is hidden."""
    model = crate.model
    generator = np.random.default_rng([factors.seed, 0])
    model.geom_group[:] = HIDDEN
    model.geom_group[model.geom("table").id] = _DRAWN
    model.geom_matid[model.geom("table").id] = crate.tables[factors.table]
    model.geom_rgba[model.geom("table").id] = (*factors.table_rgb, 1.0)
    model.geom_quat[model.geom("table").id] = _turn_z(generator.uniform(0, 2 * np.pi))
    floor = _set_bin(crate, label, factors, generator) if factors.in_bin else 0.0
    _set_object(crate, label, factors.pose, _roll(crate, label, factors, generator), (0.0, 0.0), floor, damaged=factors.damaged)
    _set_others(crate, label, factors, generator)
    if factors.arm:
        _set_arm(crate, data, factors, generator)
    _set_lights(model, factors)
    _settle(model, data)


def height_of(crate: Crate, label: int) -> float:
    """Height of an object's middle over the table as it now lies, metres."""
    return float(crate.model.body_pos[crate.bodies[label]][2])


def show(crate: Crate, label: int, *, damaged: bool) -> None:
    """Draws the object as it should be, or its damaged form."""
    defect = crate.instances[label].defect
    over = damaged and defect is not None and defect.solid is None
    crate.model.geom_group[crate.intact[label]] = _DRAWN if not damaged or over else HIDDEN
    crate.model.geom_group[list(crate.damaged[label])] = _DRAWN if damaged else HIDDEN


def pose_rotation(part: PartClass, pose: Pose) -> Array:
    """Rotation matrix from standing to `pose`."""
    angle = np.deg2rad({"standing": 0.0, "lying": part.lying_deg, "upside down": 180.0}[pose])
    return np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])


def _roll(crate: Crate, label: int, factors: Factors, generator: np.random.Generator) -> float:
    defect = crate.instances[label].defect
    if not factors.damaged or defect is None:
        return np.deg2rad(factors.roll_deg)
    at = pose_rotation(EVERY[label], factors.pose) @ defect.at
    towards = factors.azimuth_deg + generator.uniform(-_FACING_DEG, _FACING_DEG)
    return np.deg2rad(towards) - np.arctan2(at[1], at[0])


def _set_object(crate: Crate, label: int, pose: Pose, roll: float, place: tuple[float, float], floor: float, *, damaged: bool) -> None:
    instance, body = crate.instances[label], crate.bodies[label]
    rotation = _about_z(roll) @ pose_rotation(EVERY[label], pose)
    solid: Solid = instance.solid
    if damaged and instance.defect is not None and instance.defect.solid is not None:
        solid = instance.defect.solid.scaled(instance.scale)
    low = float((solid.vertices @ rotation[2]).min())
    crate.model.body_pos[body] = (*place, floor - low)
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, rotation.reshape(-1))
    crate.model.body_quat[body] = quaternion
    show(crate, label, damaged=damaged)


def _set_others(crate: Crate, label: int, factors: Factors, generator: np.random.Generator) -> None:
    # Never between the camera and the object; each has a side of its own.
    sides = generator.permutation([(60.0, 150.0), (210.0, 300.0)])
    for other, (low, high) in zip(factors.others, sides, strict=False):
        angle = np.deg2rad(factors.azimuth_deg + generator.uniform(low, high))
        apart = crate.instances[label].solid.radius * (1.5 if factors.in_bin else 1.0) + crate.instances[other].solid.radius
        apart *= generator.uniform(0.95, 1.25)
        poses = EVERY[other].poses
        pose = poses[int(generator.integers(len(poses)))]
        place = (apart * np.cos(angle), apart * np.sin(angle))
        _set_object(crate, other, pose, generator.uniform(0, 2 * np.pi), place, 0.0, damaged=False)


def _set_bin(crate: Crate, label: int, factors: Factors, generator: np.random.Generator) -> float:
    """Puts the bin around the object and returns the height of its floor."""
    model = crate.model
    half = 1.12 * crate.instances[label].solid.radius
    wall = generator.uniform(0.15, 0.3) * RADIUS
    colour = (*generator.uniform(0.15, 0.85, 3), 1.0)
    model.body_quat[model.body("bin").id] = _turn_z(generator.uniform(0, 2 * np.pi))
    model.body_pos[model.body("bin").id] = 0.0
    boxes = [((half, half, BIN_WALL), (0.0, 0.0, BIN_WALL))]
    boxes += [((BIN_WALL, half, wall), (sign * half, 0.0, BIN_WALL + wall)) for sign in (-1, 1)]
    boxes += [((half, BIN_WALL, wall), (0.0, sign * half, BIN_WALL + wall)) for sign in (-1, 1)]
    for side, (size, place) in enumerate(boxes):
        geom = model.geom(f"bin{side}").id
        model.geom_size[geom], model.geom_pos[geom], model.geom_rgba[geom] = size, place, colour
        model.geom_quat[geom] = (1, 0, 0, 0)
        model.geom_rbound[geom] = np.linalg.norm(size)
        model.geom_group[geom] = _DRAWN
    return 2 * BIN_WALL


def _set_arm(crate: Crate, data: Any, factors: Factors, generator: np.random.Generator) -> None:
    angle = np.deg2rad(factors.azimuth_deg + 180 + generator.uniform(-35, 35))
    apart = generator.uniform(0.72, 0.85)
    joints = np.array(HOME) + generator.normal(0, 0.15, 7)
    _put_arm(crate, data, (apart * np.cos(angle), apart * np.sin(angle)), angle + np.pi, joints)


def show_arm(crate: Crate, data: Any, base: tuple[float, float], positions: Array) -> None:
    """Draws the arm with its base there, its x axis along the table's.

    Args:
        crate: whose stage is set.
        data: of its model.
        base: x and y, metres from the middle of the stage.
        positions: (9,) of the joints, rad, and of the two fingers, metres.
    """
    _put_arm(crate, data, base, 0.0, positions)
    _settle(crate.model, data)


def _put_arm(crate: Crate, data: Any, base: tuple[float, float], turn: float, positions: Array) -> None:
    body = crate.model.body("arm base").id
    crate.model.body_pos[body] = (*base, -TABLE_TOP)
    crate.model.body_quat[body] = _turn_z(turn)
    data.qpos[: len(positions)] = positions
    crate.model.geom_group[list(crate.arm_geoms)] = _DRAWN


def _settle(model: Any, data: Any) -> None:
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)


def _set_lights(model: Any, factors: Factors) -> None:
    colour = factors.brightness * np.array(factors.tint)
    azimuth, elevation = np.deg2rad(factors.light_azimuth_deg), np.deg2rad(factors.light_elevation_deg)
    sun = model.light("sun").id
    model.light_dir[sun] = (-np.cos(elevation) * np.cos(azimuth), -np.cos(elevation) * np.sin(azimuth), -np.sin(elevation))
    model.light_pos[sun] = -_SUN_DISTANCE * model.light_dir[sun]
    model.light_diffuse[sun] = 0.8 * (1 - factors.ambient) * colour
    model.light_specular[sun] = 0.3 * colour
    model.vis.headlight.ambient[:] = 0.6 * factors.ambient * colour
    model.vis.headlight.diffuse[:] = 0.5 * factors.ambient * colour
    model.vis.headlight.specular[:] = 0.1 * colour


def _about_z(angle: float) -> Array:
    return np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])


def _turn_z(angle: float) -> tuple[float, float, float, float]:
    return float(np.cos(angle / 2)), 0.0, 0.0, float(np.sin(angle / 2))
