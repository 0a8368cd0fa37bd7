"""Data: random windows from memory, and loading a file of demonstrations; each beside its peer in one run.

Windows: the peer is one contiguous NumPy array that is indexed, which knows no episodes, no columns and no padding: an upper bound.
Loading: the peer reads key by key through h5py, as robomimic's `SequenceDataset` does for `hdf5_cache_mode`.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.peers.robomimic_loading import load_in_memory
from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.episode_replay import EpisodeReplay
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.samplers import WindowSampler
from rl_core.data.training_data import terminal_flags

EPISODES = 500
STEPS = 200
WINDOW = 16
BATCH = 256
ROUNDS = 200
LOADS = 3
AXES = ("x", "y", "z")
ACTIONS = ("x", "y", "z", "rx", "ry", "rz", "gripper")
CONTRACT = RobotContract(
    robot="bench",
    observation=(
        Channel(name="joint_pos", names=tuple(f"joint{i}" for i in range(7)), unit="rad"),
        Channel(name="joint_vel", names=tuple(f"joint{i}" for i in range(7)), unit="rad/s"),
        Channel(name="eef_pos", names=AXES, unit="m"),
        Channel(name="eef_quat", kind="quaternion"),
        Channel(name="gripper_pos", names=("gripper",), unit="m"),
        Channel(name="cube_pos", names=AXES, unit="m"),
        Channel(name="cube_quat", kind="quaternion"),
        Channel(name="gripper_to_cube_pos", names=AXES, unit="m"),
    ),
    action=Action(
        names=ACTIONS, meaning="delta", space="end_effector", scale=(1.0,) * 7, units=("m",) * 3 + ("rad",) * 3 + ("m",), period_s=0.05
    ),
)
"""Channels and action of the native Lift."""


def main() -> dict[str, Any]:
    """Windows a second (median over rounds), and seconds to load a file, in CPU time of one thread: nothing here waits.

    Returns:
        `ours`, `peer` (windows/s), `ratio` (above 1 = ours is faster), `peer_name`; `ours_bytes_per_s`, `peer_bytes_per_s`: what each
        hands over; `loading`: the same keys in seconds, with `keyed_peer`, the peer with its groups kept open; `setting`.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        dataset = _dataset()
        return {**_windows(dataset), "loading": _loading(dataset), "setting": _setting()}
    finally:
        torch.set_num_threads(threads)


def _dataset() -> Dataset:
    rng = np.random.default_rng(0)
    episodes = []
    for index in range(EPISODES):
        observations = {c.name: rng.normal(size=(STEPS + 1, c.size)).astype(np.float32) for c in CONTRACT.observation}
        for name in ("eef_quat", "cube_quat"):
            observations[name] /= np.linalg.norm(observations[name], axis=1, keepdims=True)
        episodes.append(
            Episode(
                observations=observations,
                actions=rng.uniform(-1, 1, (STEPS, len(ACTIONS))).astype(np.float32),
                rewards=rng.random(STEPS).astype(np.float32),
                terminal=index % 2 == 0,
                truncated=index % 2 == 1,
                stamps_ns=np.arange(STEPS + 1, dtype=np.int64) * 50_000_000,
                uuid=f"episode-{index}",
            )
        )
    return Dataset(contract=CONTRACT, episodes=tuple(episodes))


def _windows(dataset: Dataset) -> dict[str, Any]:
    sampler = WindowSampler(EpisodeReplay.from_dataset(dataset, CONTRACT), length=WINDOW, batch_size=BATCH, seed=0)
    peer = _ContiguousWindows(dataset, seed=0)
    _check_equal_windows(sampler, peer)
    calls: dict[str, Callable[[], Any]] = {"ours": sampler.next_batch, "peer": peer.next_batch}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started = time.process_time()
            call()
            times[name].append(time.process_time() - started)
    ours, theirs = (float(np.median(times[name])) for name in ("ours", "peer"))
    handed_over = sum(np.asarray(tensor).nbytes for tensor in sampler.next_batch().values())
    return {
        "ours": BATCH / ours,
        "peer": BATCH / theirs,
        "ratio": theirs / ours,
        "peer_name": "indexing one contiguous NumPy array",
        "ours_bytes_per_s": handed_over / ours,
        "peer_bytes_per_s": peer.next_batch().nbytes / theirs,
    }


