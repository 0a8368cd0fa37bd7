"""One dataset through every command: train, eval, export, replay, view, doctor."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.dac.export import NumpyDACPolicy
from rl_core.methods import load_policy
from tests.robot_bridge.command_line import TINY_BC, Cli

EVALUATION = {"success_rate", "success_ci95", "return_mean", "return_ci95", "episodes", "seed", "bundle_sha256"}


def test_a_run_folder_has_what_the_help_promises(bc: Path) -> None:
    assert {"config.json", "checkpoints", "metrics.jsonl", "curve.png", "bundle"} <= {file.name for file in bc.iterdir()}
    assert Bundle.load(bc / "bundle").method == "bc"


def test_a_finished_run_is_resumed_to_the_same_figures(cli: Cli, data: Path, bc: Path) -> None:
    outcome = cli("train", "bc", "--dataset", data, "--run-dir", bc, *TINY_BC, "--updates", 5, "--resume", "--json")
    assert outcome.status == 0
    assert outcome.figures["finished"] and outcome.figures["step"] == 5
    assert outcome.figures["bundle"] == str(bc / "bundle")


@pytest.mark.parametrize("method", ["bc", "dac"])
def test_an_evaluation_prints_exactly_the_agreed_keys(cli: Cli, data: Path, method: str, request: pytest.FixtureRequest) -> None:
    bundle = request.getfixturevalue(method) / "bundle"
    outcome = cli("eval", bundle, "--episodes", 2, "--horizon", 4, "--data", data, "--json")
    assert outcome.status == 0 and set(outcome.figures) == EVALUATION
    figures = outcome.figures
    assert figures["episodes"] == 2 and figures["seed"] >= 1_000_000 and figures["success_rate"] == 0.0
    assert figures["bundle_sha256"] == bundle_sha256(bundle)
    low, high = figures["return_ci95"]
    assert low <= figures["return_mean"] <= high
    assert outcome.out.count("\n") == 1, "figures for people go to stderr"
    assert cli("eval", bundle, "--episodes", 2, "--horizon", 4, "--json").figures == figures  # repeatable


def test_the_exported_bundle_acts_as_its_parent(cli: Cli, dac: Path, tmp_path: Path) -> None:
    outcome = cli("export", dac / "bundle", "--out", tmp_path / "deployed", "--json")
    assert outcome.status == 0
    assert outcome.figures["parent_sha256"] == bundle_sha256(dac / "bundle")
    assert outcome.figures["bundle_sha256"] == bundle_sha256(tmp_path / "deployed")
    assert Bundle.load(tmp_path / "deployed").parents == (bundle_sha256(dac / "bundle"),)
    deployed, parent = load_policy(tmp_path / "deployed"), load_policy(dac / "bundle")
    assert isinstance(deployed, NumpyDACPolicy)
    generator = torch.Generator().manual_seed(0)
    obs = TensorDict({c.name: torch.randn(3, c.size, generator=generator) for c in parent.contract.observation}, batch_size=[3])
    ours, theirs = (policy.act(obs, policy.prepare({}), policy.reset([0, 1, 2]))[0].values for policy in (deployed, parent))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert set(cli("eval", tmp_path / "deployed", "--episodes", 1, "--horizon", 2, "--json").figures) == EVALUATION


def test_what_cannot_be_exported_says_what_can(cli: Cli, bc: Path, tmp_path: Path) -> None:
    outcome = cli("export", bc / "bundle", "--out", tmp_path / "out")
    assert outcome.status == 2 and "'bc'" in outcome.err and "valid: dac" in outcome.err and not (tmp_path / "out").exists()
    assert cli("export", tmp_path, "--out", tmp_path / "out").status == 2


def test_a_stable_baselines3_file_is_never_unpickled(cli: Cli, tmp_path: Path) -> None:
    model = tmp_path / "model.zip"
    model.write_bytes(b"PK\x03\x04")
    outcome = cli("export", model, "--out", tmp_path / "out")
    assert outcome.status == 2 and "export_sb3" in outcome.err and "armstack train sac" in outcome.err


def test_replay_of_a_collected_episode_ends_where_it_was_recorded(cli: Cli, data: Path) -> None:
    outcome = cli("replay", data, "--episodes", 0, 2, "--json")
    assert outcome.status == 0
    rows = outcome.figures["episodes"]
    assert [row["episode"] for row in rows] == [0, 2]
    for row in rows:
        assert row["same_start"] and row["steps"] == 12
        assert row["eef_distance_max_m"] < 1e-6  # the recorded float32
        assert row["success"] == row["recorded_success"]


def test_replay_in_another_world_reports_how_far_it_strays(cli: Cli, data: Path) -> None:
    row = cli("replay", data, "--world", "osc_pose", "--json").figures["episodes"][0]
    assert 1e-4 < row["eef_distance_max_m"] < 0.1


def test_view_shows_the_chosen_episodes(cli: Cli, data: Path, tmp_path: Path) -> None:
    page = tmp_path / "episodes.html"
    outcome = cli("view", data, "--out", page, "--episodes", 1, 3, "--json")
    assert outcome.status == 0 and outcome.figures["page"] == str(page) and outcome.figures["episodes"] == 4
    text = page.read_text()
    assert "lift-0-00001-sloppy" in text and "lift-0-00003-expert" in text and "lift-0-00000-expert" not in text
    assert text.count("data:image/") == 2 and "http" not in text.replace("http://www.w3.org", "")


def test_doctor_checks_dataset_bundle_and_environment(cli: Cli, data: Path, bc: Path) -> None:
    dataset = cli("doctor", data, "--json")
    assert dataset.status == 0 and dataset.figures["trainable"] and dataset.figures["figures"]["steps"] == 48
    bundle = cli("doctor", bc / "bundle", "--json")
    assert bundle.status == 0
    found = {finding["subject"]: finding["found"] for finding in bundle.figures["findings"]}
    assert found["sha256"] == bundle_sha256(bc / "bundle") and found["weights"] == "finite"
    environment = cli("doctor", "armstack/Reach-v0", "--json")
    assert environment.status == 0 and "passes" in environment.figures["findings"][0]["found"]


def test_doctor_of_a_bundle_that_cannot_act_is_an_error(cli: Cli, bc: Path, tmp_path: Path) -> None:
    bundle = Bundle.load(bc / "bundle")
    weights = {name: torch.full_like(tensor, math.nan) for name, tensor in bundle.weights.items()}
    dataclasses.replace(bundle, weights=weights, versions={**bundle.versions, "torch": "0.1"}).save(tmp_path / "bundle")
    outcome = cli("doctor", tmp_path / "bundle", "--json")
    levels = {finding["subject"]: finding["level"] for finding in outcome.figures["findings"]}
    assert outcome.status == 1 and levels["weights"] == "error" and levels["torch"] == "warning"


def test_version_conflicts_are_reported_by_doctor(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo 3.10 and numpy 2 cannot live beside robosuite 1.5.2 and this package."""
    real = importlib.metadata.version
    wrong = {"mujoco": "3.10.0", "numpy": "2.1.0"}
    monkeypatch.setattr(importlib.metadata, "version", lambda name: wrong.get(name) or real(name))
    outcome = cli("doctor", "--json")
    assert outcome.status == 1
    errors = {finding["subject"]: finding for finding in outcome.figures["findings"] if finding["level"] == "error"}
    assert errors.keys() == wrong.keys()
    assert errors["mujoco"]["found"] == "3.10.0" and "pip install 'mujoco<3.9,>=3.3'" in errors["mujoco"]["advice"]


def test_this_environment_has_no_version_conflict(cli: Cli) -> None:
    outcome = cli("doctor", "--json")
    findings = outcome.figures["findings"]
    assert [finding for finding in findings if finding["level"] == "error"] == [] and outcome.status == 0
    assert {"python", "mujoco", "mink", "numpy", "GL", "ROS 2"} <= {finding["subject"] for finding in findings}
