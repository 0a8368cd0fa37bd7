from functools import partial
from pathlib import Path

import numpy as np
import pytest

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import write_header, write_shard
from robot_bridge.auxiliary.vlm import experiment
from robot_bridge.auxiliary.vlm import recipe as recipe_module
from robot_bridge.auxiliary.vlm.contrastive import ContrastiveConfig
from robot_bridge.auxiliary.vlm.recipe import VLMRecipe, make_vlm, save_vlm, sentences, train_vlm, without, zero_shot_figures
from robot_bridge.auxiliary.vlm.small import SmallVLM
from tests.robot_bridge.auxiliary.vlm.conftest import SMALL, MeanColours

CLASSES = ("mug", "hex nut", "hex block")
COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}


def pictures(count: int = 60, seed: int = 0) -> ImageData:
    """Each class has its own colour, in the middle of a dark picture."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    frames = generator.integers(0, 50, (count, 16, 16, 3), np.uint8)
    masks = np.zeros((count, 16, 16), np.uint8)
    masks[:, 4:12, 4:12] = 1
    for label, colour in enumerate(COLOURS.values()):
        frames[labels == label, 4:12, 4:12] = colour
    words = np.array(list(COLOURS))[labels]
    captions = tuple(f"a {colour} {CLASSES[label]}, lying on the table." for colour, label in zip(words, labels, strict=True))
    beside = np.array(["hex block and mug" if row % 10 == 0 else "" for row in range(count)])
    return ImageData(
        frames=frames, labels=labels, classes=CLASSES, instances=np.arange(count), captions=captions,
        factors={"colour": words, "beside": beside}, segmentation=masks,
    )  # fmt: skip


def recipe(**changes) -> VLMRecipe:
    return VLMRecipe(model=SMALL, training=ContrastiveConfig(epochs=20, batch=12, learning_rate=3e-3, top_k=4), **changes)


def test_the_recipe_gives_a_model_that_knows_names(tmp_path: Path) -> None:
    model = train_vlm(pictures(), recipe(), 0, backbone=MeanColours(), cache=tmp_path, say=lambda text: None)
    figures = zero_shot_figures(model, pictures(seed=1))
    assert figures["accuracy"] > 0.9 and figures["accuracy/local"] > 0.7
    folder = save_vlm(model, tmp_path / "vlm", pictures(), recipe(), 0, figures)
    assert zero_shot_figures(SmallVLM.load(folder, MeanColours()), pictures(seed=1)) == figures


def test_held_out_classes_are_in_no_picture_but_their_words_are_known() -> None:
    kept = without(pictures(), ("hex block",))
    assert set(kept.labels.tolist()) == {0, 1} and not any("hex block" in names for names in kept.factors["beside"])
    said: list[str] = []
    model = train_vlm(pictures(), recipe(held_out=("hex block",)), 0, backbone=MeanColours(), say=said.append)
    assert said[0].startswith(f"{len(kept)} pictures") and not model.words.unknown(["hex block"])
    figures = zero_shot_figures(model, pictures(seed=1), ("hex block",))
    assert figures["accuracy/held_out_alone"] == 1.0  # there is but one
    assert figures["accuracy"] > 0.9


def test_a_held_out_class_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(ImageDataError, match=r"\['cup'\]; classes: \['mug', 'hex nut', 'hex block'\]"):
        without(pictures(), ("cup",))
    with pytest.raises(ImageDataError, match="no picture left"):
        without(pictures(), CLASSES)


def test_sentences_name_the_class_and_its_colour() -> None:
    assert sentences(pictures(3))[1] == ["a green hex nut, lying on the table."] * 2 + ["a photo of a hex nut.", "green hex nut."]


def test_pictures_without_captions_cannot_teach() -> None:
    with pytest.raises(ImageDataError, match="trained on captions"):
        train_vlm(ImageData(**{**vars(pictures()), "captions": ()}), recipe(), 0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe on a backbone of mean colours."""
    for module in (recipe_module, experiment):
        monkeypatch.setattr(module, "train_vlm", partial(train_vlm, backbone=MeanColours()))


def test_a_folder_of_pictures_becomes_a_bundle(quick: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_header(tmp_path / "data", CLASSES, {})
    write_shard(pictures(), tmp_path / "data" / "a.npz")
    said: list[str] = []
    figures = make_vlm(tmp_path / "vlm", data=tmp_path / "data", epochs=1, batch=16, say=said.append)
    assert set(figures) == {"accuracy", "accuracy/local"} and said[-1].startswith("step ")
    model = SmallVLM.load(tmp_path / "vlm", MeanColours())
    assert not model.words.unknown(list(CLASSES))
    assert list((tmp_path / "vlm.maps").rglob("*.npz"))


def test_the_experiment_judges_shifts_on_objects_of_another_seed(quick: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def drawn(out: Path, *, images: int, size: int, shift: str, seed: int) -> None:
        asked.append((out.name, shift, seed))
        write_header(out, CLASSES, {})
        write_shard(pictures(images, seed), out / "a.npz")

    monkeypatch.setattr(experiment, "make", drawn)
    config = {"images": {"train": 24, "test": 12}, "size": 16, "shifts": ["light"], "held_out": ["hex block"], "training": {"epochs": 1}}
    figures = experiment.run(config | {"model": {"blocks": 1, "text_blocks": 1}}, 0, tmp_path / "run")
    assert asked == [("train-none-24-16", "none", 0), ("test-none-12-16", "none", 1), ("test-light-12-16", "light", 1)]
    assert {"accuracy", "accuracy/held_out", "light/accuracy/local", "time/training_s"} <= set(figures)
    assert SmallVLM.load(tmp_path / "run" / "vlm", MeanColours()).config.blocks == 1
