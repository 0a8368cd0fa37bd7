"""What RFMamba is compared with, and the figures of all."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.experiments.plan import load_plan
from robot_bridge.auxiliary.monitoring.rfmamba.backprojection import GRID, SHAPE, steering, window_images, window_profiles
from robot_bridge.auxiliary.monitoring.rfmamba.baselines import Answers, mean_pose, nearest, oracle_root, ridge, root_of
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings
from robot_bridge.auxiliary.monitoring.rfmamba.evaluation import pose_figures
from robot_bridge.auxiliary.monitoring.rfmamba.experiments import contender, latency
from sim_envs.sensors.radar import echoes
from sim_envs.sensors.recordings import RadarScene

from .conftest import TINY

ROOT = Path(__file__).parents[5]


def test_an_image_is_brightest_where_the_scatterer_is(recordings: Recordings) -> None:
    array = RadarScene(frequencies=16).array
    axes = [np.linspace(low, high, points) for low, high, points in GRID.values()]
    cell = (4, 9, 3)
    place = np.array([axis[index] for axis, index in zip(axes, cell, strict=True)])
    normal = np.array([0.0, 0.0, 0.4]) - place
    echo = echoes(array, place[None, None], normal[None, None] / np.linalg.norm(normal), np.ones((1, 1), np.complex64))
    image = (torch.from_numpy(echo[0]).flatten() @ steering(recordings.geometry)).abs().reshape(SHAPE)
    assert np.unravel_index(int(image.argmax()), SHAPE) == cell


def test_features_are_in_the_order_of_the_windows(recordings: Recordings) -> None:
    windows, profiles, images = recordings.windows(4, 3), window_profiles(recordings, 4), window_images(recordings, 4)
    assert profiles.shape == (len(windows), 4, 256) and images.shape == (len(windows), 4, *[12 * 14 * 8])
    for row in (0, 7, len(windows) - 1):
        profile = torch.fft.ifft(torch.from_numpy(windows.echoes[row]), dim=-1).abs().flatten(1)
        torch.testing.assert_close(profiles[row], profile / profile.norm(dim=1, keepdim=True))


def test_oracle_root_knows_where_and_mean_pose_nothing(recordings: Recordings) -> None:
    joints = torch.from_numpy(recordings.windows(4, 3).joints)
    train, test = joints[::2], joints[1::2]
    oracle, mean = oracle_root(train, test), mean_pose(train, test)
    torch.testing.assert_close(root_of(oracle.joints), root_of(test))
    assert (mean.joints == mean.joints[0]).all() and (oracle.activity == -1).all()
    errors = [(answers.joints - test).norm(dim=-1).mean() for answers in (oracle, mean)]
    assert errors[0] < 0.7 * errors[1]


def test_neighbours_and_ridge_find_what_is_there() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(200, 6, generator=generator)
    matrix = torch.randn(6, 42, generator=generator)
    joints, activity = (features @ matrix).unflatten(1, (14, 3)), (features[:, 0] > 0).long()
    same = nearest(features, joints, activity, features[:10], k=1)
    torch.testing.assert_close(same.joints, joints[:10])
    assert torch.equal(same.activity, activity[:10])
    people = torch.arange(150) % 10
    fitted = ridge(features[:150], joints[:150], activity[:150], people, features[150:])
    torch.testing.assert_close(fitted.joints, joints[150:], atol=0.02, rtol=0.02)
    assert (fitted.activity == activity[150:]).float().mean() > 0.85
    noise = ridge(
        torch.randn(150, 100, generator=generator), joints[:150], activity[:150], people, torch.randn(50, 100, generator=generator)
    )
    assert noise.joints.std() < joints.std()  # what is only noise is held back


def test_figures_tell_place_from_pose_and_walls_from_none(recordings: Recordings) -> None:
    windows = recordings.windows(4, 3)
    joints = torch.from_numpy(windows.joints)
    shift = torch.tensor([0.3, 0.0, 0.4])
    found = pose_figures(Answers(joints=joints + shift, activity=torch.from_numpy(windows.activity)), windows)
    assert found["mpjpe_m"] == pytest.approx(0.5, abs=1e-5) and found["root_m"] == pytest.approx(0.5, abs=1e-5)
    assert found["pose_m"] == pytest.approx(0, abs=1e-5) and found["accuracy"] == 1.0 and found["accuracy_walking"] == 1.0
    wall = torch.from_numpy(windows.behind_wall).float()[:, None, None]
    worse = pose_figures(Answers(joints=joints + wall * shift, activity=torch.full((len(windows),), -1)), windows)
    assert worse["mpjpe_wall_m"] == pytest.approx(0.5, abs=1e-5) and worse["mpjpe_free_m"] == 0.0 and "accuracy" not in worse
    free = dataclasses.replace(windows, behind_wall=np.zeros(len(windows), bool))
    assert "mpjpe_wall_m" not in pose_figures(Answers(joints=joints, activity=torch.full((len(windows),), -1)), free)


@pytest.mark.parametrize("name", ["network", "knn-image", "ridge-profile", "oracle-root"])
def test_a_run_of_the_experiment(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    run_dir = tmp_path_factory.getbasetemp() / "experiment" / name
    data = {"people": 5, "recordings": 4, "frames": 5, "wall": 0.5}
    figures = contender({"contender": name, "data": data, "test_people": 2, "settings": {**TINY, "epochs": 1}}, 100, run_dir)
    assert all(value is None or isinstance(value, float) and np.isfinite(value) for value in figures.values())
    assert figures["mpjpe_cm"] > 1 and figures["train_s"] >= 0
    assert ("selection_spearman" in figures) == (name == "network") and ("accuracy" in figures) == (name != "oracle-root")


def test_latency_is_told_by_tokens(tmp_path: Path) -> None:
    figures = latency({"frames": [2, 4], "settings": TINY}, 100, tmp_path)
    assert set(figures) == {f"{kind}_{figure}" for kind in ("rfmamba", "transformer") for figure in ("ms_64", "ms_128", "exponent")}


def test_every_run_of_the_plan_is_one_of_ours() -> None:
    plan = load_plan("rfmamba", ROOT)
    for run in plan.runs:
        assert callable(run.load_function())
        RFMambaConfig().override(**run.config.get("settings", {}))
