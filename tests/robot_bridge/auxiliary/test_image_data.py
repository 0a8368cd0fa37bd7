import numpy as np
import pytest

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError


def data(per_object: int = 4, objects: int = 5, classes: tuple[str, ...] = ("mug", "gear", "bolt")) -> ImageData:
    count = per_object * objects * len(classes)
    instances = np.repeat(np.arange(objects * len(classes)), per_object)
    frames = np.zeros((count, 6, 6, 3), np.uint8)
    frames[:, 0, 0, 0] = np.arange(count)
    return ImageData(
        frames=frames,
        labels=instances // objects,
        classes=classes,
        instances=instances,
        captions=tuple(f"picture {index}" for index in range(count)),
        factors={"light": np.arange(count) / count},
        segmentation=np.zeros((count, 6, 6), np.uint8),
    )


def test_selecting_keeps_everything_of_a_picture_together() -> None:
    chosen = data().select(np.array([7, 3]))
    assert chosen.frames[:, 0, 0, 0].tolist() == [7, 3] and chosen.captions == ("picture 7", "picture 3")
    assert chosen.factors["light"].tolist() == [7 / 60, 3 / 60] and chosen.segmentation is not None
    assert len(data().select(data().labels == 1)) == 20


def test_no_object_stands_on_both_sides_of_a_split() -> None:
    parts = data().split((0.6, 0.2, 0.2), seed=0)
    assert [len(part) for part in parts] == [36, 12, 12]
    seen = [set(part.instances.tolist()) for part in parts]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    for part in parts:
        assert set(part.labels.tolist()) == {0, 1, 2}
    assert set(data().split((0.6, 0.4), seed=0)[0].instances) != set(data().split((0.6, 0.4), seed=1)[0].instances)
    np.testing.assert_array_equal(parts[0].frames, data().split((0.6, 0.2, 0.2), seed=0)[0].frames)


def test_every_part_gets_an_object_of_each_class_however_small_its_share() -> None:
    for part in data().split((0.96, 0.02, 0.02), seed=0):
        assert set(part.labels.tolist()) == {0, 1, 2}


def test_a_class_of_one_object_cannot_be_split() -> None:
    with pytest.raises(ImageDataError, match=r"class 'mug' has 1 object\(s\) for 2 parts"):
        data(objects=1).split((0.5, 0.5), seed=0)
    with pytest.raises(ImageDataError, match="with a sum of 1"):
        data().split((0.5, 0.6), seed=0)


def test_shots_are_of_as_many_objects_as_there_are() -> None:
    few = data().few_shot(5, seed=0)
    assert [int((few.labels == label).sum()) for label in range(3)] == [5, 5, 5]
    assert len(set(few.instances.tolist())) == 15
    more = data().few_shot(7, seed=0)
    assert len(more) == 21 and len(set(more.instances.tolist())) == 15 and len(set(more.captions)) == 21
    assert set(data().few_shot(2, seed=1).captions) != set(data().few_shot(2, seed=2).captions)
    with pytest.raises(ImageDataError, match=r"21 shots of class 'mug' with 20 picture\(s\); valid: 1..20"):
        data().few_shot(21, seed=0)


def test_only_some_classes_count_anew() -> None:
    kept = data().only(("bolt", "mug"))
    assert kept.classes == ("bolt", "mug") and len(kept) == 40
    assert set(kept.instances[kept.labels == 0].tolist()) == set(range(10, 15))
    with pytest.raises(ImageDataError, match=r"no class \['cup'\]; classes: \['mug', 'gear', 'bolt'\]"):
        data().only(("cup",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": np.zeros((60, 6, 6), np.uint8)}, "valid: uint8"),
        ({"labels": np.full(60, 3)}, "valid: 0..2"),
        ({"instances": np.zeros(59, np.int64)}, "instances: 59 values for 60 frames"),
        ({"captions": ("one",)}, "captions: 1 for 60 frames"),
        ({"classes": ("mug", "mug", "bolt")}, "different names"),
        ({"segmentation": np.zeros((60, 5, 6), np.uint8)}, r"valid: \(60, 6, 6\)"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict, message: str) -> None:
    with pytest.raises(ImageDataError, match=message):
        ImageData(**{**vars(data()), **change})
