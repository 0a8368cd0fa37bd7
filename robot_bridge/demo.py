"""The demo's steps: demonstrations, two policies on the same data, evaluation, ROS 2 graph, report."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rl_core.bundle import bundle_sha256
from rl_core.contract import ContractMismatch, RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.errors import ArmstackError
from rl_core.training.parent_watch import with_parent
from robot_bridge.collection import CollectionPlan, make_world

PLAN = CollectionPlan(task="lift", episodes=150, horizon=200, seed=0)
"""The frozen mix: 1/3 expert, 1/3 sloppy, 1/3 failing."""

METHODS = ("bc", "dac")
UPDATES = 20_000

POLICY_CHANNELS = ("joint_pos", "eef_pos", "eef_quat", "gripper_pos", "cube_pos", "cube_quat", "gripper_to_cube_pos")
"""What the demo's policies see of the Lift world."""


class DemoStepFailed(ArmstackError):
    """A step's process failed; the message ends with its last lines."""


def _child_environment() -> dict[str, str]:
    # Without these glibc gives every large tensor's memory back to the system and asks for it again: a fifth of an update's time.
    allocator = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(1 << 28)}
    return with_parent({**allocator, **os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"})


def start_command(arguments: Sequence[str], log: Path) -> subprocess.Popen[str]:
    """Starts `armstack ARGUMENTS` with its output in `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "robot_bridge.cli", *arguments],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=_child_environment(),
            text=True,
        )


def finish_command(process: subprocess.Popen[str], name: str, log: Path) -> dict[str, Any]:
    """Waits; gives the JSON object of the log's last line.

    Raises:
        DemoStepFailed: the command failed, with the end of its output.
    """
    status = process.wait()
    lines = log.read_text().strip().splitlines()
    if status != 0:
        raise DemoStepFailed(f"{name} ended with status {status}; the end of {log}:\n" + "\n".join(lines[-15:]))
    return json.loads(lines[-1])


@contextmanager
def _side_by_side(commands: Mapping[str, Sequence[str]], folder: Path, what: str) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Runs each command in a process of its own; all are ended when the block is left early."""
    processes = {name: start_command(command, folder / f"{what}_{name}.log") for name, command in commands.items()}
    try:
        yield processes
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.terminate()
                process.wait()


def train_side_by_side(methods: Sequence[str], data: Path, folder: Path, updates: int, seed: int, console: Console) -> None:
    """Trains each method in a process of its own; one bar each, fed from the runs' metrics."""
    options = ["--dataset", str(data), "--preset", "demo", "--updates", str(updates), "--seed", str(seed), "--resume", "--json"]
    options += ["--observe", *POLICY_CHANNELS]
    commands = {method: ["train", method, "--run-dir", str(folder / method), *options] for method in methods}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("updates"), TimeRemainingColumn())
    with _side_by_side(commands, folder, "train") as processes, Progress(*columns, console=console) as bar:
        tasks = {method: bar.add_task(f"training {method}", total=updates) for method in methods}
        waiting = dict(processes)
        while waiting:
            for method, process in list(waiting.items()):
                bar.update(tasks[method], completed=_last_step(folder / method / "metrics.jsonl"))
                try:
                    process.wait(timeout=0.5)
                except subprocess.TimeoutExpired:
                    continue
                finish_command(process, f"training {method}", folder / f"train_{method}.log")
                bar.update(tasks[method], completed=updates)
                del waiting[method]


def _last_step(metrics: Path) -> int:
    if not metrics.is_file():
        return 0
    tail = metrics.read_bytes()[-2000:].splitlines()
    for line in reversed(tail):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue  # a line that is being written
    return 0


def evaluate_side_by_side(methods: Sequence[str], folder: Path, options: Sequence[str], console: Console) -> dict[str, dict[str, Any]]:
    """Judges each method's bundle in a process of its own on the same seeds; gives the figures of `armstack eval`."""
    commands = {method: ["eval", str(folder / method / "bundle"), *options, "--json"] for method in methods}
    with _side_by_side(commands, folder, "eval") as processes, console.status(f"judging {', '.join(methods)}"):
        return {name: finish_command(process, f"evaluating {name}", folder / f"eval_{name}.log") for name, process in processes.items()}


def run_over_ros(folder: Path, options: Sequence[str], recording: Path, console: Console) -> dict[str, Any]:
    """Runs the DAC bundle over the ROS 2 graph and records it; gives the figures of `armstack eval --ros`."""
    command = ["eval", str(folder / "dac" / "bundle"), "--ros", "--record", str(recording), *options, "--json"]
    with _side_by_side({"ros": command}, folder, "eval") as processes, console.status("episodes over ROS 2"):
        return finish_command(processes["ros"], "the episodes over ROS 2", folder / "eval_ros.log")


def draw_video(bag: Path, file: Path, task: str) -> tuple[Path | None, str]:
    """The recorded episodes as MP4; None and the reason where nothing draws here."""
    from robot_bridge.bag_video import write_bag_video
    from sim_envs.arm.rendering import RenderingUnavailable

    try:
        return write_bag_video(bag, task, file), ""
    except RenderingUnavailable as error:
        return None, str(error)


def deadline_sentence(figures: Mapping[str, Any]) -> str:
    """What the report says about the policy node's deadlines."""
    missed, periods = figures["deadline_misses"], figures["policy_periods"]
    return f"{missed} of {periods} policy periods began late by a whole period ({figures['sim_mode']})."


def check_ros() -> None:
    """Checks that the last step will find ROS 2, before the first one begins.

    Raises:
        ArmstackError: rclpy cannot be imported.
    """
    try:
        importlib.import_module("rclpy")
    except ImportError as error:
        raise ArmstackError(
            f"the demo drives the arm over ROS 2, but rclpy cannot be imported ({error}): pip install 'armstack[ros]', or source a ROS 2 "
            "installation"
        ) from error


def check_plan(plan: CollectionPlan) -> None:
    """Checks that the plan's task offers what the demo's policies see.

    Raises:
        ArmstackError: it does not, or there is no such task.
    """
    missing = sorted(set(POLICY_CHANNELS) - {channel.name for channel in _offered(plan).observation})
    if missing:
        raise ArmstackError(f"plan.task {plan.task!r}: has no {', '.join(missing)}, which the demo's policies see; valid: {PLAN.task}")


def _offered(plan: CollectionPlan) -> RobotContract:
    env = make_world(plan.task, "filtered", plan.horizon)
    env.close()
    return env.get_wrapper_attr("contract")


def bundle_hashes(methods: Sequence[str], folder: Path) -> dict[str, str]:
    """sha256 of each method's bundle that is there."""
    bundles = {method: folder / method / "bundle" for method in methods}
    return {method: bundle_sha256(bundle) for method, bundle in bundles.items() if bundle.is_dir()}


def check_dataset_fits(dataset: Dataset, plan: CollectionPlan) -> None:
    """Checks that a user's dataset can be trained on and deployed in the demo's task.

    Raises:
        DatasetError: lists everything that is missing.
    """
    offered, missing = _offered(plan), []
    there = {channel.name for channel in dataset.contract.observation}
    missing += [f"observation {name!r}" for name in POLICY_CHANNELS if name not in there]
    try:
        dataset.contract.select(name for name in POLICY_CHANNELS if name in there).accepts(offered)
    except ContractMismatch as mismatch:
        missing += [difference.replace("needs", "found").replace("offered", "valid") for difference in mismatch.differences]
    if not any(any(episode.rewards != 0) for episode in dataset.episodes):
        missing.append("rewards that are not all zero (DAC learns from them)")
    if missing:
        raise DatasetError(f"{dataset.source}: does not map to the {plan.task!r} task; missing:\n  - " + "\n  - ".join(missing))
