"""The runs behind the results, with tiny budgets."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rl_core.experiments import load_plan
from robot_bridge.auxiliary.video import experiments
from robot_bridge.auxiliary.video.bench import ClipBench

CONFIG = {
    "clips": {"train": 8, "test": 8},
    "stills": 8,
    "frames": 4,
    "size": 32,
    "model": {"width": 24, "blocks": 2, "heads": 2, "text_width": 32, "text_blocks": 1, "text_heads": 2, "embed_dim": 16},
    "training": {"epochs": 1, "batch": 4},
    "schedule": {"per_frame": 2, "clip_blocks": [1], "groups": [4]},
    "settings": {"epochs": 1, "batch": 4, "lr": 1e-3, "rank": 2},
}
ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def folder(graphics: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def test_every_contender_gives_finite_figures(folder: Path, tiny: None) -> None:
    found = {}
    for name in experiments.CONTENDERS:
        found[name] = experiments.search({**CONFIG, "contender": name}, 100, folder / name)
        assert all(math.isfinite(value) for value in found[name].values())
        assert 0 <= found[name]["r1"] <= found[name]["r5"] <= 100 and 0 <= found[name]["twins"] <= 100
    shares = {name: figures["multiply_adds_share"] for name, figures in found.items()}
    assert shares["lora"] == 1.0 and shares["tempme"] < 1.0
    assert shares["tome"] >= shares["tempme"] and shares["dropped"] >= shares["tempme"]
    again = experiments.search({**CONFIG, "contender": "tempme"}, 100, folder / "again")
    assert {k: v for k, v in again.items() if k != "train_s"} == {k: v for k, v in found["tempme"].items() if k != "train_s"}


def test_costs_are_measured_side_by_side(folder: Path, tiny: None) -> None:
    found = experiments.costs(CONFIG, 100, folder / "costs")
    assert {f"ms_{name}" for name in experiments.CONTENDERS} <= set(found) and found["ms_share_lora"] == 1.0
    assert 0 < found["query_ms"] <= found["query_ms_max"]


def test_the_plan_names_functions_that_are_there_and_seeds_apart() -> None:
    plan = load_plan("tempme", ROOT)
    assert {run.load_function() for run in plan.runs} == {experiments.search, experiments.costs}
    for run in plan.runs:
        bench = ClipBench(dict(run.config), Path("unused"))
        assert bench.schedule.multiple == 12 and len(set(bench._seeds.values())) == 3
