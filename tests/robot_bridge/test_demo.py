from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from robot_bridge.demo import (
    PLAN,
    POLICY_CHANNELS,
    DemoStepFailed,
    _last_step,
    check_dataset_fits,
    finish_command,
    start_command,
)
from robot_bridge.demo_report import write_report
from robot_bridge.demonstrations import read_demonstrations
from tests.robot_bridge.command_line import Cli

MODEL = '<mujoco model="base"><worldbody><body name="robot0_base" pos="-0.56 0 0.912"/></worldbody></mujoco>'


def robomimic_file(path: Path, *, controller: str = "OSC_POSE", model: str | None = MODEL) -> Path:
    """robomimic's layout, as a user might bring it: arm joints and gripper pose alone, no object, no rewards."""
    rng = np.random.default_rng(0)
    settings = {"type": controller, "input_max": 1, "output_max": [0.05] * 3 + [0.5] * 3, "control_delta": True}
    env = {"env_name": "Lift", "type": 1, "env_kwargs": {"robots": ["Panda"], "control_freq": 20, "controller_configs": settings}}
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps(env)
        demo = data.create_group("demo_0")
        demo["actions"] = rng.uniform(-1, 1, (5, 7))
        demo["obs/robot0_joint_pos"], demo["obs/robot0_eef_pos"] = rng.normal(size=(5, 7)), rng.normal(size=(5, 3))
        if model is not None:
            demo.attrs["model_file"] = model
    return path


def test_all_that_a_users_dataset_lacks_is_listed_at_once(cli: Cli, tmp_path: Path) -> None:
    path = robomimic_file(tmp_path / "mine.hdf5")
    outcome = cli("demo", "--dataset", path, "--out", tmp_path / "demo")
    assert outcome.status == 2 and str(path) in outcome.err
    listed = [line.removeprefix("  - ") for line in outcome.err.splitlines() if line.startswith("  - ")]
    channels = ("eef_quat", "gripper_pos", "cube_pos", "cube_quat", "gripper_to_cube_pos")
    assert listed == [*(f"observation {name!r}" for name in channels), "rewards that are not all zero (DAC learns from them)"]


def test_channels_in_another_frame_and_other_actions_are_listed_with_both_sides(tmp_path: Path, cli: Cli) -> None:
    outcome = cli("demo", "--dataset", robomimic_file(tmp_path / "mine.hdf5", controller="IK_POSE", model=None), "--out", tmp_path / "demo")
    assert outcome.status == 2
    assert "observation.eef_pos.frame: found 'world', valid 'base'" in outcome.err
    assert "action.names: found ('action_0'," in outcome.err and "valid ('x', 'y', 'z', 'rx', 'ry', 'rz', 'gripper')" in outcome.err
    assert "observation 'cube_pos'" in outcome.err and "rewards" in outcome.err


def test_collected_demonstrations_fit(data: Path) -> None:
    dataset = read_demonstrations(data)
    check_dataset_fits(dataset, PLAN)
    assert set(POLICY_CHANNELS) <= {channel.name for channel in dataset.contract.observation}


def test_the_frozen_mix_is_a_third_each() -> None:
    assert PLAN.skills == ("expert", "sloppy", "failing") and PLAN.episodes % 3 == 0


def test_a_failed_step_shows_the_end_of_its_output(tmp_path: Path) -> None:
    log = tmp_path / "eval.log"
    process = start_command(["eval", str(tmp_path / "nowhere")], log)
    with pytest.raises(DemoStepFailed, match=r"evaluating bc ended with status 2(.|\n)*nowhere: no bundle.json"):
        finish_command(process, "evaluating bc", log)


def test_a_line_of_metrics_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    assert _last_step(metrics) == 0
    metrics.write_text('{"step": 100, "loss/actor": 1.0}\n{"step": 2')
    assert _last_step(metrics) == 100


def test_the_report_holds_all_figures_in_one_file(data: Path, dac: Path, tmp_path: Path) -> None:
    row = {"success_rate": 0.5, "success_ci95": [0.3, 0.7], "return_mean": 12.5, "return_ci95": [10.0, 15.0], "episodes": 10}
    (tmp_path / "dac").symlink_to(dac)
    page = write_report(
        tmp_path,
        task="lift",
        dataset=read_demonstrations(data),
        results=[{"policy": "dac", "world": "over ROS 2", **row}],
        methods=["dac"],
        latency={"inference": {"p50": 1.25, "p95": 2.5, "p99": 3.75}},
        deadline="1 of 400 policy periods began late",
        video=None,
        no_video="no EGL here <script>",
        budget=[{"step": "collect", "budget": 90, "seconds": 12.0, "reused": False}],
        bundle=dac / "bundle",
        recording=tmp_path / "recording",
    )
    text = page.read_text()
    for shown in ("50", "12.5", "1.25", "3.75", "1 of 400", "expert", "sloppy", "failing", "no EGL here &lt;script&gt;"):
        assert shown in text, shown
    assert "<script>" not in text and text.count("data:image/png") == 2
