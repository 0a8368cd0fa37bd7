"""Concept files, and what of them can be seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Seen, concepts_of, read_concepts
from robot_bridge.auxiliary.recognition.selfsynth.labels import mentions
from robot_bridge.auxiliary.recognition.selfsynth.visibility import camera_directions, visible_features
from sim_envs.parts.catalogue import CLASSES, NAMES

NUT = "[six corners, a hole, a face, a wall]"


def test_the_packaged_file_has_ten_drawn_classes_of_eight_to_twelve_features() -> None:
    concepts = read_concepts("parts.yaml")
    assert len(concepts.classes) == 10 and set(concepts.classes) <= set(NAMES) and concepts.known_when_seen
    assert all(8 <= len(features) <= 12 for features in concepts.classes.values())
    assert not [text for text in concepts.every_text() if mentions(text, list(concepts.classes))]
    assert concepts_of("again", concepts.to_json()) == concepts


def test_labels_in_concepts_are_stripped(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"classes: {{hex nut: [the Hex-Nut's six corners, a nut, a face, a wall], nut: {NUT}}}")
    assert read_concepts(file).texts("hex nut") == ["the part's six corners", "a part", "a face", "a wall"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("classes: [", "not readable"),
        ("parts: {}", "valid: one key `classes` with two or more classes"),
        (f"classes: {{nut: {NUT}}}", "two or more classes"),
        (f"classes: {{nut: {NUT}, gear: [teeth]}}", "gear: 1 features; valid: a list of 4 or more"),
        (f"classes: {{nut: {NUT}, gear: teeth}}", "gear: 'teeth' features"),
        (f"classes: {{nut: {NUT}, gear: {NUT}, nut: {NUT}}}", "the key 'nut' stands there twice"),
        (f"classes: {{nut: {NUT}, gear: [a, b, c, {{word: d}}]}}", r"gear\[3\]: \{'word': 'd'\}; valid: text"),
        (f"classes: {{nut: {NUT}, gear: [a, b, c, '12']}}", r"gear\[3\].feature: '12'; valid: words"),
        (f"classes: {{nut: {NUT}, gear: [a gear, a nut, b, c]}}", "gear: 'a part' twice"),
        (f"classes: {{nut: {NUT}, gear: [a, b, c, {{feature: d, seen: often}}]}}", r"gear\[3\].seen: 'often'; valid: always"),
        (f"classes: {{nut: {NUT}, gear: [a, b, c, {{feature: d, seen: {{axis: [0, 0, 0]}}}}]}}", r"seen.axis: \[0, 0, 0\]; valid"),
        (f"classes: {{nut: {NUT}, gear: [a, b, c, {{feature: d, seen: {{angle_deg: [0, 9]}}}}]}}", "an angle without an axis"),
        (
            f"classes: {{nut: {NUT}, gear: [a, b, c, {{feature: d, seen: {{axis: [0, 0, 1], angle_deg: [90, 9]}}}}]}}",
            r"angle_deg: \[90, 9\]; valid: \[least, largest\] in 0..180",
        ),
        (f"classes: {{nut: {NUT}, gear: [a, b, c, {{feature: d, seen: {{where: {{pose: lying}}}}}}]}}", "where: .*valid: factor"),
        (
            f"classes: {{nut: {NUT}, gear: [a, b, c, {{feature: d, seen: {{axis: [0, 0, 1], either_side: 2}}}}]}}",
            "either_side: 2; valid: true or false",
        ),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(RecognitionError, match=says) as refused:
        read_concepts(file)
    assert str(file) in str(refused.value)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecognitionError, match="no_such.yaml: not readable"):
        read_concepts(tmp_path / "no_such.yaml")
    with pytest.raises(RecognitionError, match=r"parts.yaml: no concepts of spoon; it has: mug, bowl"):
        read_concepts("parts.yaml").only(["mug", "spoon"])


def scene(name: str, *views: tuple[str, float, float, float], **factors: list[object]) -> ImageData:
    """Pictures of one class from (pose, azimuth, elevation, roll)."""
    pose, azimuth, elevation, roll = (np.array(column) for column in zip(*views, strict=True))
    given = {"pose": pose, "azimuth_deg": azimuth, "elevation_deg": elevation, "roll_deg": roll}
    return ImageData(
        frames=np.zeros((len(views), 4, 4, 3), np.uint8),
        labels=np.zeros(len(views), np.int64),
        classes=(name,),
        instances=np.zeros(len(views), np.int64),
        factors={**given, **{key: np.array(values) for key, values in factors.items()}},
    )


def test_the_cameras_direction_is_that_of_the_stage() -> None:
    from sim_envs.parts.stage import pose_rotation

    views = [("standing", 10.0, 20.0, 70.0), ("lying", 200.0, 40.0, 15.0), ("upside down", 300.0, 70.0, 250.0)]
    mug = CLASSES[NAMES.index("mug")]
    for found, (pose, *degrees) in zip(camera_directions(scene("mug", *views)), views, strict=True):
        azimuth, elevation, roll = np.deg2rad(degrees)
        world = [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
        turn = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
        np.testing.assert_allclose(found, (turn @ pose_rotation(mug, pose)).T @ world, atol=1e-9)  # type: ignore[arg-type]


def test_a_handle_hides_behind_its_mug_and_an_opening_under_it() -> None:
    views = [
        ("standing", 0.0, 20.0, 0.0),
        ("standing", 180.0, 20.0, 0.0),
        ("standing", 180.0, 20.0, 170.0),
        ("upside down", 0.0, 20.0, 180.0),
    ]
    found = visible_features(scene("mug", *views), read_concepts("parts.yaml"))
    assert [each["a curved handle on the side"] for each in found] == [True, False, True, True]
    assert [each["an open top"] for each in found] == [True, True, True, False]
    assert [each["a closed end"] for each in found] == [False, False, False, True]


def test_both_sides_of_a_nut_show_its_hole_and_its_rim_does_not() -> None:
    views = [
        ("standing", 0.0, 60.0, 0.0),
        ("standing", 0.0, 10.0, 0.0),
        ("lying", 0.0, 20.0, 0.0),
        ("lying", 180.0, 20.0, 0.0),
        ("lying", 90.0, 20.0, 0.0),
    ]
    found = visible_features(scene("hex nut", *views), read_concepts("parts.yaml"))
    assert [each["a round hole through the middle"] for each in found] == [True, False, True, True, False]


def test_factors_decide_too_and_unknown_ones_are_refused() -> None:
    def concepts(where: object):
        rows = ["a", "b", "c", {"feature": "d", "seen": {"where": where}}]
        rows = [{"feature": row, "seen": "always"} if isinstance(row, str) else row for row in rows]
        return concepts_of("mine", {"classes": {"cone": rows, "nut": ["a", "b", "c", "d"]}})

    data = scene("cone", *[("standing", 0.0, 30.0, 0.0)] * 3, in_bin=[True, False, False], object_area=[0.3, 0.2, 0.01])
    assert [each["d"] for each in visible_features(data, concepts({"in_bin": [False], "object_area": [0.05, 1]}))] == [False, True, False]
    assert concepts({"in_bin": [False]}).classes["cone"][0].seen == Seen()
    with pytest.raises(RecognitionError, match="mine: feature 'd' of cone: where: no factor 'light'; factors: pose, azimuth_deg"):
        visible_features(data, concepts({"light": ["dim"]}))
    with pytest.raises(RecognitionError, match="feature 'd' of cone: where.pose: flying; valid: standing, lying, upside down"):
        visible_features(data, concepts({"pose": ["lying", "flying"]}))
    with pytest.raises(RecognitionError, match="feature 'a' of nut: no `seen`"):
        visible_features(scene("nut", ("standing", 0.0, 30.0, 0.0)), concepts({"in_bin": [False]}))
    photographs = ImageData(frames=data.frames, labels=data.labels, classes=data.classes, instances=data.instances)
    with pytest.raises(
        RecognitionError, match="no factors azimuth_deg, elevation_deg, roll_deg, pose; valid: pictures of `armstack aux data`"
    ):
        camera_directions(photographs)