class _ContiguousWindows:
    """Rows of observation, action, reward and terminal in one array, of which a window and the row after it are taken."""

    def __init__(self, dataset: Dataset, seed: int) -> None:
        rows = []
        for episode in dataset.episodes:
            steps = np.column_stack([episode.actions, episode.rewards, terminal_flags(episode)])
            rows.append(np.hstack([episode.flat_observation(dataset.contract), np.pad(steps, ((0, 1), (0, 0)))]))
        self.rows: NDArray[np.float32] = np.concatenate(rows)
        self._starts = np.concatenate([np.arange(STEPS - WINDOW + 1) + index * (STEPS + 1) for index in range(len(dataset))])
        self._offsets = np.arange(WINDOW + 1)
        self._rng = np.random.default_rng(seed)

    def next_batch(self) -> NDArray[np.float32]:
        return self.at(self._starts[self._rng.integers(0, len(self._starts), BATCH)])

    def at(self, starts: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.rows.take(starts[:, None] + self._offsets, axis=0)


def _check_equal_windows(sampler: WindowSampler, peer: _ContiguousWindows) -> None:
    batch: dict[str, NDArray[np.float32]] = {name: np.asarray(tensor) for name, tensor in sampler.next_batch().items()}
    numbers = [batch["observation"], batch["action"], batch["reward"][..., None], batch["terminal"][..., None]]
    ours = np.concatenate(numbers, axis=-1)
    places = {row.tobytes(): index for index, row in enumerate(peer.rows)}
    theirs = peer.at(np.array([places[window[0].tobytes()] for window in ours]))
    following = theirs[:, 1:, : CONTRACT.observation_size]
    if not (np.array_equal(theirs[:, :-1], ours) and np.array_equal(following, batch["next_observation"])):
        raise AssertionError("the windows of the two differ; the comparison would not be fair")


def _loading(dataset: Dataset) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = write_dataset(dataset, Path(folder) / "demos.hdf5")
        keys = [channel.name for channel in CONTRACT.observation]
        calls: dict[str, Callable[[], Any]] = {
            "ours": lambda: read_dataset(file),
            "peer": lambda: load_in_memory(file, keys, ("actions", "rewards", "dones")),
            "keyed": lambda: load_in_memory(file, keys, ("actions", "rewards", "dones"), keep_groups=True),
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        for load in range(LOADS):
            loaded = {}
            for name, call in calls.items():
                started = time.process_time()
                loaded[name] = call()
                times[name].append(time.process_time() - started)
            if not load:
                for name in ("peer", "keyed"):
                    _check_equal_loads(loaded["ours"], loaded[name])
    ours, peer, keyed = (float(np.median(values)) for values in times.values())
    return {
        "ours": ours,
        "peer": peer,
        "ratio": peer / ours,
        "peer_name": "h5py key by key, as robomimic's SequenceDataset",
        "keyed_peer": keyed,
        "keyed_ratio": keyed / ours,
        "unit": "seconds of CPU time, median",
    }


def _check_equal_loads(ours: Dataset, theirs: dict[str, Any]) -> None:
    if len(ours) != len(theirs):
        raise AssertionError(f"{len(ours)} episodes against {len(theirs)}")
    for index, episode in enumerate(ours.episodes):
        demo = theirs[f"demo_{index}"]
        for name, values in episode.observations.items():
            np.testing.assert_array_equal(demo["obs"][name], values[:-1])
            np.testing.assert_array_equal(demo["next_obs"][name], values[1:])
        np.testing.assert_array_equal(demo["actions"], episode.actions)
        np.testing.assert_array_equal(demo["rewards"], episode.rewards)
        assert demo["dones"].sum() == episode.terminal


def _setting() -> dict[str, Any]:
    return {
        "unit": "windows per second of CPU time, median",
        "episodes": EPISODES,
        "steps": STEPS,
        "window": WINDOW,
        "batch": BATCH,
        "observation": CONTRACT.observation_size,
        "action": CONTRACT.action.size,
        "threads": 1,
        "rounds": ROUNDS,
        "loads": LOADS,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
