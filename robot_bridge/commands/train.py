"""`armstack train METHOD`: from a dataset, or in a world, to a policy bundle."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_core.method_list import METHODS
from rl_core.methods import get_method
from rl_core.training.config import ConfigError
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.method_arguments import method_arguments
from robot_bridge.output_places import check_folder
from robot_bridge.stages import Stages


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """Train a policy; the run folder gets checkpoints, metrics, a learning curve and the bundle.

    An interrupted run (Ctrl-C, SIGTERM) saves a checkpoint; --resume goes on from it, to the bit on a CPU.
    """

    run_dir: Path
    """Folder of the run."""
    dataset: Path | None = None
    """Demonstrations: HDF5 file or folder of episodes. Left out for a method that learns in --world (sac, td3, pear)."""
    updates: int | None = None
    """Gradient steps (world steps for sac and td3); the preset's number if left out."""
    seed: int = 0
    """Seed of weights, noise and batches."""
    device: str = "cpu"
    """Torch device."""
    observe: tuple[str, ...] = ()
    """Observation channels the policy uses, in order; all of the dataset's if left out."""
    world: str = ""
    """World to evaluate in during training (or to learn in), e.g. armstack/Reach-v0 or Pendulum-v1."""
    eval_every: int | None = None
    """Updates between evaluations."""
    eval_episodes: int = 20
    """Episodes of each evaluation."""
    weights: Path | None = None
    """weights.json {episode uuid: weight}: how often each episode is drawn."""
    init_from: Path | None = None
    """Bundle of the same method to start from."""
    resume: bool = False
    """Go on from the newest checkpoint of the run folder, if there is one."""
    json: bool = False
    """Print one JSON object on the last line."""


def _usage() -> str:
    lines = "\n".join(f"  {name:<14}{method.summary}" for name, method in METHODS.items() if method.kind != "reward_free")
    usage = "usage: armstack train METHOD --dataset DATA --run-dir RUN [options]"
    return f"{usage}\n\nmethods:\n{lines}\n\n`armstack train METHOD --help` lists its settings."


def _target_arguments(method: str) -> type[Any] | None:
    """Arguments of a method whose dataset is made when the target task is known; None for the others."""
    if method != "strap":
        return None
    from rl_core.strap.pipeline import TargetTraining

    return TargetTraining


def main(argv: list[str]) -> int:
    """Runs the command line."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(_usage() + "\n")
        return 0 if argv else 2
    method = get_method(argv[0])
    pipeline = _target_arguments(method.name)
    bases = (RunArguments,) if pipeline is None else (pipeline, RunArguments)
    arguments = method_arguments(method, bases, argv[1:], f"armstack train {method.name}")

    check_folder(arguments.run_dir, "--run-dir")
    from rl_core.training.run import train
    from robot_bridge.demonstrations import read_demonstrations

    trainer = {name: value for name in ("updates", "seed", "device", "eval_every") if (value := getattr(arguments, name)) is not None}
    options: dict[str, Any] = {
        "preset": arguments.preset,
        "config": arguments.config,
        "trainer": trainer,
        "channels": arguments.observe,
        "weights": arguments.weights,
        "init_from": arguments.init_from,
        "world": arguments.world,
        "eval_episodes": arguments.eval_episodes,
        "resume": arguments.resume,
    }
    if pipeline is not None and (arguments.target is not None or arguments.corpus):
        if arguments.dataset is not None:
            raise ConfigError("--dataset and --target: both given, valid: a dataset, or a target with a corpus")
        chosen = pipeline(**{field.name: getattr(arguments, field.name) for field in dataclasses.fields(pipeline)})
        trainer.setdefault("updates", method.default_updates(arguments.preset))
        with Stages() as progress:
            result = chosen.train(arguments.run_dir, progress=progress, **options)
    else:
        data = None if arguments.dataset is None else read_demonstrations(arguments.dataset)
        result = train(method.name, data, arguments.run_dir, **options)
    figures = dataclasses.asdict(result)
    figures_table(f"trained {method.name}", figures)
    if result.bundle is None:
        console.print(
            f"stopped; {arguments.run_dir} keeps what was done: the same command with --resume goes on, and writes the bundle at its end"
        )
    else:
        console.print(f"bundle: {result.bundle}")
        from robot_bridge.curriculum_picture import draw_curriculum

        if (picture := draw_curriculum(arguments.run_dir)) is not None:
            console.print(f"curriculum: {picture}")
    if arguments.json:
        emit_json(json.loads(json.dumps(figures, default=str)))
    return result.exit_code
