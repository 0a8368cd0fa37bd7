"""`armstack demo`: from demonstrations to a policy that drives the arm over ROS 2, and a report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rl_core.data.fingerprint import fingerprint
from rl_core.data.recording import finished_episodes
from rl_core.errors import ArmstackError
from robot_bridge import demo
from robot_bridge.collection import CollectionPlan, collect
from robot_bridge.commands.output import console, emit_json
from robot_bridge.demo_steps import Steps, check_settings, claim
from robot_bridge.demonstrations import read_collected, read_demonstrations
from robot_bridge.output_places import check_folder


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Collect demonstrations (or take yours), train BC and DAC on them, judge both, run DAC over ROS 2, write a report.

    Everything lands in one folder; an interrupted demo goes on where it stopped, and of a finished one only the report is written anew.
    """

    dataset: Path | None = None
    """Your demonstrations in robomimic HDF5 layout, instead of the scripted ones."""
    out: Path = Path("runs/demo")
    """Folder of the demo."""
    plan: CollectionPlan = demo.PLAN
    """The demonstrations that are collected."""
    updates: int = demo.UPDATES
    """Gradient steps of each policy."""
    episodes: int = 50
    """Evaluation episodes of each policy, in-process."""
    ros_episodes: int = 10
    """Episodes over ROS 2."""
    seed: int = 0
    """Seed of the training."""
    json: bool = False
    """Print one JSON object on the last line."""


def _settings(arguments: Arguments) -> dict[str, Any]:
    """What makes a demo another one."""
    numbers = {name: getattr(arguments, name) for name in ("updates", "episodes", "ros_episodes", "seed")}
    return {"dataset": None if arguments.dataset is None else str(arguments.dataset.resolve()), **numbers, "plan": asdict(arguments.plan)}


def _check(arguments: Arguments) -> None:
    """Says now what would stop a later step."""
    check_folder(arguments.out, "--out")
    for name, least, most in (("updates", 1, None), ("episodes", 1, 10_000), ("ros_episodes", 1, 10_000), ("seed", 0, None)):
        value = getattr(arguments, name)
        if value < least or (most is not None and value > most):
            valid = f"{least} or more" if most is None else f"{least}..{most}"
            raise ArmstackError(f"--{name.replace('_', '-')}: {value}, valid: {valid}")
    check_settings(arguments.out, _settings(arguments))
    demo.check_ros()
    demo.check_plan(arguments.plan)
    if arguments.dataset is not None:
        demo.check_dataset_fits(read_demonstrations(arguments.dataset), arguments.plan)


def _collect(arguments: Arguments, data: Path) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("episodes"), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("collecting", total=arguments.plan.episodes)
        collect(arguments.plan, data, progress=lambda n: bar.advance(task, n))


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack demo")
    _check(arguments)
    from robot_bridge.demo_report import NAMES, write_report

    folder = arguments.out
    claim(folder, _settings(arguments))
    steps = Steps(folder)
    console.rule("1. demonstrations")
    if arguments.dataset is not None:
        data = arguments.dataset
        dataset = read_demonstrations(data)
    else:
        data = folder / "data"
        steps.run("collect", lambda: _collect(arguments, data), lambda: {"episodes": len(finished_episodes(data))})
        dataset = read_collected(data)
    console.print(f"{len(dataset)} episodes, {dataset.steps} steps")

    console.rule("2. BC and DAC on the same data")
    trained_on = fingerprint(dataset)
    steps.run(
        "train BC and DAC",
        lambda: demo.train_side_by_side(demo.METHODS, data, folder, arguments.updates, arguments.seed, console),
        lambda: {"data": trained_on, "bundles": demo.bundle_hashes(demo.METHODS, folder)},
    )

    console.rule("3. evaluation")
    common = ["--task", arguments.plan.task, "--horizon", str(arguments.plan.horizon), "--data", str(data)]
    options = ["--episodes", str(arguments.episodes), *common]
    judged = steps.run(
        "evaluate",
        lambda: demo.evaluate_side_by_side(demo.METHODS, folder, options, console),
        lambda: {"options": options, "bundles": demo.bundle_hashes(demo.METHODS, folder)},
    )
    results = [{"policy": NAMES[method], "world": "in-process", **judged[method]} for method in demo.METHODS]

    console.rule("4. DAC over ROS 2")
    recording = folder / "recording"
    ros_options = ["--episodes", str(arguments.ros_episodes), *common]
    over_ros = steps.run(
        "ROS 2 episodes",
        lambda: demo.run_over_ros(folder, ros_options, recording, console),
        lambda: {
            "options": ros_options,
            "bundles": demo.bundle_hashes(["dac"], folder),
            "bags": sorted(bag.name for bag in recording.glob("bag*")),
        },
    )
    results.append({"policy": NAMES["dac"], "world": "over ROS 2", **over_ros})

    video, no_video = steps.run("report", lambda: demo.draw_video(Path(over_ros["bag"]), folder / "lift.mp4", arguments.plan.task))
    page = write_report(
        folder,
        task=arguments.plan.task,
        dataset=dataset,
        results=results,
        methods=demo.METHODS,
        latency=over_ros["latency_ms"],
        deadline=demo.deadline_sentence(over_ros),
        video=video,
        no_video=no_video,
        budget=steps.rows(),
        bundle=folder / "dac" / "bundle",
        recording=over_ros["bag"],
    )
    table = Table("policy", "world", "success", "95 % interval", "mean return", title=f"{arguments.plan.task}, same demonstrations")
    for row in results:
        low, high = row["success_ci95"]
        interval = f"{100 * low:.0f} - {100 * high:.0f} %"
        table.add_row(row["policy"], row["world"], f"{100 * row['success_rate']:.0f} %", interval, f"{row['return_mean']:.1f}")
    console.print(table)
    budget = Table("step", "budget [s]", "took [s]", "", title="where the time went")
    for row in steps.rows():
        budget.add_row(row["step"], str(row["budget"]), f"{row['seconds']:.0f}", "in an earlier run" if row["reused"] else "")
    console.print(budget)
    console.print(f"report: {page}")
    figures = {"report": str(page), "results": results, "budget": steps.rows()}
    (folder / "figures.json").write_text(json.dumps(figures, indent=1, default=float))
    if arguments.json:
        emit_json(figures)
    return 0
