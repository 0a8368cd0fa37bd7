"""Replay sampling: our ReplayBuffer beside stable-baselines3's, equal content, alternating in one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.peers.sb3_replay import filled_sb3_replay
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler

BATCH = 256
TRANSITIONS = 50_000
OBSERVATION = 40
"""Numbers in the flat observation of the native Lift: 7 + 7 + 3 + 4 + 1 + 3 + 4 + 3, rounded up."""
ACTION = 7
ROUNDS = 400
SAMPLES = 5


def main() -> dict[str, Any]:
    """Median time of a batch of 256, microseconds, and their ratio (above 1 = ours is faster); one thread.

    Ours is a flat TensorDict, the peer's a NamedTuple of tensors, as each hands its batches to an update.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    values = {
        "observation": rng.normal(size=(TRANSITIONS, OBSERVATION)).astype(np.float32),
        "action": rng.uniform(-1, 1, (TRANSITIONS, ACTION)).astype(np.float32),
        "reward": rng.normal(size=TRANSITIONS).astype(np.float32),
        "terminal": (rng.random(TRANSITIONS) < 0.01).astype(np.float32),
        "next_observation": rng.normal(size=(TRANSITIONS, OBSERVATION)).astype(np.float32),
    }
    columns = {"observation": OBSERVATION, "action": ACTION, "reward": 1, "terminal": 1, "next_observation": OBSERVATION}
    replay = ReplayBuffer(TRANSITIONS, columns)
    replay.extend(values)
    sampler = UniformSampler(replay, batch_size=BATCH, seed=0)
    peer = filled_sb3_replay(values)
    _check_equal_content(replay, peer)
    ours_us, peer_us = [], []
    for _ in range(ROUNDS):
        ours_us.append(_time_us(sampler.next_batch))
        peer_us.append(_time_us(lambda: peer.sample(BATCH)))
    torch.set_num_threads(threads)
    ours, theirs = float(np.median(ours_us)), float(np.median(peer_us))
    return {
        "ours": ours,
        "peer": theirs,
        "ratio": theirs / ours,
        "peer_name": "stable-baselines3 ReplayBuffer",
        "setting": {
            "unit": "microseconds per batch, median",
            "batch": BATCH,
            "transitions": TRANSITIONS,
            "observation": OBSERVATION,
            "action": ACTION,
            "threads": 1,
            "rounds": ROUNDS,
            "samples_per_round": SAMPLES,
            "ours_as": "TensorDict with flat keys",
            "peer_as": "NamedTuple of tensors",
        },
    }


def _time_us(sample: Callable[[], Any]) -> float:
    """Mean time of one call over a round, microseconds."""
    sample()
    start = time.perf_counter()
    for _ in range(SAMPLES):
        sample()
    return (time.perf_counter() - start) / SAMPLES * 1e6


def _check_equal_content(replay: ReplayBuffer, peer: Any) -> None:
    rows = np.arange(BATCH)
    ours, theirs = replay.gather(rows), peer._get_samples(rows)
    pairs = {
        "observation": theirs.observations,
        "action": theirs.actions,
        "reward": theirs.rewards[:, 0],
        "terminal": theirs.dones[:, 0],
        "next_observation": theirs.next_observations,
    }
    for name, tensor in pairs.items():
        if not torch.equal(ours[name], tensor):
            raise AssertionError(f"column {name!r} differs between the two buffers; the comparison would not be fair")


if __name__ == "__main__":
    print(json.dumps(main()))
