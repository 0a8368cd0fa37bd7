"""DVFB's reward-free update beside the same losses in plain PyTorch, alternating in one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from benchmarks.peers.plain_dvfb import PlainDVFB
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.learner import DVFBLearner
from sim_envs.rooms.env import rooms_contract

UPDATES = 60
WARM_UP = 5


def main() -> dict[str, Any]:
    """Updates a second of CPU time (median) on batches of the four-room maze, preset `cpu`, one thread.

    Raises:
        AssertionError: the losses compared differ; the comparison would not be fair.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        learner = DVFBLearner(DVFBConfig.preset("cpu"), rooms_contract(), seed=0)
        peer = PlainDVFB(learner)
        batches = _batches(learner.config.batch_size)
        difference = _difference(learner.config, batches)
        times = _alternate({"ours": learner.update, "peer": peer.update}, batches)
    finally:
        torch.set_num_threads(threads)
    ours, theirs = (1.0 / float(np.median(times[name])) for name in ("ours", "peer"))
    return {
        "ours": ours,
        "peer": theirs,
        "ratio": ours / theirs,
        "peer_name": "the same losses in plain PyTorch, in the order of the authors' code",
        "setting": {
            "unit": "updates per second of CPU, median",
            "preset": "cpu",
            "batch": learner.config.batch_size,
            "threads": 1,
            "updates": UPDATES,
            "largest_difference": difference,
        },
    }


def _batches(size: int) -> list[TensorDict]:
    """Transitions anywhere in the maze, moved by their actions."""
    rng = np.random.default_rng(0)
    batches = []
    for _ in range(8):
        observation, action = rng.uniform(-1, 1, (size, 2)).astype(np.float32), rng.uniform(-1, 1, (size, 2)).astype(np.float32)
        columns = {"observation": observation, "action": action, "next_observation": observation + np.float32(0.03) * action}
        tensors = {name: torch.from_numpy(value) for name, value in columns.items()}
        batches.append(TensorDict({**tensors, "terminal": torch.zeros(size)}, [size]))
    return batches


def _difference(config: DVFBConfig, batches: list[TensorDict]) -> float:
    """Largest relative difference of the losses of two updates, in double precision, where Adam does not blow up a last bit."""
    torch.set_default_dtype(torch.float64)
    try:
        learner = DVFBLearner(config, rooms_contract(), seed=0)
        peer, differences = PlainDVFB(learner), []
        for batch in batches[:2]:
            ours, theirs = learner.update(batch.double()), peer.update(batch.double())
            differences += [abs(float(ours[name]) - float(value)) / max(1.0, abs(float(value))) for name, value in theirs.items()]
    finally:
        torch.set_default_dtype(torch.float32)
    if max(differences) > 1e-5:
        raise AssertionError(f"the updates compared differ by {max(differences):.2g}; valid: up to 1e-5")
    return max(differences)


def _alternate(updates: dict[str, Callable[[TensorDict], Any]], batches: list[TensorDict]) -> dict[str, list[float]]:
    """CPU seconds of each update, in turn, after some that don't count."""
    times: dict[str, list[float]] = {name: [] for name in updates}
    for index in range(WARM_UP + UPDATES):
        for name, update in updates.items():
            started = time.process_time()
            update(batches[index % len(batches)])
            if index >= WARM_UP:
                times[name].append(time.process_time() - started)
    return times


if __name__ == "__main__":
    print(json.dumps(main()))
