"""The runs of experiments/recognition.yaml, on pictures and networks that take no time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rl_core.experiments import load_plan
from rl_core.experiments.runner import ROOT
from robot_bridge.auxiliary.monitoring.experiments import guards
from robot_bridge.auxiliary.recognition import demul, parts_bench
from robot_bridge.auxiliary.recognition.contenders import CONTENDERS
from robot_bridge.auxiliary.recognition.experiments import base_to_new, few_shot
from robot_bridge.auxiliary.recognition.robust_experiment import _crop, _crops, robust
from tests.robot_bridge.auxiliary.tiny_vlm import coloured_parts, tiny_vlm

SCHEDULE = {"epochs": 2, "batch_size": 8}
PROBE = {"rates": [0.01], "strengths": [0.0], "epochs": 3}
ADVERSARY = {"side": 8, "width": 2, "epochs": 1, "tune_epochs": 1, "adversary": {"steps": 1}}
SETTINGS = {
    "zero-shot": {"templates": ["a photo of a {}."]},
    "ecalp": {"capacity": 20},
    "ilc": {"probe": PROBE},
    "csr": ADVERSARY,
    "linear-probe": {},
    "demul": {"prompts": 2, "schedule": SCHEDULE, "mapping": {"width": 16, "epochs": 2}, "least_cosine": -1.0},
}
CONFIG = {"vlm": "tiny", "size": 24, "images": {"pool": 1, "test": 1, "validation": 1}}


class ColourLayers:
    """Average colours on two grids."""

    identity, names = "colours", ("fine", "coarse", "one")

    def features(self, frames, last=None):
        x = torch.from_numpy(frames).permute(0, 3, 1, 2).float() / 255
        return [F.adaptive_avg_pool2d(x, side).flatten(1) for side in (4, 2, 1)][: None if last is None else last + 1]


class LetterTeacher:
    """Counts letters."""

    def encode(self, sentences):
        return np.array([[sentence.count(letter) for letter in "abcdefghijklmnopqrst"] for sentence in sentences], np.float32)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(parts_bench, "vlm_at", lambda folder: tiny_vlm())
    monkeypatch.setattr(parts_bench, "EfficientNetLayers", ColourLayers)
    monkeypatch.setattr(demul, "sentence_encoder", LetterTeacher)
    seeds = {"pool": 0, "test": 1, "validation": 2, "damaged": 3}

    def pictures(self, kind, shift="none", **options):
        data = coloured_parts(each=4, seed=10 * seeds[kind] + len(shift))
        data.factors["defect"] = np.full(len(data), "chip" if kind == "damaged" else "")
        return replace(data, segmentation=np.ones(data.frames.shape[:3], np.uint8))

    monkeypatch.setattr(parts_bench.PartsBench, "pictures", pictures)


@pytest.mark.parametrize("contender", CONTENDERS)
def test_every_method_gives_a_figure_for_each_set_and_number_of_shots(contender, tmp_path):
    settings = SETTINGS.get(contender, {"schedule": SCHEDULE})
    config = {**CONFIG, "contender": contender, "shots": [1, 2], "settings": settings}
    figures = few_shot(config, 0, tmp_path / "run")
    sets = {f"{name}_{shots}" for name in parts_bench.TEST_SETS for shots in (1, 2)}
    assert sets <= set(figures) and all(0 <= figures[name] <= 100 for name in sets) and figures["ms_per_frame"] > 0
    assert ("late_light_2" in figures) == (contender == "ecalp")


def test_a_run_gives_the_same_figures_again(tmp_path):
    config = {**CONFIG, "contender": "coop", "shots": [1], "settings": {"schedule": SCHEDULE}}
    first, again = (few_shot(config, 0, tmp_path / "run") for _ in range(2))
    assert all(first[f"{name}_1"] == again[f"{name}_1"] for name in parts_bench.TEST_SETS)


@pytest.mark.parametrize(("contender", "baseline"), [("ilc", {"last": True}), ("csr", {"plain": True}), ("ecalp", {"from_texts": True})])
def test_baselines_are_settings_of_their_family(contender, baseline, tmp_path):
    config = {**CONFIG, "contender": contender, "shots": [2], "settings": {**SETTINGS[contender], **baseline}}
    assert few_shot(config, 0, tmp_path / "run")["clean_2"] >= 0


@pytest.mark.parametrize("prompts", ["zero-shot", "coop", "kgcoop", "dekg"])
def test_new_classes_are_those_that_no_shot_was_of(prompts, tmp_path):
    settings = {} if prompts == "zero-shot" else {"schedule": SCHEDULE}
    config = {**CONFIG, "prompts": prompts, "shots": 2, "template": "a photo of a {}.", "settings": settings}
    figures = base_to_new(config, 0, tmp_path / "run")
    low, high = sorted((figures["base"], figures["new"]))
    assert set(figures) == {"base", "new", "h"} and low - 1e-6 <= figures["h"] <= high + 1e-6


def test_three_ways_of_fine_tuning_begin_from_the_same_classifier(tmp_path):
    figures = robust({**CONFIG, "classes": 4, "settings": ADVERSARY}, 0, tmp_path / "run")
    names = ("accuracy_worst_class", "robust_accuracy", "robust_accuracy_worst_class", "robust_accuracy_worst_two", "norm")
    assert {f"{way}_{name}" for way in ("trades", "uniform", "csr") for name in names} <= set(figures)
    assert figures["gain_robust_accuracy"] == pytest.approx(figures["csr_robust_accuracy"] - figures["trades_robust_accuracy"])


def test_a_crop_is_the_square_around_the_object():
    frame, mask = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3), np.zeros((20, 30), bool)
    mask[8:12, 10:20] = True
    assert np.array_equal(_crop(frame, mask), frame[3:17, 8:22])  # 1.3 times 10 pixels, whole ones outwards
    mask[0:4, 10:20] = True
    assert np.array_equal(_crop(frame, mask), frame[0:14, 7:23])  # cut at the edge
    assert _crop(frame, np.zeros_like(mask)) is frame


def test_crops_are_of_the_labelled_object_and_not_of_those_beside_it():
    data = coloured_parts(each=1, seed=0)
    frames, masks = np.zeros_like(data.frames), np.full(data.frames.shape[:3], 2, np.uint8)
    frames[:, 4:12, 4:12], masks[:, 4:12, 4:12] = 255, 1
    images, labels = _crops(replace(data, frames=frames, segmentation=masks), 8)
    assert images.shape[1:] == (3, 8, 8) and np.array_equal(labels, data.labels)
    assert images[:, :, 2:6, 2:6].min() == 1.0 and images.mean() > 0.3  # of the whole frame it is a ninth


@pytest.mark.parametrize("guard", ["mcm", "gl-mcm", "local-prompt"])
def test_guards_are_judged_on_damaged_and_on_unknown_parts(guard, tmp_path):
    settings = {"n_ctx": 2, "n_neg": 2, "crops": 3, "positives": 2, "schedule": SCHEDULE}
    config = {**CONFIG, "guard": guard, "known": 4, "shots": [1], "damaged": 8, "templates": ["a {}."], "settings": settings}
    figures = guards(config, 0, tmp_path / "run")
    assert {"accuracy_1", "near_auroc_1", "near_fpr95_1", "far_auroc_1", "far_fpr95_1", "ms_per_frame"} <= set(figures)


def test_the_plan_names_methods_that_exist():
    for run in load_plan("recognition", ROOT).runs:
        assert callable(run.load_function()) and run.config.get("contender", "csr") in CONTENDERS
