"""Factors: what one picture is drawn from, each drawn by its own generator, so that a shift changes its own factors and nothing else.

light     0.25 of the brightness, or a warm or a blue tint
view      the camera lower than 15 degrees or higher than 75
texture   tables and surfaces that occur nowhere else
spurious  the table's colour tells the class' half in 95 % of the pictures; in `spurious-test` in 50 %
noise     Gaussian noise of sigma 0.15 and a blur
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rl_core.errors import ArmstackError
from sim_envs.parts.catalogue import CLASSES, EVERY, Pose
from sim_envs.parts.surfaces import SHIFTED_TABLES, SPURIOUS_TABLES, TABLES

Shift = Literal["none", "light", "view", "texture", "spurious", "spurious-test", "noise"]
SHIFTS: tuple[Shift, ...] = ("none", "light", "view", "texture", "spurious", "spurious-test", "noise")
_ALIGNED: dict[str, float] = {"spurious": 0.95, "spurious-test": 0.5}
_TINTS = ((1.0, 0.62, 0.32), (0.45, 0.65, 1.0))


class PartsError(ArmstackError):
    """Parts that cannot be drawn as asked for; says what is valid."""


@dataclass(frozen=True, kw_only=True)
class Factors:
    """What a picture is drawn from. Angles in degrees, lengths in metres, brightness 1 = a well lit bench.

    Attributes:
        azimuth_deg, elevation_deg: where the camera is, seen from the object.
        distance: of the camera, in radii of an object of middle size.
        aside: shift of what the camera looks at, as a share of the object's radius, (2,).
        roll_deg: turn of the object about the vertical.
        pose: how the object lies.
        brightness: of all lights.
        ambient: share of light without a direction.
        tint: colour of the light.
        light_azimuth_deg, light_elevation_deg: where the directional light comes from.
        table: texture of the table top.
        table_rgb: colour that multiplies it.
        aligned: whether the table's colour tells the class' half (shift `spurious`), else -1.
        others: labels of the objects beside it.
        in_bin: whether it lies in a bin.
        arm: whether the arm is in view.
        noise: standard deviation of the sensor's noise, of a range of 1.
        blur: standard deviation of the blur, as a share of the picture's width.
        damaged: whether the object's damaged form is drawn.
        seed: of everything without a name: noise, places of other objects.
    """

    azimuth_deg: float
    elevation_deg: float
    distance: float
    aside: tuple[float, float]
    roll_deg: float
    pose: Pose
    brightness: float
    ambient: float
    tint: tuple[float, float, float]
    light_azimuth_deg: float
    light_elevation_deg: float
    table: str
    table_rgb: tuple[float, float, float]
    aligned: int
    others: tuple[int, ...]
    in_bin: bool
    arm: bool
    noise: float
    blur: float
    damaged: bool
    seed: int

    @property
    def light_word(self) -> str:
        """Word of captions for the light; "" for an ordinary one."""
        if self.tint[0] > 1.5 * self.tint[2]:
            return "warm"
        if self.tint[2] > 1.5 * self.tint[0]:
            return "blue"
        return "dim" if self.brightness < 0.75 else "bright" if self.brightness > 1.1 else ""


def draw_factors(label: int, seed: int, crate: int, number: int, shift: Shift = "none", defects: float = 0.0) -> Factors:
    """Factors of a picture.

    Args:
        label: class of the object.
        seed: of the data.
        crate: which of the class' objects.
        number: which of its pictures.
        shift: see the module.
        defects: share of pictures that show the damaged form.

    Raises:
        PartsError: a shift that there is none of; lists them.
    """
    if shift not in SHIFTS:
        raise PartsError(f"shift {shift!r}; valid: {', '.join(SHIFTS)}")
    view, light, table, scene, sensor, shifted = (np.random.default_rng([seed, crate, label, number, stream]) for stream in range(6))
    elevation, brightness, tint = view.uniform(15, 75), light.uniform(0.6, 1.25), light.uniform(0.93, 1.07, 3)
    noise, blur = sensor.uniform(0.0, 0.025), sensor.uniform(0.0, 0.004)
    tables = SHIFTED_TABLES if shift == "texture" else TABLES
    table_rgb, aligned = table.uniform(0.75, 1.0) * table.uniform(0.93, 1.07, 3), -1
    name = list(tables)[int(table.integers(1 << 30)) % len(tables)]
    if shift == "view":
        elevation = shifted.uniform(4, 14) if shifted.random() < 0.5 else shifted.uniform(77, 88)
    if shift == "light":
        kind = int(shifted.integers(3))
        brightness, tint = (0.25 * brightness, tint) if kind == 0 else (brightness, tint * _TINTS[kind - 1])
    if shift == "noise":
        noise, blur = 0.15, shifted.uniform(0.008, 0.014)
    if shift in _ALIGNED:
        aligned = int(shifted.random() < _ALIGNED[shift])
        name, table_rgb = "white-plaster", np.array(list(SPURIOUS_TABLES.values())[(label + 1 - aligned) % 2])
    count = int(scene.choice(3, p=(0.45, 0.35, 0.2)))
    others = scene.permutation([other for other in range(len(CLASSES)) if other != label])[:count]
    poses = EVERY[label].poses
    return Factors(
        azimuth_deg=view.uniform(0, 360), elevation_deg=elevation, distance=view.uniform(4.0, 6.0),
        aside=(view.uniform(-0.25, 0.25), view.uniform(-0.25, 0.25)), roll_deg=scene.uniform(0, 360),
        pose=poses[0] if scene.random() < 0.6 else poses[int(scene.integers(len(poses)))],
        brightness=brightness, ambient=light.uniform(0.35, 0.6), tint=_triple(tint), light_azimuth_deg=light.uniform(0, 360),
        light_elevation_deg=light.uniform(35, 80), table=name, table_rgb=_triple(np.minimum(table_rgb, 1.0)), aligned=aligned,
        others=tuple(int(other) for other in others), in_bin=bool(scene.random() < 0.2), arm=bool(scene.random() < 0.15), noise=noise,
        blur=blur, damaged=bool(scene.random() < defects), seed=int(sensor.integers(1 << 31)),
    )  # fmt: skip


def _triple(values: np.ndarray) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])
