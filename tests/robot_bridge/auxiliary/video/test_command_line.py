"""From nothing to an answer on the command line: data, training, judging, finding."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from robot_bridge.auxiliary.video import tempme
from robot_bridge.auxiliary.vlm.small import SmallVLM, SmallVLMConfig
from robot_bridge.auxiliary.vlm.words import WordTokenizer
from sim_envs.clips.behaviours import every_word
from tests.robot_bridge.auxiliary.tiny_vlm import AverageColours
from tests.robot_bridge.command_line import Cli
from tests.robot_bridge.conftest import cli

__all__ = ["cli"]


pytestmark = pytest.mark.usefixtures("graphics")


def speaking_model(folder: str) -> SmallVLM:
    """A tiny one with the words of the drawn clips."""
    torch.manual_seed(0)
    sizes = SmallVLMConfig(width=24, blocks=2, heads=2, text_width=32, text_blocks=1, text_heads=2, embed_dim=16)
    model = SmallVLM(sizes, WordTokenizer.from_texts(every_word(), 40).vocabulary, AverageColours())
    model.freeze()
    return model


def test_data_train_eval(cli: Cli, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempme, "vlm_at", speaking_model)
    made = cli("aux", "data", "tempme", "--out", tmp_path / "clips", "--clips", 8, "--frames", 2, "--size", 32, "--json")
    assert made.status == 0 and made.figures["clips/drawn"] == 8, made.err
    (tmp_path / "vlm").mkdir()
    schedule = ("--config.schedule.clip-blocks", 1, "--config.schedule.groups", 2)
    options = ("--config.vlm", tmp_path / "vlm", "--config.frames", 2, "--config.epochs", 1, "--config.batch", 4, *schedule)
    trained = cli("aux", "train", "tempme", "--data", tmp_path / "clips", "--run-dir", tmp_path / "run", *options, "--json")
    assert trained.status == 0 and trained.figures["trained"] > 0, trained.err
    judged = cli("aux", "eval", "tempme", "--bundle", tmp_path / "run" / "bundle", "--data", tmp_path / "clips", "--json")
    assert judged.status == 0 and 0 <= judged.figures["r1"] <= judged.figures["r5"] <= 1, judged.err

    longer = cli("aux", "train", "tempme", "--data", tmp_path / "clips", "--run-dir", tmp_path / "run", *options[:2], "--config.frames", 1)
    assert longer.status == 2 and "valid: --config.frames of so many, or clips of at most 1" in longer.err
    without = cli("aux", "train", "tempme", "--run-dir", tmp_path / "run", *options)
    assert without.status == 2 and "--data is missing: tempme learns from data" in without.err
