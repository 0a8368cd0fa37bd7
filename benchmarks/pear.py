"""PEAR's inner loop in the maze beside stable-baselines3's SAC with HerReplayBuffer, alternating in one run."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.peers.sb3_maze import SB3Maze
from rl_core.pear.config import PEARConfig
from rl_core.pear.learner import PEARLearner
from rl_core.pear.source import PEARSource
from rl_core.pear.worlds import make_goal_worlds
from sim_envs.maze.worlds import MazeWorlds

EPISODES = 8
UPDATES = 60
WARM_UP = 2
ROWS = 10
"""Mazes stepped together in the setting beside the first."""


def main() -> dict[str, Any]:
    """Steps of the maze a second, collecting, and gradient steps a second, medians in CPU time of one thread; preset `cpu`.

    The figures at the top are of steps in one maze. Both are of the variant `flat`, whose one level learns what SAC + HER learns: `updates`
    of a batch drawn with hindsight goals. `both_levels` is an update of PEAR itself, a step of two levels with demonstrations, as `updates`
    of one level.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        flat = PEARConfig.preset("cpu").override(variant="flat")
        with tempfile.TemporaryDirectory() as folder:
            ours, many, pear = (
                _Ours(config, folder) for config in (flat, flat.override(rows=ROWS), flat.override(variant="pear", primitive_steps=15))
            )
            peer = SB3Maze(flat)
            episodes = _alternate({"ours": ours.run_episodes, "many": many.run_episodes, "peer": peer.run_episode}, EPISODES)
            pear.run_episodes()
            updates = _alternate({"ours": ours.update, "peer": peer.update, "both": pear.update}, UPDATES)
    finally:
        torch.set_num_threads(threads)
    horizon, many_name = MazeWorlds.horizon, f"ours_{ROWS}_mazes"
    steps = {"ours": horizon / episodes["ours"], many_name: ROWS * horizon / episodes["many"], "peer": horizon / episodes["peer"]}
    return {
        "ours": steps["ours"],
        "peer": steps["peer"],
        "ratio": steps["ours"] / steps["peer"],
        "peer_name": "stable-baselines3 SAC + HerReplayBuffer",
        "steps": {**steps, f"ratio_{ROWS}_mazes": steps[many_name] / steps["peer"]},
        "updates": {
            "ours": 1.0 / updates["ours"],
            "peer": 1.0 / updates["peer"],
            "ratio": updates["peer"] / updates["ours"],
            "both_levels": 2.0 / updates["both"],
        },
        "setting": {
            "unit": "steps, or updates of one level, per second of CPU, median",
            "world": "armstack/Maze-v0",
            "hidden": list(flat.hidden),
            "batch": flat.batch_size,
            "threads": 1,
            "episodes": EPISODES,
            "updates": UPDATES,
        },
    }


class _Ours:
    """Learner and source of one configuration in its own mazes."""

    def __init__(self, config: PEARConfig, folder: str) -> None:
        worlds = make_goal_worlds("armstack/Maze-v0", config.rows)
        self.learner = PEARLearner(config, worlds.contract, worlds.goal, seed=0)
        demonstrations = worlds.demonstrations(range(config.demonstrations)) if config.uses_demonstrations else []
        self.source = PEARSource(self.learner, worlds, demonstrations, folder, seed=0)
        self.source.next_batch()  # the first episode, with the relabelling before it

    def run_episodes(self) -> None:
        """One episode a maze, collected and stored."""
        self.source._run_episodes()

    def update(self) -> None:
        """One batch from what is stored, and one update."""
        self.source._left = 2  # no episode is due
        self.learner.update(self.source.next_batch())


def _alternate(calls: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each call, in turn, after some that don't count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for index in range(WARM_UP + rounds):
        for name, call in calls.items():
            started = time.process_time()
            call()
            if index >= WARM_UP:
                times[name].append(time.process_time() - started)
    return {name: float(np.median(values)) for name, values in times.items()}


if __name__ == "__main__":
    print(json.dumps(main()))
