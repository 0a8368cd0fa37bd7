"""What is drawn; each test draws a handful of small pictures."""

import numpy as np
import pytest

from sim_envs.parts.captions import every_word
from sim_envs.parts.catalogue import NAMES
from sim_envs.parts.pictures import Pictures, draw_crate
from sim_envs.parts.surfaces import COLOURS, TABLES

pytest.importorskip("robosuite", reason="its meshes are used")


pytestmark = pytest.mark.usefixtures("graphics")


@pytest.fixture(scope="module")
def plain() -> Pictures:
    return draw_crate(0, 0, [(label, 0) for label in range(len(NAMES))], size=64)


def test_every_object_is_in_view(plain: Pictures) -> None:
    assert plain.frames.shape == (20, 64, 64, 3) and plain.frames.dtype == np.uint8
    area = plain.factors["object_area"]
    assert (area > 0.008).all() and (area < 0.6).all()
    assert plain.factors["cut_off"].mean() <= 0.1
    for mask, count in zip(plain.masks, area, strict=True):
        assert (mask == 1).mean() == pytest.approx(count)


def test_lights_are_sane(plain: Pictures) -> None:
    brightness = plain.frames.reshape(20, -1).mean(axis=1)
    assert (brightness > 15).all() and (brightness < 245).all()
    assert plain.frames.reshape(20, -1).std(axis=1).min() > 5


def test_equal_seeds_draw_equal_pictures(plain: Pictures) -> None:
    again = draw_crate(0, 0, [(6, 0), (3, 0)], size=64)
    np.testing.assert_array_equal(again.frames, plain.frames[[6, 3]])
    np.testing.assert_array_equal(again.instances, plain.instances[[6, 3]])
    assert again.captions == (plain.captions[6], plain.captions[3])


def test_another_seed_or_crate_holds_other_objects(plain: Pictures) -> None:
    others = [draw_crate(seed, crate, [(6, 0)], size=64) for seed, crate in ((1, 0), (0, 1))]
    assert len({int(plain.instances[6]), *(int(other.instances[0]) for other in others)}) == 3
    assert all((other.frames[0] != plain.frames[6]).any() for other in others)


def test_the_object_has_the_colour_of_its_caption(plain: Pictures) -> None:
    colours = np.array(list(COLOURS.values()))
    words = list(COLOURS)
    right = 0
    for frame, mask, colour in zip(plain.frames, plain.masks, plain.factors["colour"], strict=True):
        seen = frame[mask == 1].mean(axis=0)
        hue = seen / np.linalg.norm(seen)
        known = colours / np.linalg.norm(colours, axis=1, keepdims=True)
        ranked = [words[index] for index in np.argsort(-(known @ hue))]
        right += str(colour) in ranked[:4]  # white, gray and black share a hue, orange and brown too
    assert right >= 15


def test_captions_say_what_is_there(plain: Pictures) -> None:
    known = set(" ".join(every_word()).replace(",", " ").split())
    for label, caption in enumerate(plain.captions):
        assert NAMES[label] in caption and str(plain.factors["colour"][label]) in caption and caption.endswith(".")
        assert set(caption.replace(",", " ").replace(".", " ").split()) <= known
    assert any(f"on the {word} table" in caption for caption in plain.captions for word in TABLES.values())
    beside = [row for row, names in enumerate(plain.factors["beside"]) if names]
    assert beside and all((plain.masks[row] == 2).any() for row in beside[:1])


def test_a_texture_shift_keeps_the_view(plain: Pictures) -> None:
    shifted = draw_crate(0, 0, [(14, 0)], size=64, shift="texture")
    overlap = (shifted.masks[0] == 1) & (plain.masks[14] == 1)
    assert overlap.sum() / (plain.masks[14] == 1).sum() > 0.98
    assert shifted.factors["surface"][0] != plain.factors["surface"][14]
    assert np.abs(shifted.frames[0].astype(int) - plain.frames[14]).mean() > 5


def test_dim_light_is_dimmer(plain: Pictures) -> None:
    shifted = draw_crate(0, 0, [(label, 0) for label in range(8)], size=64, shift="light")
    dim = np.flatnonzero(shifted.factors["brightness"] < 0.35)
    assert len(dim)
    for row in dim:
        assert shifted.frames[row].mean() < 0.6 * plain.frames[row].mean()


def test_defects_are_seen_where_the_mask_says() -> None:
    labels = [6, 8, 13, 15]
    damaged = draw_crate(0, 1, [(label, 0) for label in labels], size=96, defects=1.0)
    assert (damaged.factors["defect"] != "").sum() >= 3
    for mask, area, kind in zip(damaged.masks, damaged.factors["defect_area"], damaged.factors["defect"], strict=True):
        assert ((mask == 3).any()) == (kind != "") == (area > 0)
        assert area < 0.8
