from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from robot_bridge.cli import COMMANDS
from tests.robot_bridge.command_line import Cli

ROOT = Path(__file__).parents[3]
OPTIONS = {
    "aux": ("aux list", "data METHOD", "vlm", "train METHOD", "eval METHOD", "zero-shot", "ecalp", "--json"),
    "demo": ("--dataset", "--out", "--updates", "--ros-episodes", "--json"),
    "collect": ("--out", "--plan.task", "--plan.skills", "--plan.seed", "--processes", "--json"),
    "corpus": ("--out", "--plan.demos", "--plan.images", "--sheet", "--processes", "--json"),
    "retrieve": ("--corpus", "--target", "--k", "--out", "--report", "--index", "--embedding.features", "--stops.threshold", "--json"),
    "find": ("STR PATH", "--bundle", "--index", "--video", "--sheet", "--fps", "--json"),
    "train": ("dac", "bc_best_half", "diffusion_bc", "sac", "--dataset", "--run-dir"),
    "pretrain": ("dvfb", "skill_discovery", "--env", "--run-dir"),
    "solve": ("--out", "--env", "--reward", "--goal", "--goal-channel", "--json"),
    "finetune": ("--env", "--reward", "--run-dir", "--updates", "--resume", "--json"),
    "eval": ("--task", "--episodes", "--ros", "--sim-mode", "--record", "--video", "--data", "--json"),
    "replay": ("--task", "--world", "--episodes", "--video", "--json"),
    "view": ("--out", "--episodes", "--json"),
    "convert": ("IN OUT", "--format", "--allow-loss", "--overwrite", "--json"),
    "merge": ("OUT IN", "--format", "--overwrite", "--json"),
    "split": ("IN OUT_A OUT_B", "--share", "--seed", "--overwrite", "--json"),
    "trim": ("IN OUT", "--idle", "--overwrite", "--json"),
    "resample": ("IN OUT", "--rate-hz", "--numbers", "--overwrite", "--json"),
    "filter": ("IN OUT", "--success", "--min-return", "--min-length", "--uuid", "--overwrite", "--json"),
    "export": ("PATH", "--out", "export_sb3", "--json"),
    "calibrate": ("--arm", "--port", "--out", "--sweep", "--record"),
    "calibrate-camera": ("PATH", "--mount", "--board.square-m", "--live", "--max-mm", "--out", "--json"),
    "safety-report": ("simulated, franka", "--config", "--bundle", "--json"),
    "teleop": ("--arm", "--source", "--out", "--bundle", "keyboard, spacemouse, leader, script"),
    "fault-table": ("--config", "--faults", "--bag", "--namespace", "--json"),
    "launch": ("FILE", "name:=value", "--show-args"),
    "reproduce": ("--tables", "--hours", "--processes", "--json"),
    "bench": ("sim,replay,policy", "--seconds", "--json"),
    "doctor": ("dataset", "bundle", "environment", "--html", "--json"),
}


def test_every_command_is_listed_and_explained(cli: Cli) -> None:
    outcome = cli("--help")
    assert outcome.status == 0 and set(OPTIONS) == set(COMMANDS)
    assert all(f"\n  {name} " in outcome.out and text in outcome.out for name, text in COMMANDS.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_the_options(cli: Cli, command: str) -> None:
    outcome = cli(command, "--help")
    assert outcome.status == 0
    assert [option for option in OPTIONS[command] if option not in outcome.out] == []


def test_help_of_a_method_shows_the_presets_values(cli: Cli) -> None:
    small, large = (cli("train", "dac", "--preset", preset, "--help") for preset in ("demo", "default"))
    assert small.status == large.status == 0
    assert "--config.eta-lr" in small.out and "--resume" in small.out and small.out != large.out


def test_an_unknown_command_lists_the_commands(cli: Cli) -> None:
    outcome = cli("trian")
    assert outcome.status == 2 and "'trian'" in outcome.err
    assert all(name in outcome.err for name in COMMANDS)


def test_an_unknown_option_is_refused_and_the_right_one_suggested(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("train", "bc", "--run-dir", tmp_path, "--config.batchsize", "3")
    assert outcome.status == 2 and "--config.batch-size" in outcome.out + outcome.err


def test_help_loads_neither_torch_nor_simulator() -> None:
    code = (
        "import sys; from robot_bridge.cli import main; main(['--help'])\n"
        "assert not {'torch', 'mujoco', 'rclpy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True)


def test_launch_files_and_their_arguments_are_listed(cli: Cli) -> None:
    outcome = cli("launch", "nosuch")
    assert outcome.status == 2 and "sim_policy" in outcome.err
    outcome = cli("launch", "sim_policy", "--show-args")
    assert outcome.status == 0
    assert all(name in outcome.out for name in ("bundle", "task", "sim_mode", "viewer"))


def test_reproduce_lists_the_methods(cli: Cli) -> None:
    outcome = cli("reproduce", "nosuch")
    assert outcome.status == 2 and "nosuch" in outcome.err
    assert all(plan.stem in outcome.err for plan in (ROOT / "experiments").glob("*.yaml"))
    assert cli("reproduce").status == 2


def test_benchmarks_are_refused_outside_of_the_source_tree(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli("bench", "sim")
    assert outcome.status == 2 and "benchmarks/sim.py" in outcome.err and "source tree" in outcome.err


def test_the_installed_command_finds_the_benchmarks() -> None:
    """They are not installed, and a console script has its own folder on sys.path, not the one it is run in."""
    command = [str(Path(sys.executable).with_name("armstack")), "bench", "filter", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"ours", "peer", "ratio", "peer_name", "setting"} <= json.loads(done.stdout.splitlines()[-1]).keys()


def test_every_command_has_a_module() -> None:
    modules = {file.stem for file in (ROOT / "robot_bridge/commands").glob("*.py")} - {"__init__", "output"}
    assert modules == {command.replace("-", "_") for command in COMMANDS}


@pytest.mark.parametrize("command, presets", [("train dac", "default, cpu, demo"), ("pretrain dvfb", "default, paper, cpu")])
def test_help_names_a_methods_presets(cli: Cli, command: str, presets: str) -> None:
    shown = " ".join(cli(*command.split(), "--help").out.replace("│", " ").split())
    assert f"Named settings: {presets}" in shown
