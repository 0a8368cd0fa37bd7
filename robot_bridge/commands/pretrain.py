"""`armstack pretrain METHOD`: explores a world without a reward; tasks are solved afterwards (`solve`, `finetune`)."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from rl_core.errors import ArmstackError
from rl_core.method_list import METHODS
from rl_core.methods import get_method
from rl_core.training.config import ConfigError
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.method_arguments import method_arguments
from robot_bridge.output_places import check_folder


@dataclass(frozen=True, kw_only=True)
class PretrainArguments:
    """Explore a world without any reward; the run folder gets checkpoints, metrics and the bundle, which carries states for later tasks.

    An interrupted run (Ctrl-C, SIGTERM) saves a checkpoint; --resume goes on from it, to the bit on a CPU.
    """

    run_dir: Path
    """Folder of the run."""
    env: str
    """World, e.g. armstack/FourRooms-v0, armstack/ExploreReach-v0 or armstack/ExploreWalker-v0."""
    updates: int | None = None
    """Gradient steps; the preset's number if left out."""
    seed: int = 0
    """Seed of weights, noise and exploration."""
    device: str = "cpu"
    """Torch device."""
    rewards: tuple[str, ...] = ()
    """Named rewards of the world that are solved zero-shot at each evaluation, to watch; training never sees them."""
    eval_every: int | None = None
    """Updates between evaluations."""
    eval_episodes: int = 5
    """Episodes of each evaluation and reward."""
    resume: bool = False
    """Go on from the newest checkpoint of the run folder, if there is one."""
    pictures: bool = True
    """At the end draw coverage.png, calibration.png (predicted against measured values of skills) and skills.mp4 into the run folder."""
    json: bool = False
    """Print one JSON object on the last line."""


def _usage() -> str:
    lines = "\n".join(f"  {name:<18}{method.summary}" for name, method in METHODS.items() if method.kind == "reward_free")
    usage = "usage: armstack pretrain METHOD --env WORLD --run-dir RUN [options]"
    return f"{usage}\n\nmethods:\n{lines}\n\n`armstack pretrain METHOD --help` lists its settings."


def main(argv: list[str]) -> int:
    """Runs the command line."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(_usage() + "\n")
        return 0 if argv else 2
    method = get_method(argv[0])
    if method.kind != "reward_free":
        valid = ", ".join(name for name, entry in METHODS.items() if entry.kind == "reward_free")
        raise ConfigError(f"method {method.name!r} learns a task: armstack train {method.name}; valid here: {valid}")
    arguments = method_arguments(method, (PretrainArguments,), argv[1:], f"armstack pretrain {method.name}")
    check_folder(arguments.run_dir, "--run-dir")
    from rl_core.dvfb.pretraining import pretrain

    trainer = {name: value for name in ("updates", "seed", "device", "eval_every") if (value := getattr(arguments, name)) is not None}
    result = pretrain(
        method.name,
        arguments.env,
        arguments.run_dir,
        preset=arguments.preset,
        config=arguments.config,
        trainer=trainer,
        rewards=arguments.rewards,
        eval_episodes=arguments.eval_episodes,
        resume=arguments.resume,
    )
    figures = dataclasses.asdict(result)
    figures_table(f"pre-trained {method.name}", figures)
    if result.bundle is None:
        console.print(f"stopped; {arguments.run_dir} keeps what was done: the same command with --resume goes on")
    else:
        if arguments.pictures:
            _draw(arguments.run_dir, arguments.env)
        console.print(f"bundle: {result.bundle}; a task: armstack solve {result.bundle} --env {arguments.env} --reward NAME --out FOLDER")
    if arguments.json:
        emit_json(json.loads(json.dumps(figures, default=str)))
    return result.exit_code


def _draw(run_dir: Path, env: str) -> None:
    """Pictures of what is trained already: one that cannot be drawn is no failure of the run."""
    from robot_bridge.exploration_pictures import draw_exploration

    try:
        with console.status("drawing"):
            files = draw_exploration(run_dir, env)
        console.print(f"pictures: {', '.join(map(str, files))}")
    except ArmstackError as error:
        console.print(f"pictures: {error}")
