"""Exploring without a reward, solving a task, learning on: the three commands, and what they say of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robot_bridge.cli import main
from tests.robot_bridge.command_line import Cli

WORLD = "armstack/FourRooms-v0"
SMALL = ("z_dim 4", "hidden 16", "feature 8", "backward_hidden 8", "novelty_features 4", "batch_size 32", "random_steps 50", "n_envs 1")


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    settings = [word for field in SMALL for word in (f"--config.{field.split()[0].replace('_', '-')}", field.split()[1])]
    words = ["pretrain", "dvfb", "--env", WORLD, "--run-dir", str(folder), "--preset", "cpu", "--updates", "30", "--no-pictures"]
    assert main([*words, *settings]) == 0
    return folder / "bundle"


def test_a_task_is_solved_by_a_reward_a_file_and_a_goal_and_learnt_on(explored: Path, tmp_path: Path, cli: Cli) -> None:
    solved = cli("solve", str(explored), "--env", WORLD, "--reward", "near_sw", "--out", str(tmp_path / "sw"), "--json")
    assert solved.status == 0 and json.loads(solved.out.splitlines()[-1])["states"] > 50
    judged = cli("eval", str(tmp_path / "sw"), "--env", WORLD, "--reward", "near_sw", "--episodes", "2", "--json")
    assert judged.status == 0 and json.loads(judged.out.splitlines()[-1])["return_mean"] > 0, judged.err
    rewards = tmp_path / "rewards.py"
    rewards.write_text("def east(observation, action, next_observation):\n    return next_observation[:, 0]\n")
    by_file = cli("solve", str(explored), "--reward", f"{rewards}:east", "--out", str(tmp_path / "east"))
    assert by_file.status == 0 and "runs the code of" in by_file.err and "sha256" in by_file.err
    goal = tmp_path / "goal.json"
    goal.write_text(json.dumps({"channel": "position", "position": [-0.8, -0.8], "radius": 0.3}))
    by_goal = cli("solve", str(explored), "--goal", str(goal), "--out", str(tmp_path / "there"))
    assert by_goal.status == 0, by_goal.err
    tuned = cli(
        "finetune", str(tmp_path / "sw"), "--env", WORLD, "--reward", "near_sw", "--run-dir", str(tmp_path / "tuned"), "--updates", "5",
        "--eval-episodes", "1",
    )  # fmt: skip
    assert tuned.status == 0 and (tmp_path / "tuned/bundle").is_dir(), tuned.err


def test_wrong_calls_say_what_is_valid(explored: Path, tmp_path: Path, cli: Cli) -> None:
    out = ("--out", str(tmp_path / "out"))
    for words, said in (
        (("solve", str(explored), *out), "found none, valid: one of --reward, --goal, --goal-channel"),
        (("solve", str(explored), "--env", WORLD, "--reward", "north", *out), "reward 'north', valid: ne, near_ne"),
        (("solve", str(explored), "--reward", "ne", *out), "give --env"),
        (("solve", str(explored), "--env", "armstack/ExploreReach-v0", "--reward", "left", *out), "valid: the world that was explored"),
        (("solve", str(explored / "gone"), "--env", WORLD, "--reward", "ne", *out), "gone"),
        (("solve", str(explored), "--env", WORLD, "--reward", "ne", "--out", str(explored)), "the pre-trained bundle itself"),
        (("eval", str(explored), "--env", WORLD), "gives no reward of its own, valid: ne, near_ne"),
        (("eval", str(explored), "--env", WORLD, "--reward", "north"), "knows no 'north', valid: ne, near_ne"),
        (("eval", str(explored), "--env", "armstack/Maze-v0", "--reward", "ne"), "has no named rewards"),
        (("eval", str(explored), "--reward", "ne"), "tasks of the arm have their own"),
        (("eval", str(explored), "--task", "goal_pik"), "task 'goal_pik', valid: reach"),
        (("finetune", str(explored), "--env", WORLD, "--run-dir", str(tmp_path / "run")), "gives no reward of its own, valid: ne, near_ne"),
        (("pretrain", "dac", "--env", WORLD, "--run-dir", str(tmp_path / "run")), "armstack train dac; valid here: dvfb, skill_discovery"),
        (("train", "dvfb", "--run-dir", str(tmp_path / "run")), "armstack pretrain dvfb"),
    ):
        run = cli(*words)
        assert run.status == 2 and said in run.err.replace("\n", " "), run.err
    broken = tmp_path / "goal.json"
    broken.write_text("{")
    run = cli("solve", str(explored), "--goal", str(broken), *out)
    assert run.status == 2 and f"{broken}: no JSON" in run.err
    broken.write_text('{"channel": "position", "position": [NaN, 0.0]}')
    run = cli("solve", str(explored), "--goal", str(broken), *out)
    assert run.status == 2 and "finite" in run.err, run.err
    assert not (tmp_path / "out").exists()
