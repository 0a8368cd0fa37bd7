"""Defects of an object: damaged geometry, or something on its surface that does not belong there.

chip      a corner is gone: what lies beyond a plane is pressed onto it, roughly
bent      one half is turned against the other
missing   the class' own detail is not there (a tooth, a handle, a head, a hole)
scratch   a dark line along the surface
stain     a patch of another colour
foreign   a small thing of another colour is stuck on
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim_envs.parts.catalogue import PartClass, make_solid
from sim_envs.parts.solids import Solid

Array = NDArray[np.float64]
DefectKind = Literal["chip", "bent", "missing", "scratch", "stain", "foreign"]
KINDS: tuple[DefectKind, ...] = ("chip", "bent", "missing", "scratch", "stain", "foreign")
_UNBENDABLE = ("bread", "lemon")


@dataclass(frozen=True, kw_only=True)
class Defect:
    """What is drawn for a damaged object.

    Attributes:
        kind: see the module.
        at: place of the defect, metres from the object's middle.
        solid: the whole object where its geometry is damaged, else None.
        patch: surface of another colour over the intact object.
        bars: ends (k, 2, 3) of thin bars on it.
        bead: radius of a ball stuck on at `at`, 0 for none.
    """

    kind: DefectKind
    at: Array
    solid: Solid | None = None
    patch: Solid | None = None
    bars: Array = field(default_factory=lambda: np.empty((0, 2, 3)))
    bead: float = 0.0


def kinds_of(part: PartClass) -> tuple[DefectKind, ...]:
    """Defects that an object of the class can have."""
    without = {"missing" if not part.missing else "", "bent" if part.name in _UNBENDABLE else ""}
    return tuple(kind for kind in KINDS if kind not in without)


def make_defect(kind: DefectKind, part: PartClass, seed: int) -> Defect:
    """The defect of the object `make_solid(part, seed)`."""
    generator = np.random.default_rng([seed, 1])
    whole = make_solid(part, seed)
    if kind == "missing":
        solid = make_solid(part, seed, missing=True)
        return Defect(kind=kind, at=_changed(whole, solid), solid=solid)
    if kind == "chip":
        return _chip(whole.refined(0.006), generator)
    if kind == "bent":
        return _bent(whole.refined(0.008), generator)
    points, normals = _surface_points(whole, 4000, generator)
    place = int(generator.choice(len(points), p=_outward(points, normals)))
    at, normal = points[place], normals[place]
    if kind == "scratch":
        return Defect(kind=kind, at=at, bars=_scratch(points, normals, place, generator))
    if kind == "stain":
        fine = whole.refined(0.004)
        size = generator.uniform(0.011, 0.016)
        near = np.linalg.norm(fine.vertices[fine.faces].mean(axis=1) - at, axis=1) < size
        lifted = fine.vertices[fine.faces[near]] + 0.0004 * fine.corner_normals()[near]
        return Defect(kind=kind, at=at, patch=Solid(vertices=lifted.reshape(-1, 3), faces=np.arange(3 * near.sum()).reshape(-1, 3)))
    radius = generator.uniform(0.006, 0.010)
    return Defect(kind=kind, at=at + 0.5 * radius * normal, bead=radius)


def _chip(solid: Solid, generator: np.random.Generator) -> Defect:
    direction = generator.normal(size=3)
    corner = solid.vertices[np.argmax(solid.vertices @ (direction / np.linalg.norm(direction)))]
    normal = corner / np.linalg.norm(corner) + 0.25 * generator.normal(size=3)
    normal /= np.linalg.norm(normal)
    depth = generator.uniform(0.009, 0.014)
    beyond = (solid.vertices - corner) @ normal + depth
    rough = generator.normal(0, 0.0006, len(beyond))
    pressed = solid.vertices - np.where(beyond > 0, beyond + rough, 0)[:, None] * normal
    return Defect(kind="chip", at=corner - depth * normal, solid=Solid(vertices=pressed, faces=solid.faces, corner_uv=solid.corner_uv))


def _bent(solid: Solid, generator: np.random.Generator) -> Defect:
    # Turned about a line across the longest direction; a short arc instead of a kink.
    extent = solid.vertices.max(axis=0) - solid.vertices.min(axis=0)
    axis = int(np.argmax(extent))
    other = int(np.argsort(extent)[0]) if axis == 2 else 2
    if other == axis:
        other = (axis + 1) % 3
    start, length = generator.uniform(0.0, 0.15) * extent[axis], 0.15 * extent[axis]
    most = np.deg2rad(generator.uniform(28, 45)) * generator.choice((-1, 1))
    along = solid.vertices[:, axis] - start
    angle = most * np.clip(along / length, 0, 1)
    vertices = solid.vertices.copy()
    reach = np.maximum(along, 0)
    vertices[:, axis] = np.where(along > 0, start + np.cos(angle) * reach - np.sin(angle) * vertices[:, other], vertices[:, axis])
    vertices[:, other] = np.where(along > 0, np.sin(angle) * reach + np.cos(angle) * solid.vertices[:, other], vertices[:, other])
    at = np.zeros(3)
    at[axis] = 0.5 * extent[axis]
    return Defect(kind="bent", at=at, solid=Solid(vertices=vertices, faces=solid.faces, corner_uv=solid.corner_uv))


def _surface_points(solid: Solid, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
    corners = solid.vertices[solid.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    face = generator.choice(len(area), size=count, p=area / area.sum())
    share = generator.dirichlet((1, 1, 1), size=count)
    return np.einsum("nc,ncx->nx", share, corners[face]), across[face] / area[face, None]


def _outward(points: Array, normals: Array) -> Array:
    # Places that can be seen from outside: their normal points away from the middle, and not down.
    away = np.clip(np.einsum("nx,nx->n", points / np.linalg.norm(points, axis=1, keepdims=True), normals), 0, None)
    weight = np.where((away > 0.3) & (normals[:, 2] > -0.5), away, 0.0)
    return weight / weight.sum()


def _scratch(points: Array, normals: Array, place: int, generator: np.random.Generator) -> Array:
    at, normal = points[place], normals[place]
    along = np.cross(normal, generator.normal(size=3))
    along /= np.linalg.norm(along)
    aside = np.cross(normal, along)
    distance = (points - at) @ along
    near = (np.abs((points - at) @ aside) < 0.004) & (np.abs(distance) < 0.024) & (normals @ normal > 0.2)
    line = [at]
    for steps in (np.arange(1, 7), -np.arange(1, 7)):
        for step in steps * 0.004:
            inside = near & (np.abs(distance - step) < 0.002)
            if not inside.any():
                break
            joint = points[inside].mean(axis=0) + 0.0003 * normals[inside].mean(axis=0)
            last = line[-1] if step > 0 else line[0]
            if np.linalg.norm(joint - last) > 0.008:  # the surface jumps: an edge, or another tooth
                break
            line = [*line, joint] if step > 0 else [joint, *line]
    joints = np.array(line if len(line) > 1 else [at, at + 0.002 * along])
    return np.stack([joints[:-1], joints[1:]], axis=1)


def _changed(whole: Solid, damaged: Solid) -> Array:
    # The middle of what only the whole one has; of a hole that is closed, the middle of its face.
    known = {tuple(vertex) for vertex in np.round(damaged.vertices, 5)}
    gone = np.array([vertex for vertex in whole.vertices if tuple(np.round(vertex, 5)) not in known])
    return gone.mean(axis=0) if np.linalg.norm(gone.mean(axis=0)) > 0.005 else np.array([0.0, 0.0, whole.vertices[:, 2].max()])
