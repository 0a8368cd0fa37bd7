"""`armstack finetune BUNDLE`: a solved task's policy goes on learning from the task's rewards (dual-value fine-tuning)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.output_places import check_folder


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Fine-tune a solved bundle with the rewards of a world; the run folder gets checkpoints, metrics, a learning curve and the bundle.

    Example: armstack finetune runs/rooms/ne --env armstack/FourRooms-v0 --reward ne --run-dir runs/rooms/tuned
    """

    bundle: Annotated[Path, tyro.conf.Positional]
    """Folder of a bundle that `armstack solve` wrote."""
    env: str
    """World that gives the rewards."""
    run_dir: Path
    """Folder of the run."""
    reward: str = ""
    """Named reward of the world; left out where the world has rewards of its own."""
    preset: str = "default"
    """Named settings of the fine-tuning."""
    updates: int | None = None
    """Gradient steps; the preset's number if left out."""
    seed: int = 0
    """Seed of weights, noise and batches."""
    eval_every: int | None = None
    """Updates between evaluations."""
    eval_episodes: int = 20
    """Episodes of each evaluation."""
    resume: bool = False
    """Go on from the newest checkpoint of the run folder, if there is one."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack finetune")
    check_folder(arguments.run_dir, "--run-dir")
    from rl_core.dvfb.finetuning import finetune
    from robot_bridge.reward_free_world import reward_kwargs

    trainer: dict[str, Any] = {name: value for name in ("updates", "seed", "eval_every") if (value := getattr(arguments, name)) is not None}
    result = finetune(
        arguments.bundle,
        arguments.env,
        arguments.run_dir,
        preset=arguments.preset,
        trainer=trainer,
        world_kwargs=reward_kwargs(arguments.env, arguments.reward),
        eval_episodes=arguments.eval_episodes,
        resume=arguments.resume,
    )
    figures = dataclasses.asdict(result)
    figures_table("fine-tuned", figures)
    if result.bundle is None:
        console.print(f"stopped; {arguments.run_dir} keeps what was done: the same command with --resume goes on")
    else:
        console.print(f"bundle: {result.bundle}")
    if arguments.json:
        emit_json(json.loads(json.dumps(figures, default=str)))
    return result.exit_code
