from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rl_core.errors import ArmstackError
from robot_bridge import demo
from robot_bridge.demo_steps import BUDGET_S, OtherDemo, Steps, check_settings, claim
from tests.robot_bridge.command_line import Cli, Outcome

SETTINGS = {"updates": 5, "plan": {"task": "lift", "episodes": 4}}
FIGURES = {"success_rate": 0.5, "success_ci95": [0.3, 0.7], "return_mean": 12.5, "return_ci95": [10.0, 15.0], "episodes": 2}
OVER_ROS = {**FIGURES, "deadline_misses": 0, "policy_periods": 24, "sim_mode": "lockstep", "latency_ms": {}}


def test_the_budget_is_below_ten_minutes_and_its_table_ends_with_the_sum(tmp_path: Path) -> None:
    assert sum(BUDGET_S.values()) < 600
    steps = Steps(tmp_path)
    for name in BUDGET_S:
        steps.run(name, dict)
    rows = steps.rows()
    assert [row["step"] for row in rows] == [*BUDGET_S, "together"] and rows[-1]["budget"] == sum(BUDGET_S.values())


def test_a_finished_step_keeps_figures_and_seconds_until_its_state_changes(tmp_path: Path) -> None:
    state = {"bundle": "aa"}
    first = Steps(tmp_path)
    assert first.run("evaluate", lambda: {"success": 0.5}, lambda: state) == {"success": 0.5}
    again = Steps(tmp_path)
    assert again.run("evaluate", lambda: {"success": 0.9}, lambda: state) == {"success": 0.5}
    assert again.rows()[0] == {**first.rows()[0], "reused": True}
    state["bundle"] = "bb"
    changed = Steps(tmp_path)
    assert changed.run("evaluate", lambda: {"success": 0.9}, lambda: state) == {"success": 0.9}
    assert not changed.rows()[0]["reused"]


