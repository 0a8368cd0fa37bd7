"""The runs behind the docs' tables, in miniature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rl_core.experiments.plan import load_plan
from robot_bridge.auxiliary.monitoring.manifold import experiments, scoring
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import real_frames

ROOT = Path(__file__).parents[5]
TINY: dict[str, Any] = {
    "pictures": {"images": 1, "size": 16, "seed": 0},
    "detector": {"samples": 6, "sampling_steps": 3, "noises": 2, "held_out": 0.5,
                 "ddpm": {"side": 8, "width": 8, "levels": 100, "updates": 2, "batch_size": 8}},
    "vae": {"side": 8, "width": 8, "latent": 4, "updates": 2, "batch_size": 8},
    "ddpm": {"side": 8, "width": 8, "updates": 2, "batch_size": 8},
    "test": 8,
    "labels": 12,
}  # fmt: skip


def colours(crops: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(crops.astype(np.float32).mean(axis=(1, 2)))


def test_a_run_has_every_figure_of_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "_pictures", lambda pictures, folder: real_frames(objects=16))
    for module in (experiments, scoring):
        monkeypatch.setattr(module, "frozen_features", lambda: colours)
    figures = experiments.authenticity(TINY, 3, tmp_path / "run")
    plan = load_plan("manifold", ROOT)
    wanted = {column for table in plan.tables.values() for column in table.columns}
    assert wanted <= set(figures) and all(np.isfinite(value) for value in figures.values())
    assert all(0 <= figures[name] <= 100 for name in wanted if name not in ("alpha", "ms_per_frame", "train_s", "verdict_correlation"))
    assert figures["vae_best_term"] >= max(figures["vae_kappa"], figures["vae_gradient"], figures["vae_bias"], 50)
    again = experiments.authenticity(TINY, 3, tmp_path / "again")
    times = {"ms_per_frame", "train_s"}
    assert {k: v for k, v in again.items() if k not in times} == {k: v for k, v in figures.items() if k not in times}


def test_the_tones_of_generated_frames_are_those_of_real_ones() -> None:
    """Otherwise contrast alone would tell them apart."""
    data, rng = real_frames(objects=60, each=2), np.random.default_rng(0)
    crops = data.frames
    made = experiments.as_crops(torch.randn(len(crops), 768), crops[rng.integers(len(crops), size=len(crops))])
    of_made, of_real = (scoring.image_score("contrast", each).numpy() for each in (made, crops))
    assert experiments.auroc(of_made, of_real) == pytest.approx(0.5, abs=0.07)


def test_settings_of_the_plan_are_valid() -> None:
    for run in load_plan("manifold", ROOT).runs:
        settings = experiments.ManifoldConfig().override(**run.config["detector"])
        experiments.DDPMConfig().override(**run.config["ddpm"]), experiments.VAEConfig().override(**run.config["vae"])
        assert (
            settings.alpha is None
            and settings.weights.c == (run.group == "kappa - D + bias")
            and settings.noises >= 16
            and run.seed >= 5000
        )
