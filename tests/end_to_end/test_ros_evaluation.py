"""Judging a bundle over the graph that the launch file starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from rl_core.bundle import BundleError
from rl_core.methods import load_policy
from rl_core.training.evaluation import evaluate
from robot_bridge.collection import make_world
from robot_bridge.ros_evaluation import RosRunError, evaluate_over_ros
from tests.end_to_end.policies import small_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bundle(tmp_path_factory.mktemp("bundles") / "bundle", hidden=(32, 32))


def test_lockstep_processes_give_the_same_figures_as_in_process_and_a_complete_recording(bundle: Path, tmp_path: Path) -> None:
    seeds = [1_000_000, 1_000_001]
    over_ros = evaluate_over_ros(bundle, "lift", seeds, horizon=15, record=tmp_path / "recording")
    in_process = evaluate(load_policy(bundle), lambda: make_world("lift", "filtered", 15), seeds)
    assert over_ros.rows == in_process.rows
    assert len(over_ros.bundle_sha256) == 64
    figures = over_ros.to_dict(rows=False)
    assert set(figures["latency_ms"]) == {"observation_age", "inference", "decode", "publish", "filter"}
    assert figures["policy_periods"] == 30 and figures["deadline_misses"] == 0
    bag = tmp_path / "recording" / "bag"
    with Reader(bag) as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
    assert counts["/arm/command"] == 30 and counts["/arm/applied"] == 150 and counts["/arm/contract"] == 1
    (file,) = bag.glob("*.mcap")
    with open(file, "rb") as stream:
        episodes = [m.metadata for m in make_reader(stream).iter_metadata() if m.name == "episode"]
    assert [json.loads(e["seed"]) for e in episodes] == seeds
    assert all(sum(n["lost"] + n["dropped"] for n in json.loads(e["gaps"]).values()) == 0 for e in episodes)


def test_a_bundle_for_another_task_ends_the_run_with_both_sides_of_the_difference(bundle: Path) -> None:
    with pytest.raises(RosRunError, match="policy-.*cube_pos: needed, but only") as caught:
        evaluate_over_ros(bundle, "reach", [1_000_000], horizon=5)
    assert "The arm holds" in str(caught.value)


def test_a_bundle_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no bundle.json"):
        evaluate_over_ros(tmp_path / "nothing", "lift", [1_000_000])