def test_an_interrupted_step_is_not_finished(tmp_path: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Steps(tmp_path).run("evaluate", interrupted, dict)
    assert Steps(tmp_path).run("evaluate", lambda: 1, dict) == 1


def test_a_folder_of_other_settings_is_refused_with_both_sides(tmp_path: Path) -> None:
    check_settings(tmp_path / "new", SETTINGS)
    claim(tmp_path / "new", SETTINGS)
    check_settings(tmp_path / "new", SETTINGS)
    with pytest.raises(OtherDemo, match=r"updates: there 5, asked for 7; plan.task: there 'lift', asked for 'reach'; give another --out"):
        check_settings(tmp_path / "new", {"updates": 7, "plan": {"task": "reach", "episodes": 4}})
    (tmp_path / "old" / "dac").mkdir(parents=True)
    with pytest.raises(OtherDemo, match=r"holds dac, but no demo.json"):
        check_settings(tmp_path / "old", SETTINGS)


class Demo:
    """`armstack demo` whose commands are counted instead of run; what they would leave is copied into its folder."""

    def __init__(self, cli: Cli, folder: Path, data: Path, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        self._cli, self.folder, self._data, self.runs = cli, folder, data, runs
        monkeypatch.setattr(demo, "train_side_by_side", self._train)
        monkeypatch.setattr(demo, "evaluate_side_by_side", self._evaluate)
        monkeypatch.setattr(demo, "run_over_ros", self._over_ros)
        monkeypatch.setattr(demo, "draw_video", lambda bag, file, task: (None, f"not drawn: {bag.name}"))

    def __call__(self, *options: object) -> Outcome:
        return self._cli("demo", "--dataset", self._data, "--out", self.folder, *options, "--json")

    def _train(self, *_: Any) -> None:
        self.calls["train"] += 1
        for method, run in self.runs.items():
            shutil.copytree(run, self.folder / method, dirs_exist_ok=True)

    def _evaluate(self, methods: tuple[str, ...], *_: Any) -> dict[str, Any]:
        self.calls["evaluate"] += 1
        return {method: FIGURES for method in methods}

    def _over_ros(self, folder: Path, options: list[str], recording: Path, console: Any) -> dict[str, Any]:
        self.calls["ros"] += 1
        bag = recording / f"bag_{self.calls['ros']}"
        bag.mkdir(parents=True)
        return {**OVER_ROS, "bag": str(bag)}


@pytest.fixture
def demonstration(cli: Cli, tmp_path: Path, data: Path, bc: Path, dac: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    runs = {name: shutil.copytree(source, tmp_path / "trained" / name) for name, source in (("bc", bc), ("dac", dac))}
    return Demo(cli, tmp_path / "demo", data, runs, monkeypatch)


def test_a_finished_demo_only_writes_its_report_anew(demonstration: Demo) -> None:
    first = demonstration()
    assert first.status == 0, first.err
    page = demonstration.folder / "report.html"
    page.unlink()
    again = demonstration()
    assert again.status == 0 and demonstration.calls == {"train": 1, "evaluate": 1, "ros": 1}
    assert "in an earlier run" in page.read_text() and "in an earlier run" in again.err
    seconds = [{row["step"]: row["seconds"] for row in outcome.figures["budget"][:-2]} for outcome in (first, again)]
    assert seconds[0] == seconds[1] and [row["reused"] for row in again.figures["budget"]] == [True, True, True, False, False]
    assert first.figures["results"] == again.figures["results"]


def test_steps_of_another_bundle_or_of_a_deleted_bag_are_done_again(demonstration: Demo) -> None:
    assert demonstration().status == 0
    shutil.rmtree(demonstration.folder / "recording" / "bag_1")
    assert demonstration().status == 0
    assert demonstration.calls == {"train": 1, "evaluate": 1, "ros": 2}
    header = demonstration.runs["dac"] / "bundle" / "bundle.json"
    header.write_text(json.dumps({**json.loads(header.read_text()), "metrics": {"trained": "longer"}}))
    shutil.rmtree(demonstration.folder / "dac")
    assert demonstration().status == 0
    assert demonstration.calls == {"train": 2, "evaluate": 2, "ros": 3}


def test_another_setting_does_not_spoil_a_finished_demo(demonstration: Demo) -> None:
    assert demonstration().status == 0
    before = {file: file.stat().st_mtime_ns for file in demonstration.folder.rglob("*")}
    outcome = demonstration("--updates", 7, "--plan.horizon", 13)
    assert outcome.status == 2 and "give another --out" in outcome.err
    assert "updates: there 20000, asked for 7" in outcome.err and "plan.horizon: there 200, asked for 13" in outcome.err
    assert {file: file.stat().st_mtime_ns for file in demonstration.folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--episodes", 0), "--episodes: 0, valid: 1..10000"),
        (("--ros-episodes", 0), "--ros-episodes: 0, valid: 1..10000"),
        (("--updates", 0), "--updates: 0, valid: 1 or more"),
        (("--seed", -1), "--seed: -1, valid: 0 or more"),
        (("--plan.task", "reach"), "plan.task 'reach': has no cube_pos, cube_quat, gripper_to_cube_pos"),
        (("--plan.task", "juggle"), "valid: reach, lift, pick_place"),
    ],
)
def test_what_would_stop_a_later_step_is_said_before_the_first(cli: Cli, tmp_path: Path, options: tuple[object, ...], found: str) -> None:
    outcome = cli("demo", "--out", tmp_path / "demo", *options)
    assert outcome.status == 2 and found in outcome.err
    assert not (tmp_path / "demo").exists()


def test_a_missing_rclpy_is_said_before_the_first_step(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rclpy", None)
    outcome = cli("demo", "--out", tmp_path / "demo")
    assert outcome.status == 2 and "pip install 'armstack[ros]'" in outcome.err
    assert not (tmp_path / "demo").exists()
    with pytest.raises(ArmstackError, match="rclpy cannot be imported"):
        demo.check_ros()
