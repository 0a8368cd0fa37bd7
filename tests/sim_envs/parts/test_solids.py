from collections import Counter

import numpy as np
import pytest

from sim_envs.parts import outlines
from sim_envs.parts.catalogue import CLASSES, NAMES, RADIUS, PartClass, make_solid
from sim_envs.parts.defects import kinds_of, make_defect
from sim_envs.parts.solids import Solid, box, joined, prism, revolved, tube

pytest.importorskip("robosuite", reason="its meshes are used")
OPEN = {"bottle": 12, "mug": 20}
"""Edges of one face only: the ends of the handle, which lie inside the wall, and those of robosuite's own mesh."""


def volume(solid: Solid) -> float:
    a, b, c = solid.vertices[solid.faces].transpose(1, 0, 2)
    return float(np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6)


def open_edges(solid: Solid) -> int:
    _, place = np.unique(np.round(solid.vertices, 6), axis=0, return_inverse=True)
    corners = place.reshape(-1)[solid.faces]
    edges = Counter((int(a), int(b)) for face in corners for a, b in zip(face, np.roll(face, -1), strict=True) if a != b)
    return sum(edges[b, a] != count for (a, b), count in edges.items())


@pytest.mark.parametrize("part", CLASSES, ids=NAMES)
def test_solids_are_closed_and_face_outwards(part: PartClass) -> None:
    solid = make_solid(part, 3)
    assert volume(solid) > 0.01 * RADIUS**3
    assert open_edges(solid) == OPEN.get(part.name, 0)
    assert solid.radius == pytest.approx(RADIUS)
    np.testing.assert_allclose(solid.vertices.max(axis=0) + solid.vertices.min(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("part", CLASSES, ids=NAMES)
def test_equal_seeds_give_equal_objects_and_others_do_not(part: PartClass) -> None:
    first, again, other = (make_solid(part, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.vertices, again.vertices)
    assert first.vertices.shape != other.vertices.shape or not np.allclose(first.vertices, other.vertices, atol=1e-4)


def test_volumes_are_those_of_geometry() -> None:
    assert volume(box(1, 2, 3)) == pytest.approx(6)
    square = outlines.polygon(4, 1.0)
    assert volume(prism(square, 2.0)) == pytest.approx(4.0)
    assert volume(prism(square, 2.0, 0.5 * square)) == pytest.approx(3.0)
    assert volume(revolved([(0, 0), (1, 0), (1, 2), (0, 2)], 200)) == pytest.approx(2 * np.pi, rel=1e-3)
    assert volume(joined(box(1, 1, 1), box(1, 1, 1).moved((3, 0, 0)))) == pytest.approx(2)


def test_normals_are_flat_on_a_box_and_round_on_a_cylinder() -> None:
    normals = box(1, 1, 1).corner_normals()
    assert (np.abs(normals).max(axis=2) > 0.999).all()
    side = revolved([(0, 0), (1, 0), (1, 2), (0, 2)], 40)
    corners, normals = side.vertices[side.faces], side.corner_normals()
    on_side = np.abs(normals[..., 2]) < 0.5
    np.testing.assert_allclose(normals[on_side][:, :2], corners[on_side][:, :2], atol=0.04)


def test_a_tube_faces_outwards() -> None:
    angles = np.linspace(-1.5, 1.5, 14)
    path = np.column_stack([np.cos(angles), np.zeros(14), np.sin(angles)])
    bar = tube(path, 0.1)
    corners = bar.vertices[bar.faces]
    outwards = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    middle = corners.mean(axis=1)
    nearest = path[np.linalg.norm(middle[:, None] - path, axis=2).argmin(axis=1)]
    assert (np.einsum("ni,ni->n", outwards, middle - nearest) > 0).all()


def test_refining_keeps_the_surface_and_the_texture() -> None:
    flat = prism(outlines.polygon(4, 1.0, 1), 1.0)
    solid = Solid(vertices=flat.vertices, faces=flat.faces, corner_uv=flat.vertices[flat.faces][..., :2])
    fine = solid.refined(0.2)
    assert volume(fine) == pytest.approx(volume(solid))
    corners = fine.vertices[fine.faces]
    assert np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2).max() <= 0.2
    assert fine.corner_uv is not None
    np.testing.assert_allclose(fine.corner_uv, corners[..., :2], atol=1e-12)


@pytest.mark.parametrize("name", ["gear", "mug", "bolt", "hex nut", "cereal box"])
def test_defects_change_what_they_say(name: str) -> None:
    part = CLASSES[NAMES.index(name)]
    whole = make_solid(part, 3)
    for kind in kinds_of(part):
        defect = make_defect(kind, part, 3)
        assert np.linalg.norm(defect.at) < 1.2 * RADIUS
        if kind in ("chip", "missing"):
            assert defect.solid is not None
            assert (volume(defect.solid) < volume(whole)) != (name == "hex nut" and kind == "missing")  # a hole that is not there adds
        elif kind == "bent":
            assert defect.solid is not None and not np.allclose(defect.solid.vertices, whole.refined(0.008).vertices, atol=1e-3)
        else:
            assert defect.solid is None and (defect.patch is not None) + (len(defect.bars) > 0) + (defect.bead > 0) == 1


def test_defects_belong_to_their_classes() -> None:
    assert "missing" not in kinds_of(CLASSES[NAMES.index("lemon")]) and "bent" not in kinds_of(CLASSES[NAMES.index("lemon")])
    assert "missing" in kinds_of(CLASSES[NAMES.index("mug")])
