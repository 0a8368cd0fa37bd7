"""Solids as triangle meshes: prisms, bodies of revolution and swept tubes. Lengths in metres, faces counter-clockwise from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_CREASE_COS = np.cos(np.deg2rad(35.0))
"""Faces that meet at a smaller angle are shaded as one smooth surface."""


@dataclass(frozen=True, kw_only=True)
class Solid:
    """A mesh.

    Attributes:
        vertices: (n, 3), metres.
        faces: (m, 3), indices of vertices.
        corner_uv: (m, 3, 2), place in a texture of each corner; None where it has no place of its own.
    """

    vertices: Array
    faces: NDArray[np.int64]
    corner_uv: Array | None = None

    @property
    def radius(self) -> float:
        """Of the smallest sphere around the origin that holds it."""
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def centred(self) -> Solid:
        """The middle of its bounding box at the origin."""
        return self.moved(-0.5 * (self.vertices.min(axis=0) + self.vertices.max(axis=0)))

    def moved(self, offset: Sequence[float] | Array) -> Solid:
        """Shifted."""
        return replace(self, vertices=self.vertices + np.asarray(offset))

    def scaled(self, scale: float | Sequence[float] | Array) -> Solid:
        """Stretched; positive scales only."""
        return replace(self, vertices=self.vertices * np.asarray(scale))

    def turned(self, rotation: Array) -> Solid:
        """Turned by a rotation matrix (3, 3)."""
        return replace(self, vertices=self.vertices @ rotation.T)

    def corner_normals(self) -> Array:
        """Normals (m, 3, 3) of the corners: means over the faces at a vertex that meet smoothly."""
        corners = self.vertices[self.faces]
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])  # length = twice the area
        unit = across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)
        _, place = np.unique(np.round(self.vertices, 6), axis=0, return_inverse=True)  # vertices at one place count as one
        at = place.reshape(-1)[self.faces]
        order = np.argsort(at.reshape(-1), kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(at.reshape(-1)[order])) + 1)
        normals = np.empty((len(self.faces) * 3, 3))
        for group in groups:
            faces = group // 3
            smooth = (unit[faces] @ unit[faces].T) > _CREASE_COS
            normals[group] = smooth @ across[faces]
        normals += 1e-12 * np.repeat(unit, 3, axis=0)
        return (normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-15)).reshape(-1, 3, 3)

    def refined(self, edge: float) -> Solid:
        """Every edge longer than `edge` halved until none is; the surface stays where it is."""
        solid = self
        for _ in range(6):
            corners = solid.vertices[solid.faces]
            longest = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2).max(axis=1)
            if longest.max() <= edge or len(solid.faces) > 12000:
                break
            solid = solid._quartered(longest > edge)
        return solid

    def _quartered(self, chosen: NDArray[np.bool_]) -> Solid:
        # Neighbours of a split face keep their long edge: the new vertex lies on it, so no gap can be seen.
        corners = self.vertices[self.faces[chosen]]
        count, split = len(self.vertices), len(corners)
        middles = 0.5 * (corners + np.roll(corners, -1, axis=1))
        a, b, c = self.faces[chosen].T
        ab, bc, ca = (count + np.arange(3 * split).reshape(split, 3)).T
        new = np.concatenate([np.stack(face, 1) for face in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
        uv = None
        if self.corner_uv is not None:
            p, m = self.corner_uv[chosen], 0.5 * (self.corner_uv[chosen] + np.roll(self.corner_uv[chosen], -1, axis=1))
            triangles = ((p[:, 0], m[:, 0], m[:, 2]), (m[:, 0], p[:, 1], m[:, 1]), (m[:, 2], m[:, 1], p[:, 2]), (m[:, 0], m[:, 1], m[:, 2]))
            uv = np.concatenate([self.corner_uv[~chosen], *(np.stack(triangle, 1) for triangle in triangles)])
        return Solid(
            vertices=np.concatenate([self.vertices, middles.reshape(-1, 3)]), faces=np.concatenate([self.faces[~chosen], new]), corner_uv=uv
        )


def joined(*solids: Solid) -> Solid:
    """Several solids as one; where they overlap, the inner surfaces are hidden."""
    offsets = np.cumsum([0, *(len(solid.vertices) for solid in solids[:-1])])
    return Solid(
        vertices=np.concatenate([solid.vertices for solid in solids]),
        faces=np.concatenate([solid.faces + offset for solid, offset in zip(solids, offsets, strict=True)]),
    )


def prism(outline: Array, height: float, hole: Array | None = None) -> Solid:
    """An outline (k, 2) in the x-y plane, seen whole from the origin and counter-clockwise, raised by `height`.

    Args:
        outline: corners.
        height: along z, centred.
        hole: corners (k, 2) of a hole all the way through, as many as the outline has and in the same directions; None = none.
    """
    count = len(outline)
    low, high = -height / 2, height / 2
    ring = np.arange(count)
    after = np.roll(ring, -1)

    def level(points: Array, z: float) -> Array:
        return np.column_stack([points, np.full(len(points), z)])

    vertices = [level(outline, low), level(outline, high)]
    faces = [*_strip(ring, after, ring + count, after + count)]
    if hole is None:
        vertices += [[[0.0, 0.0, low]], [[0.0, 0.0, high]]]  # type: ignore[list-item]
        faces += [
            np.stack([after, ring, np.full(count, 2 * count)], 1),
            np.stack([ring + count, after + count, np.full(count, 2 * count + 1)], 1),
        ]
    else:
        vertices += [level(hole, low), level(hole, high)]
        inner, inner_after = ring + 2 * count, after + 2 * count
        faces += _strip(inner_after, inner, inner_after + count, inner + count)  # the wall of the hole
        faces += _strip(inner, inner_after, ring, after)  # below
        faces += _strip(ring + count, after + count, inner + count, inner_after + count)  # on top
    return Solid(vertices=np.concatenate(vertices), faces=np.concatenate(faces))


def revolved(profile: Sequence[tuple[float, float]], segments: int = 40) -> Solid:
    """A body of revolution about z of a profile [(radius, z), ...] from the lowest point on the axis around to the highest."""
    points = np.array(profile)
    angles = np.arange(segments) / segments * 2 * np.pi
    x, y = np.outer(points[:, 0], np.cos(angles)), np.outer(points[:, 0], np.sin(angles))
    vertices = np.stack([x, y, np.repeat(points[:, 1:], segments, axis=1)], axis=-1).reshape(-1, 3)
    ring = np.arange(segments)
    after = np.roll(ring, -1)
    faces = []
    for row in range(len(points) - 1):
        low, high = row * segments, (row + 1) * segments
        below, above = _strip(ring + low, after + low, ring + high, after + high)
        faces += [part for part, radius in ((below, points[row, 0]), (above, points[row + 1, 0])) if radius > 0]
    return Solid(vertices=vertices, faces=np.concatenate(faces))


def tube(path: Array, radius: float, segments: int = 10) -> Solid:
    """A round bar along a path (k, 3) in the x-z plane, open at both ends, which are to lie inside another solid."""
    along = np.gradient(path, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    side = np.array([0.0, 1.0, 0.0])
    up = np.cross(along, side)
    angles = np.arange(segments) / segments * 2 * np.pi
    offsets = np.cos(angles)[:, None, None] * side + np.sin(angles)[:, None, None] * up  # (segments, k, 3)
    vertices = (path + radius * offsets).transpose(1, 0, 2).reshape(-1, 3)
    ring = np.arange(segments)
    after = np.roll(ring, -1)
    faces = []
    for row in range(len(path) - 1):
        low, high = row * segments, (row + 1) * segments
        faces += _strip(ring + low, after + low, ring + high, after + high)
    return Solid(vertices=vertices, faces=np.concatenate(faces))


def box(x: float, y: float, z: float) -> Solid:
    """A box of those edges."""
    return prism(np.array([[x, -y], [x, y], [-x, y], [-x, -y]]) / 2, z)


def _strip(a: NDArray[np.int64], b: NDArray[np.int64], c: NDArray[np.int64], d: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Triangles of the quads a -> b below, c -> d above."""
    return [np.stack([a, b, d], 1), np.stack([a, d, c], 1)]
