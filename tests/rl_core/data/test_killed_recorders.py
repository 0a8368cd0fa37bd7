"""Recorders killed with SIGKILL at fifty random moments."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader

from rl_core.contract import RobotContract
from rl_core.data import atomic
from rl_core.data.formats import bag as bags
from rl_core.data.formats import read_dataset
from rl_core.data.recording import EpisodeWriter, finished_episodes, read_episode

MOMENTS = 50
LATEST_S = 0.05
ROOT = Path(__file__).parents[3]

# Imports once; then forks a recorder for each line `folder name` on its input and says its process id. What a recorder says is
# in the same stream: `begin`, and what it has finished.
NURSERY = """
import os, signal, sys
{imports}
def record(folder, name):
    {record}
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            record(*line.split())
        finally:
            os._exit(1)
    os.write(1, b"process %d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""

EPISODES = {
    "imports": """
import numpy as np
from rl_core.contract import RobotContract
from rl_core.data.episode import Episode
from rl_core.data.recording import EpisodeWriter
contract = RobotContract.from_json(sys.argv[1])
steps = 20
""",
    "record": """
    writer = EpisodeWriter(folder, contract)
    for k in range(10_000):
        observations = {c.name: np.full((steps + 1, c.size), k, np.float32) for c in contract.observation}
        actions = np.full((steps, contract.action.size), k, np.float32)
        if k == 0: os.write(1, b"begin\\n")
        writer.write(Episode(
            observations=observations, actions=actions, rewards=np.full(steps, k, np.float32), terminal=False, truncated=True,
            stamps_ns=np.arange(steps + 1) * 50_000_000, uuid=f"{name}-{k:05d}",
        ))
        os.write(1, f"finished {name}-{k:05d}\\n".encode())
""",
}
BAGS = {
    "imports": """
import functools
from rl_core.data.formats import bag as bags
bags.get_typestore = functools.cache(bags.get_typestore)  # half a second, once
bags.get_typestore(bags.Stores.ROS2_KILTED)
""",
    "record": """
    bag = bags.BagWriter(folder)
    os.write(1, b"begin\\n")
    for k in range(1_000_000):
        text = f"{k:08d}".encode() + bytes(1)
        data = bytes((0, 1, 0, 0)) + len(text).to_bytes(4, "little") + text
        bag.write("/numbers", "std_msgs/msg/String", data, received_ns=1000 + k, sent_ns=k, sequence=k)
        if k % 50 == 49:
            bag.flush()
            os.write(1, f"finished {k}\\n".encode())
""",
}


class Nursery:
    """Recorders that are killed."""

    def __init__(self, parts: dict[str, str], *arguments: str) -> None:
        program = NURSERY.format(imports=parts["imports"].strip(), record=parts["record"].strip())
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True, bufsize=1
        )

    def kill_one(self, folder: Path, name: str, moment_s: float) -> list[str]:
        """Starts a recorder, kills it `moment_s` after it began, and gives what it had finished."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder} {name}\n")
        said = self._lines()
        seen: dict[str, str] = {}
        finished = []
        while seen.keys() < {"process", "begin"}:
            word, _, rest = next(said).partition(" ")
            seen[word] = rest
            finished += [rest] if word == "finished" else []
        time.sleep(moment_s)
        os.kill(int(seen["process"]), signal.SIGKILL)
        for line in said:
            word, _, rest = line.partition(" ")
            if word == "dead":
                return finished
            finished.append(rest)
        raise AssertionError("the nursery died")

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.rstrip("\n")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def moments() -> list[float]:
    return np.random.default_rng(0).uniform(0, LATEST_S, MOMENTS).tolist()


def test_crash_while_recording_at_fifty_moments_loses_no_finished_episode_and_shows_no_half_one(
    tmp_path: Path, contract: RobotContract
) -> None:
    folder = tmp_path / "recorded"
    nursery = Nursery(EPISODES, contract.to_json())
    known: set[str] = set()
    parts = 0
    for moment, delay in enumerate(moments()):
        finished = nursery.kill_one(folder, f"m{moment:02d}", delay)
        parts += len(list(folder.glob("*.part")))
        there = finished_episodes(folder)
        new = there.keys() - known
        # between the rename and its message an episode is there that nobody has heard of
        assert known | set(finished) <= there.keys() and len(new) - len(finished) in (0, 1)
        for uuid in new:
            episode, k = read_episode(there[uuid], contract), int(uuid[-5:])
            assert len(episode) == 20 and (episode.actions == k).all() and (episode.rewards == k).all()
            assert all((values == k).all() and len(values) == 21 for values in episode.observations.values())
        known = set(there)
    nursery.close()
    assert parts  # some were killed in the middle of an episode
    EpisodeWriter(folder, contract)
    assert not list(folder.glob("*.part"))
    assert {episode.uuid for episode in read_dataset(folder).episodes} == known


def test_crash_while_recording_a_bag_at_fifty_moments_loses_nothing_that_was_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bags, "get_typestore", functools.cache(bags.get_typestore))
    nursery = Nursery(BAGS)
    kept = 0
    for moment, delay in enumerate(moments()):
        bag = tmp_path / f"bag{moment}"
        flushed = [int(k) for k in nursery.kill_one(bag, "bag", delay)]
        messages = bags.recover(bag)
        assert messages >= (flushed[-1] + 1 if flushed else 0)
        with open(next(bag.glob("*.mcap")), "rb") as stream:
            texts = [int(message.data[8:16]) for _, _, message in make_reader(stream, validate_crcs=True).iter_messages()]
        assert texts == list(range(messages))
        kept += messages
    nursery.close()
    assert kept


@pytest.mark.parametrize("removed_when", ["before the lock", "never"])
def test_a_part_that_is_removed_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed_when: str
) -> None:
    lock, removals = atomic.fcntl.flock, []

    def late_lock(file, operation):
        if operation == atomic.fcntl.LOCK_EX and not removals and removed_when == "before the lock":
            removals.append(None)
            assert atomic.remove_stale_parts(tmp_path) == ["file.part"]
        lock(file, operation)

    monkeypatch.setattr(atomic.fcntl, "flock", late_lock)
    with atomic.write_atomically(tmp_path / "file") as file:
        file.write(b"all of it")
        assert atomic.remove_stale_parts(tmp_path) == []
    assert (tmp_path / "file").read_bytes() == b"all of it" and not (tmp_path / "file.part").exists()
