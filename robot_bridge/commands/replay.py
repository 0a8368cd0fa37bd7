"""`armstack replay DATASET`: a dataset's actions again, open loop, through decoding, IK and the command filter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.progress import track

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.training_data import require_trainable
from robot_bridge.collection import World, make_world
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.demonstrations import read_demonstrations
from robot_bridge.output_places import check_file
from sim_envs.arm.tasks import TASKS


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Play episodes of a dataset open loop and report how far the arm ends from where it was recorded.

    An episode starts from its recorded seed, where the dataset has one; actions beyond [-1, 1] are counted, never silently clipped.
    """

    dataset: Annotated[Path, tyro.conf.Positional]
    """HDF5 file or folder of episodes."""
    task: str = "lift"
    """Task of the native arm."""
    world: World = "filtered"
    """Where to play it: `filtered` (as over ROS) or `osc_pose`."""
    episodes: tuple[int, ...] = (0,)
    """Which episodes."""
    video: Path | None = None
    """MP4 of the first of them."""
    json: bool = False
    """Print one JSON object on the last line."""


def _check(dataset: Dataset, episode: Episode, world: RobotContract, arguments: Arguments) -> None:
    """Refuses what would be played at the wrong speed, in the wrong task, by other joints, or not at all."""
    require_trainable(replace(dataset, episodes=(episode,)))
    task = episode.meta.get("task")
    if task in TASKS and task != arguments.task:
        raise DatasetError(f"{arguments.dataset}: episode {episode.uuid} was recorded in task {task!r}, asked for {arguments.task!r}")
    offered = {channel.name for channel in world.observation}
    shared = dataset.contract.select(channel.name for channel in dataset.contract.observation if channel.name in offered)
    shared.accepts(world, needed_by=str(arguments.dataset), offered_by=f"the {arguments.world} world")


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack replay")
    if arguments.video is not None:
        check_file(arguments.video, "--video")
    dataset = read_demonstrations(arguments.dataset)
    wrong = [index for index in arguments.episodes if not 0 <= index < len(dataset)]
    if wrong:
        raise DatasetError(f"{arguments.dataset}: no episode {wrong}; valid: 0..{len(dataset) - 1}")
    options = {"render_mode": "rgb_array"} if arguments.video else {}
    rows, frames = [], []
    for index in track(arguments.episodes, "replaying", console=console):
        episode = dataset.episodes[index]
        env = make_world(arguments.task, arguments.world, len(episode), **options)
        contract = env.get_wrapper_attr("contract")
        _check(dataset, episode, contract, arguments)
        seed = episode.meta.get("seed")
        observation, _ = env.reset(seed=None if seed is None else int(seed))
        success, distances = False, []
        for step, action in enumerate(episode.actions):
            observation, _, _, _, info = env.step(np.clip(action, -1.0, 1.0))
            success = success or bool(info["success"])
            if "eef_pos" in episode.observations:
                distances.append(float(np.linalg.norm(observation["eef_pos"] - episode.observations["eef_pos"][step + 1])))
            if arguments.video and index == arguments.episodes[0]:
                frames.append(np.asarray(env.render()))
        rows.append(
            {
                "episode": index,
                "steps": len(episode),
                "success": success,
                "recorded_success": episode.success,
                "eef_distance_max_m": max(distances, default=None),
                "eef_distance_end_m": distances[-1] if distances else None,
                "actions_outside": int(np.sum(np.any(np.abs(episode.actions) > 1.0, axis=1))),
                "same_start": seed is not None,
            }
        )
        figures_table(f"episode {index}", rows[-1])
        period_s = contract.action.period_s
        env.close()
    if arguments.video:
        from rl_core.training.video import write_mp4

        write_mp4(arguments.video, frames, 1 / period_s)
        console.print(f"wrote {arguments.video}")
    if arguments.json:
        emit_json({"episodes": rows})
    return 0
