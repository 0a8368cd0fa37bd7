from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rl_core.data.fingerprint import fingerprint
from rl_core.data.recording import finished_episodes
from rl_core.training.evaluation import EVALUATION_OFFSET
from robot_bridge.collection import CollectionPlan, collect, make_world, record_episode
from robot_bridge.demonstrations import read_demonstrations
from tests.robot_bridge.command_line import PLAN, Cli

ROOT = Path(__file__).parents[2]


def test_skills_take_turns_and_every_episode_says_how_it_was_made(data: Path) -> None:
    episodes = read_demonstrations(data).episodes
    assert {e.uuid for e in episodes} == {f"lift-0-0000{k}-{s}" for k, s in enumerate(("expert", "sloppy", "failing", "expert"))}
    for episode in episodes:
        assert len(episode) == 12 and episode.truncated and not episode.terminal
        assert episode.meta["world"] == "filtered" and episode.meta["skill"] in episode.uuid
        assert 0 <= episode.meta["seed"] < EVALUATION_OFFSET
        assert episode.action_applied is not None and episode.action_applied.shape == episode.actions.shape
        np.testing.assert_array_equal(np.diff(episode.stamps_ns), 50_000_000)
    assert len({episode.meta["seed"] for episode in episodes}) == 4


def test_two_processes_record_the_same_episodes_as_one(cli: Cli, data: Path, tmp_path: Path) -> None:
    outcome = cli("collect", "--out", tmp_path / "lift", *PLAN, "--processes", 2, "--json")
    assert outcome.status == 0 and outcome.figures["recorded_now"] == outcome.figures["episodes"] == 4
    assert set(outcome.figures) == {"dataset", "episodes", "recorded_now", "steps", "success_rate", "return_mean"}
    one, two = ({e.uuid: e for e in read_demonstrations(folder).episodes} for folder in (data, tmp_path / "lift"))
    assert one.keys() == two.keys()
    for uuid, episode in one.items():
        for name, values in episode.observations.items():
            np.testing.assert_array_equal(values, two[uuid].observations[name])
        np.testing.assert_array_equal(episode.actions, two[uuid].actions)
        np.testing.assert_array_equal(episode.rewards, two[uuid].rewards)
    assert fingerprint(read_demonstrations(data)) == fingerprint(read_demonstrations(tmp_path / "lift"))


def test_a_finished_collection_records_nothing_more(cli: Cli, data: Path) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in data.iterdir()}
    outcome = cli("collect", "--out", data, *PLAN, "--json")
    assert outcome.status == 0 and outcome.figures["recorded_now"] == 0 and outcome.figures["episodes"] == 4
    assert {file.name: file.stat().st_mtime_ns for file in data.iterdir()} == before


def test_a_crashed_collection_goes_on_and_keeps_what_was_finished(cli: Cli, data: Path, tmp_path: Path) -> None:
    """What a kill leaves: two episodes and a part of a third."""
    folder = shutil.copytree(data, tmp_path / "lift")
    whole = read_demonstrations(data)
    files = sorted(folder.glob("*.hdf5"))
    files[3].unlink()
    files[1].rename(files[1].with_name(files[1].name + ".part"))
    kept = {file: file.stat().st_ino for file in (files[0], files[2])}
    outcome = cli("collect", "--out", folder, *PLAN, "--processes", 1, "--json")
    assert outcome.status == 0 and outcome.figures["recorded_now"] == 2
    assert {file: file.stat().st_ino for file in kept} == kept
    assert fingerprint(read_demonstrations(folder)) == fingerprint(whole)
    assert not list(folder.glob("*.part"))


def test_ctrl_c_stops_the_collection_and_keeps_what_was_finished(tmp_path: Path) -> None:
    plan = CollectionPlan(episodes=90, horizon=2)

    def press(done: int) -> None:
        if done and list(tmp_path.glob("*.hdf5")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(plan, tmp_path, processes=1, progress=press)
    assert 3 <= len(finished_episodes(tmp_path)) < 90
    assert len(read_demonstrations(tmp_path)) == len(finished_episodes(tmp_path))


def test_a_terminated_command_leaves_no_process_behind(tmp_path: Path) -> None:
    """SIGTERM reaches the command alone; its worlds are processes of their own."""
    folder = tmp_path / "lift"
    command = [sys.executable, "-m", "robot_bridge.cli", "collect", "--out", str(folder), "--plan.episodes", "300", "--plan.horizon", "2"]
    process = subprocess.Popen(
        [*command, "--processes", "1"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not finished_episodes(folder):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    deadline = time.monotonic() + 10  # Python's own resource tracker ends a moment after its parent
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.02)
    assert 3 <= len(read_demonstrations(folder)) < 300


def test_a_killed_command_leaves_no_worker_recording(tmp_path: Path) -> None:
    """After SIGKILL no block of the command is left in order: its workers must see for themselves that it is gone."""
    folder = tmp_path / "lift"
    command = [sys.executable, "-m", "robot_bridge.cli", "collect", "--out", str(folder), "--plan.episodes", "600", "--plan.horizon", "2"]
    process = subprocess.Popen(
        [*command, "--processes", "1"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not finished_episodes(folder):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait(10)
    deadline = time.monotonic() + 10
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.02)
    assert 1 <= len(finished_episodes(folder)) < 600


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (("--plan.seed", 5), "another collection"),
        (("--plan.horizon", 13), "horizon: there 12, asked for 13"),
        (("--plan.world", "osc_pose"), "world: there 'filtered', asked for 'osc_pose'"),
        (("--plan.task", "reach"), "another collection"),
    ],
)
def test_a_folder_of_another_plan_is_refused(cli: Cli, data: Path, changes: tuple[object, ...], found: str) -> None:
    before = sorted(data.iterdir())
    outcome = cli("collect", "--out", data, *PLAN, *changes)
    assert outcome.status == 2 and str(data) in outcome.err and found in outcome.err
    assert sorted(data.iterdir()) == before


def test_the_plan_is_kept_beside_the_episodes(data: Path) -> None:
    held = json.loads((data / "plan.json").read_text())
    assert held["horizon"] == 12 and held["skills"] == ["expert", "sloppy", "failing"] and "episodes" not in held


def test_an_episode_depends_on_the_plan_and_its_index_alone() -> None:
    plan = CollectionPlan(episodes=3, horizon=4)
    env = make_world(plan.task, plan.world, plan.horizon)
    first = record_episode(env, plan, 1)
    record_episode(env, plan, 2)
    again = record_episode(env, plan, 1)
    env.close()
    np.testing.assert_array_equal(first.actions, again.actions)
    np.testing.assert_array_equal(first.observations["cube_pos"], again.observations["cube_pos"])
