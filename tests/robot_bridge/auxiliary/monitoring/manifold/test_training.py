"""From frames to a bundle and back, and what is judged with it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rl_core.bundle import Bundle
from rl_core.training.config import ConfigError
from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.monitoring.manifold import training
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.evaluation import average_precision, evaluate
from robot_bridge.auxiliary.monitoring.manifold.frames import read_frames
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser
from robot_bridge.auxiliary.monitoring.manifold.scoring import OF_PRIOR, frozen_features
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import flat_frames, real_frames

DATA = real_frames(objects=14)
TINY = {"side": 8, "width": 8, "levels": 10, "updates": 2, "batch_size": 8}
CONFIG = ManifoldConfig().override(ddpm=TINY, samples=8, sampling_steps=4, noises=4)


def trained(config: ManifoldConfig, run_dir: Path, said: list[str] | None = None) -> Bundle:
    return training.train(DATA, config, run_dir, seed=3, say=(said if said is not None else []).append)


def saved(bundle: Bundle, folder: Path) -> AuthenticityRecogniser:
    bundle.save(folder)
    return load_auxiliary(find_method("manifold"), Bundle.load(folder))


def test_a_bundle_holds_all_that_judges(tmp_path: Path) -> None:
    said: list[str] = []
    bundle = trained(CONFIG, tmp_path, said)
    recogniser = saved(bundle, tmp_path / "bundle")
    prediction = recogniser.predict(DATA.frames[:6])
    prediction.check(6, ("real", "generated"))
    assert prediction.map is None and np.allclose(prediction.scores.sum(axis=1), 1)
    # above 0.5 is above the threshold, k deviations above the mean of real frames
    assert np.array_equal(prediction.scores[:, 1] > 0.5, prediction.values["deviations"] > 1.0)
    one = recogniser.predict(DATA.frames[4:5])
    assert np.allclose(one.values["deviations"], prediction.values["deviations"][4:5], atol=1e-4)
    numbers = bundle.config["calibration"]
    assert numbers["d_feat"] == 192 and 0 < numbers["alpha"] < 1 and numbers["k"] == 1 and numbers["checked"] == 16
    levels = bundle.arrays["sweep"]
    assert levels.shape[1] == 2 + len(OF_PRIOR) and numbers["step"] in levels[:, 0].tolist()
    assert bundle.metrics[f"auc criterion at {numbers['alpha']:.3f}"] == pytest.approx(float(levels[:, 2].max()))
    assert any("samples of its own" in line for line in said) and any("real frames of further objects" in line for line in said)


def test_frames_of_the_objects_that_were_seen_neither_set_nor_check_the_threshold(tmp_path: Path) -> None:
    seen, held, checked = DATA.split((0.7, 0.15, 0.15), 3)
    recogniser = saved(trained(CONFIG, tmp_path), tmp_path / "bundle")
    deviations = recogniser.predict(held.frames).values["deviations"]
    assert deviations.mean() == pytest.approx(0, abs=1e-3) and deviations.std() == pytest.approx(1, abs=1e-3)
    flagged = recogniser.predict(checked.frames).scores[:, 1] > 0.5
    assert recogniser.calibration.false_positive_rate == pytest.approx(flagged.mean())
    assert not set(seen.instances) & (set(held.instances) | set(checked.instances))


def test_a_prior_that_is_trained_is_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    first = trained(CONFIG, tmp_path)
    monkeypatch.setattr("robot_bridge.auxiliary.monitoring.manifold.kept.DDPMTraining", None)
    again = trained(CONFIG.override(alpha=0.5), tmp_path, said)
    assert torch.equal(first.weights["first.weight"], again.weights["first.weight"]) and "sweep" not in again.arrays
    assert any("there already" in line for line in said)
    monkeypatch.undo()
    [file] = tmp_path.glob("ddpm-*.safetensors")
    file.write_bytes(file.read_bytes()[:100])  # damaged: trained again
    assert torch.equal(trained(CONFIG, tmp_path).weights["first.weight"], first.weights["first.weight"])
    other = training.train(DATA, CONFIG, tmp_path, seed=4, say=print)
    assert not torch.equal(other.weights["first.weight"], first.weights["first.weight"])


@pytest.mark.parametrize("score", ["kappa", "gradient", "bias", "reconstruction", "slope"])
def test_terms_and_baselines_are_thresholded_the_same_way(score: str, tmp_path: Path) -> None:
    recogniser = saved(trained(CONFIG.override(score=score, alpha=0.4), tmp_path), tmp_path / "bundle")
    figures = evaluate(recogniser, DATA)
    assert (
        set(figures) == {"real_frames", "generated_frames", "false_positive_rate", "ms_per_frame"}
        and 0 < figures["false_positive_rate"] < 0.5
    )


def test_flat_frames_are_found_by_their_contrast(tmp_path: Path) -> None:
    recogniser = saved(trained(CONFIG.override(score="contrast", alpha=0.4), tmp_path), tmp_path / "bundle")
    frames = np.concatenate((DATA.frames, flat_frames(30)))
    both = ImageData(
        frames=frames,
        labels=np.repeat([0, 1], [len(DATA), 30]),
        classes=("real", "generated"),
        instances=np.arange(len(frames)),
    )
    figures = evaluate(recogniser, both)
    assert figures["detected"] == 1 and figures["auroc"] > 0.99 and figures["average_precision"] > 0.99
    assert figures["accuracy"] > 0.7 and figures["false_positive_rate"] < 0.4
    assert (figures["real_frames"], figures["generated_frames"]) == (len(DATA), 30)
    alone = evaluate(recogniser, both.only(("generated",)))
    assert alone.keys() == {"real_frames", "generated_frames", "detected", "ms_per_frame"} and alone["real_frames"] == 0
    with pytest.raises(AuthenticityError, match="no frames to evaluate on"):
        evaluate(recogniser, both.select(np.zeros(len(both), bool)))


@pytest.mark.parametrize("classes", [("real", "generatd"), ("real", "fake"), ("nut", "Generated")])
def test_a_misspelled_class_is_not_taken_as_real(classes: tuple[str, ...], tmp_path: Path) -> None:
    recogniser = saved(trained(CONFIG.override(score="contrast", alpha=0.4), tmp_path), tmp_path / "bundle")
    with pytest.raises(AuthenticityError, match=f"is {classes[1]} real or generated. valid: the classes real and generated"):
        evaluate(recogniser, replace(DATA, classes=classes))
    assert evaluate(recogniser, replace(DATA, classes=("nut", "generated")))["generated_frames"] == len(DATA) / 2


def test_frames_of_another_size_are_not_judged(tmp_path: Path) -> None:
    recogniser = saved(trained(CONFIG.override(score="contrast", alpha=0.4), tmp_path), tmp_path / "bundle")
    with pytest.raises(AuthenticityError, match="data: frames of 32 x 32 pixels; valid: 16 x 16, those of the camera"):
        evaluate(recogniser, real_frames(side=32))


def test_tiles_show_where(tmp_path: Path) -> None:
    recogniser = saved(trained(CONFIG.override(score="contrast", alpha=0.4, tiles=2), tmp_path), tmp_path / "bundle")
    frame = DATA.frames[0].copy()
    frame[8:, :8] = frame[8:, :8].mean()
    prediction = recogniser.predict(frame[None])
    prediction.check(1, ("real", "generated"))
    assert prediction.map is not None and prediction.map.shape == (1, 2, 2) and prediction.map[0].argmax() == 2


def labelled_folder(folder: Path, count: int = 8) -> Path:
    for name, frames in (("real", DATA.frames[:count]), ("generated", flat_frames(count))):
        (folder / name).mkdir(parents=True)
        for index, frame in enumerate(frames):
            Image.fromarray(frame).save(folder / name / f"{index:03d}.png")
    return folder


def test_a_few_labels_make_a_mixture_that_goes_with_the_bundle(tmp_path: Path) -> None:
    config = CONFIG.override(labelled=str(labelled_folder(tmp_path / "labelled")), alpha=0.4)
    bundle = trained(config, tmp_path)
    direct = training.few_shot(replace(training.load(bundle).scorer, mixture=None), read_frames(config.labelled), config, 8, 3)
    recogniser = saved(bundle, tmp_path / "bundle")
    assert recogniser.scorer.mixture is not None
    for name, tensor in direct.arrays().items():
        assert torch.equal(recogniser.scorer.mixture.arrays()[name], tensor)
    recogniser.predict(DATA.frames[:3]).check(3, ("real", "generated"))


def test_labelled_frames_that_cannot_be_used_are_found_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robot_bridge.auxiliary.monitoring.manifold.kept.DDPMTraining", None)
    few = labelled_folder(tmp_path / "few", count=4)
    large = labelled_folder(tmp_path / "large")
    for file in large.rglob("*.png"):
        Image.open(file).resize((32, 24)).save(file)
    wrong = labelled_folder(tmp_path / "wrong")
    (wrong / "real").rename(wrong / "true")
    for folder, error, message in (
        (tmp_path / "nope", ImageDataError, "nope: no such folder; valid: "),
        (few, AuthenticityError, "4 real and 4 generated crops with a label; valid: 5 or more of each"),
        (large, AuthenticityError, "large: frames of 32 x 24 pixels; valid: 16 x 16"),
        (wrong, AuthenticityError, "classes generated, true; valid: real, generated"),
    ):
        with pytest.raises(error, match=message):
            trained(CONFIG.override(labelled=str(folder)), tmp_path)


def test_a_missing_extra_is_found_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    frozen_features.cache_clear()
    with pytest.raises(AuthenticityError, match=r"image features need onnxruntime \(.*\): pip install 'armstack\[vlm\]'"):
        trained(CONFIG.override(score="rigid"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_small_frames_and_settings_out_of_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AuthenticityError, match="frames of 16 x 16 pixels; valid: 32 x 32 or more"):
        trained(ManifoldConfig(), tmp_path)
    for settings in ({"alpha": 1.0}, {"held_out": 0.0}, {"noises": 0}, {"k": 0.0}, {"score": "hunch"}):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            CONFIG.override(**settings)


def test_average_precision_by_hand() -> None:
    assert average_precision(np.array([3.0, 2.0, 1.0]), np.array([True, False, True])) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(np.array([1.0, 1.0, 1.0, 1.0]), np.array([True, False, False, False])) == pytest.approx(0.25)
    with pytest.raises(AuthenticityError, match="no generated frames"):
        average_precision(np.array([1.0]), np.array([False]))


@pytest.mark.parametrize("name", ["generated", "Generatd"])
def test_generated_frames_set_no_threshold(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "kept_ddpm", None)
    with pytest.raises(AuthenticityError, match=f"--data: class {name}; valid: classes of real frames alone"):
        training.train(replace(DATA, classes=("real", name)), CONFIG, tmp_path, seed=3, say=print)


def test_a_detector_that_can_tell_nothing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    alone = replace(DATA, instances=np.arange(len(DATA)))
    training.train(alone, CONFIG, tmp_path, seed=3, say=said.append)
    assert any("so no episode can be judged by itself" in line for line in said)
    monkeypatch.setattr(training, "_USELESS", 0.0)
    trained(CONFIG, tmp_path, said)
    assert any("nothing can be told from a flag" in line for line in said)
