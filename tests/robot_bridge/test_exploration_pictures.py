"""Pictures at the end of a reward-free pre-training."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import av
import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle, BundleError
from rl_core.dvfb.calibration import calibrate
from rl_core.errors import ArmstackError
from rl_core.training.worlds import make_world
from robot_bridge import exploration_pictures
from robot_bridge.exploration_pictures import draw_exploration
from sim_envs.reward_free.pictures import draw_calibration
from sim_envs.reward_free.plane import plane_of
from sim_envs.reward_free.worlds import make
from tests.robot_bridge.command_line import Cli

WORLD = "armstack/FourRooms-v0"
SMALL = ("z_dim 4", "hidden 16", "feature 8", "batch_size 32", "random_steps 50", "n_envs 1")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FILMED", 3), ("LONGEST", 5), ("CALIBRATED", 2)):
        monkeypatch.setattr(exploration_pictures, name, value)


def pretrained(cli: Cli, folder: Path, method: str, *words: str):
    settings = [word for field in SMALL for word in (f"--config.{field.split()[0].replace('_', '-')}", field.split()[1])]
    return cli(
        "pretrain", method, "--env", WORLD, "--run-dir", str(folder), "--preset", "cpu", "--updates", "10", *settings, *words
    )  # fmt: skip


def test_a_pre_training_ends_with_its_pictures(cli: Cli, tmp_path: Path) -> None:
    run = pretrained(cli, tmp_path, "dvfb")
    assert run.status == 0 and "skills.mp4" in run.err.replace("\n", ""), run.err
    for name in ("coverage.png", "calibration.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    with av.open(str(tmp_path / "skills.mp4")) as video:
        frames = [frame.width for frame in video.decode(video=0)]
    assert frames == [3 * 160 + 2 * 4] * 5
    with pytest.raises(ArmstackError):
        draw_exploration(tmp_path, "armstack/ExplorePendulum-v0")  # another world than the one explored


def test_skill_discovery_has_no_values_and_pictures_can_be_left_out(cli: Cli, tmp_path: Path) -> None:
    assert pretrained(cli, tmp_path, "skill_discovery", "--no-pictures").status == 0
    assert not (tmp_path / "skills.mp4").exists()
    assert [file.name for file in draw_exploration(tmp_path, WORLD)] == ["coverage.png", "skills.mp4"]
    with pytest.raises(BundleError, match="no skill value"):
        calibrate(Bundle.load(tmp_path / "bundle"), partial(make_world, WORLD), skills=1)


def test_what_is_measured_is_the_discounted_reward_that_z_asks_for(cli: Cli, tmp_path: Path) -> None:
    assert pretrained(cli, tmp_path, "dvfb", "--no-pictures").status == 0
    bundle = Bundle.load(tmp_path / "bundle")
    predicted, measured = calibrate(bundle, partial(make_world, WORLD), skills=3)
    assert predicted.shape == measured.shape == (3,) and np.ptp(measured) > 0
    undiscounted = Bundle(**{**vars(bundle), "config": {**bundle.config, "gamma": 0.0}})
    _, first = calibrate(undiscounted, partial(make_world, WORLD), skills=3)
    assert np.abs(first).max() < np.abs(measured).max()
    still = dict(bundle.weights) | {name: torch.zeros_like(value) for name, value in bundle.weights.items() if name.startswith("f.")}
    assert (calibrate(Bundle(**{**vars(bundle), "weights": still}), partial(make_world, WORLD), skills=1)[0] == 0.0).all()


def test_calibration_is_drawn_with_its_correlation(tmp_path: Path) -> None:
    file = draw_calibration([1.0, 2.0, 3.0], [1.1, 1.9, 3.2], tmp_path / "calibration.png")
    assert file.stat().st_size > 5_000
    assert draw_calibration([1.0], [1.0], tmp_path / "one.png").exists()
    with pytest.raises(ArmstackError, match="no skills"):
        draw_calibration([], [], file)


def test_worlds_are_seen_from_above_where_there_is_a_plane() -> None:
    rooms, reach, pendulum = (plane_of(make(name)) for name in ("UMaze", "ExploreReach", "ExplorePendulum"))
    assert rooms is not None and rooms.walls is not None and rooms.channel == "position" and (rooms.high == 1.0).all()
    assert reach is not None and reach.channel == "eef_pos" and (reach.low < reach.high).all() and pendulum is None
    push = plane_of(make("ExplorePush"))
    assert push is not None and push.channel == "cube_pos"
