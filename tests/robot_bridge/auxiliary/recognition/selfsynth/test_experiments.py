"""The runs of experiments/selfsynth.yaml, on pictures and networks that take no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_core.experiments import load_plan
from rl_core.experiments.runner import ROOT
from robot_bridge.auxiliary.lmm import small
from robot_bridge.auxiliary.recognition.selfsynth import experiments
from robot_bridge.auxiliary.recognition.selfsynth.config import SelfSynthConfig
from tests.robot_bridge.auxiliary.recognition.selfsynth.drawn_like import drawn_parts, small_sizes, tiny_settings
from tests.robot_bridge.auxiliary.recognition.selfsynth.stand_ins import WordCounts
from tests.robot_bridge.auxiliary.tiny_vlm import tiny_vlm


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict:
    monkeypatch.setattr(small, "DecoderSizes", small_sizes)
    monkeypatch.setattr(experiments, "vlm_at", lambda folder: tiny_vlm())
    monkeypatch.setattr(experiments, "sentence_vectors", WordCounts)
    seeds = {"described": 1, "pool": 2, "test": 3}
    monkeypatch.setattr(experiments.Bench, "_pictures", lambda self, folder, kind, images, size: drawn_parts(images, seeds[kind]))
    settings = tiny_settings(tmp_path).to_dict()
    settings.pop("vlm")
    return {"vlm": "tiny", "size": 24, "images": {"described": 10, "pool": 6, "test": 4}, "shots": 4, "settings": settings}


def test_all_rounds_are_judged(config: dict, tmp_path: Path) -> None:
    figures = experiments.self_taught(config, 0, tmp_path / "runs" / "one")
    rates = {f"{name}_{stage}" for name in ("accuracy", "citing_two", "cited_precision") for stage in ("base", 1, 2)}
    rates |= {"accepted_1", "accepted_2", "z_precision", "z_random"}
    assert rates <= set(figures) and all(0 <= figures[name] <= 100 for name in rates) and figures["z_count"] >= 3
    again = experiments.labels_alone(config, 0, tmp_path / "runs" / "two")
    assert again["accuracy_base"] == figures["accuracy_base"] and {"accuracy_best_of_n", "accuracy_1", "citing_two_1"} <= set(again)
    assert len(list((tmp_path / "runs" / "data").glob("base-*"))) == 1  # made once for both


def test_the_plans_settings_can_be_meant() -> None:
    plan = load_plan("selfsynth", ROOT)
    assert {run.group for run in plan.runs} >= {"SelfSynthX", "random concepts", "every answer accepted", "labels alone"}
    for run in plan.runs:
        run.load_function()
        SelfSynthConfig().override(**run.config.get("settings", {}))
