"""What people see: text as it was meant, and figures that can be read."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from rl_core.data.formats.bag import next_folder
from rl_core.training.evaluation import EpisodeFigures
from robot_bridge import ros_evaluation
from robot_bridge.commands.output import console, figures_table
from robot_bridge.diagnosis import check_ros
from robot_bridge.ros_evaluation import RosEvaluationResult
from tests.robot_bridge.command_line import Cli


def test_advice_in_square_brackets_is_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "rclpy" else find(name, *rest))
    monkeypatch.setattr(console, "width", 200)
    assert "pip install 'armstack[ros]'" in cli("doctor").err


@pytest.mark.parametrize("domain", ["233", "-1", "one", "1.5"])
def test_a_domain_that_is_none_is_an_error(cli: Cli, monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", domain)
    finding = check_ros()
    assert finding.level == "error" and f"ROS_DOMAIN_ID={domain}, valid: 0..232" in finding.found


@pytest.mark.parametrize(("domain", "shown"), [("0", "0"), ("232", "232"), ("", "0")])
def test_a_valid_domain_is_shown(monkeypatch: pytest.MonkeyPatch, domain: str, shown: str) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", domain)
    finding = check_ros()
    assert finding.level == "ok" and f"domain {shown}," in finding.found


def test_figures_in_mappings_have_rows_of_their_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 120)
    latency = {"inference": {"p50": 1.23456, "p95": 2.0}, "decode": {"p50": 0.5, "p95": 1.0}}
    figures_table("run [/tmp/x]", {"latency_ms": latency, "metrics": {"eval/return_mean": 1.0 / 3.0}, "success_ci95": [0.25, 0.75]})
    lines = [" ".join(line.strip("│ ").replace("│", "").split()) for line in capsys.readouterr().err.splitlines()]
    assert "run [/tmp/x]" in lines
    assert "latency_ms inference p50 1.235, p95 2" in lines and "latency_ms decode p50 0.5, p95 1" in lines
    assert "metrics eval/return_mean 0.3333" in lines and "success_ci95 0.25, 0.75" in lines


def test_a_second_recording_keeps_the_first_ones_figures(cli: Cli, bc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder takes the next free name for its bag; the episodes' figures lie beside the bag they belong to."""

    def over_ros(bundle: Path, task: str, seeds: list[int], *, record: Path, **_: object) -> RosEvaluationResult:
        next_folder(record / "bag").mkdir(parents=True)
        rows = [EpisodeFigures(seed=seed, episode_return=1.0, length=1, success=True) for seed in seeds]
        result = RosEvaluationResult.from_rows(rows)
        assert isinstance(result, RosEvaluationResult)
        return result

    monkeypatch.setattr(ros_evaluation, "evaluate_over_ros", over_ros)
    monkeypatch.setattr(console, "width", 300)
    for number, (bag, rows) in enumerate((("bag", "episodes.json"), ("bag_1", "episodes_1.json")), start=1):
        outcome = cli("eval", bc / "bundle", "--ros", "--record", tmp_path, "--episodes", number, "--json")
        assert outcome.figures["bag"] == str(tmp_path / bag) and outcome.figures["episodes_file"] == str(tmp_path / rows)
        assert str(tmp_path / bag) in outcome.err
    assert [len(json.loads((tmp_path / name).read_text())) for name in ("episodes.json", "episodes_1.json")] == [1, 2]
