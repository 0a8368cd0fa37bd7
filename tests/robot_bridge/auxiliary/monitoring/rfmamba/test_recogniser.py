"""From recordings to a bundle and back, through the command line and beside it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle, BundleError
from rl_core.errors import ArmstackError, ContractMismatch
from robot_bridge.auxiliary.monitoring.rfmamba import recogniser
from robot_bridge.auxiliary.monitoring.rfmamba.baselines import Answers
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echo_data import simulate
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings
from robot_bridge.auxiliary.monitoring.rfmamba.evaluation import evaluate, pose_figures
from robot_bridge.auxiliary.monitoring.rfmamba.interface import HumanRadar, RadarError
from robot_bridge.auxiliary.monitoring.rfmamba.recogniser import RadarRecogniser, train
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from tests.robot_bridge.command_line import Cli


@pytest.fixture(scope="module")
def bundle(recordings: Recordings, tiny: RFMambaConfig, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return train(recordings, tiny, tmp_path_factory.mktemp("run"), seed=0, say=lambda text: None)


@pytest.fixture(scope="module")
def radar(bundle: Bundle) -> RadarRecogniser:
    return load_auxiliary(find_method("rfmamba"), bundle)


def test_a_bundle_comes_back_from_disk_the_same(bundle: Bundle, radar: RadarRecogniser, recordings: Recordings, tmp_path: Path) -> None:
    again = load_auxiliary(find_method("rfmamba"), Bundle.load(bundle.save(tmp_path / "bundle")))
    assert isinstance(again, HumanRadar) and again.geometry == radar.geometry == dataclasses.replace(recordings.geometry, frames=4)
    assert again.activities == recordings.activities == again.classes and again.current == 3
    echo, background = recordings.echoes[0, :4], recordings.backgrounds[0]
    first, second = radar.perceive(echo, background), again.perceive(echo, background)
    np.testing.assert_array_equal(first.joints, second.joints)
    assert first.activity == second.activity and sum(first.activity.values()) == pytest.approx(1, abs=1e-5)
    assert first.joints.shape == (14, 3) and first.joints.dtype == np.float32 and first.body.shape == (4, 4, 16)
    assert ((first.body >= 0) & (first.body <= 1)).all()


def test_the_background_is_taken_away(radar: RadarRecogniser, recordings: Recordings) -> None:
    echo, background = recordings.echoes[0, :4], recordings.backgrounds[0]
    nothing = np.zeros_like(background)
    with_it, without = radar.perceive(echo, background), radar.perceive(echo - background, nothing)
    np.testing.assert_allclose(with_it.joints, without.joints, atol=1e-5)
    assert not np.allclose(with_it.joints, radar.perceive(echo, nothing).joints, atol=1e-3)


def test_as_a_recogniser(radar: RadarRecogniser, recordings: Recordings) -> None:
    echoes, background = recordings.echoes[:3, :4], recordings.backgrounds[0]
    found = radar.predict(echoes, {"background": background})
    found.check(3, radar.classes)
    assert found.map is not None and found.map.shape == (3, 16, 16)
    np.testing.assert_allclose(found.scores[1], list(radar.perceive(echoes[1], background).activity.values()), atol=1e-5)
    with pytest.raises(RadarError, match="without 'background'"):
        radar.predict(echoes)
    with pytest.raises(RadarError, match=r"radar echo: uint8 \(1, 16, 16, 3\), valid: complex \(1, 4, 4, 4, 16\)"):
        radar.predict(np.zeros((1, 16, 16, 3), np.uint8))  # type: ignore[arg-type]


def test_echoes_that_do_not_fit_are_refused(radar: RadarRecogniser, recordings: Recordings) -> None:
    echo, background = recordings.echoes[0, :4].copy(), recordings.backgrounds[0]
    with pytest.raises(RadarError, match=r"radar echo: complex64 \(1, 3, 4, 4, 16\), valid: complex \(1, 4, 4, 4, 16\)"):
        radar.perceive(echo[:3], background)
    with pytest.raises(RadarError, match="radar background: complex64 .*valid: complex"):
        radar.perceive(echo, background[:2])
    with pytest.raises(RadarError, match="radar echo: float32"):
        radar.perceive(np.abs(echo), background)
    echo[0, 0, 0, 0] = np.inf
    with pytest.raises(RadarError, match="NaN or infinity"):
        radar.perceive(echo, background)


def test_recordings_of_another_radar_are_refused(radar: RadarRecogniser, recordings: Recordings) -> None:
    """A mismatch would ruin the answers without looking wrong."""
    other = simulate(people=1, recordings=4, frames=4, frequencies=16, wall=0.0, seed=1)
    moved = dataclasses.replace(other.geometry, receivers=tuple((x, y + 0.1, z) for x, y, z in other.geometry.receivers))
    with pytest.raises(ContractMismatch, match=r"radar.receivers\[0\]: needs .* offered"):
        evaluate(radar, dataclasses.replace(other, geometry=moved))
    figures = evaluate(radar, other)
    assert figures["mpjpe_m"] > 0 and 0 <= figures["accuracy"] <= 1 and 0 <= figures["body_iou"] <= 1 and figures["ms_per_window"] > 0
    assert "mpjpe_wall_m" not in figures and figures["mpjpe_free_m"] == figures["mpjpe_m"]


def test_a_stopped_training_goes_on_and_ends_as_one_that_was_not(
    bundle: Bundle, recordings: Recordings, tiny: RFMambaConfig, tmp_path: Path
) -> None:
    said: list[str] = []

    def stop(line: str) -> None:
        if line.startswith("epoch 1/2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recordings, tiny, tmp_path, seed=0, say=stop)
    with pytest.raises(ArmstackError, match="a run with another seed; valid: equal settings and data"):
        train(recordings, tiny, tmp_path, seed=1, say=said.append)
    again = train(recordings, tiny, tmp_path, seed=0, say=said.append)
    told = [line for line in said if line.startswith("epoch ")]
    assert len(told) == 2 and told[0].startswith("epoch 1/2: found in the run's folder") and told[1].endswith("about 0 s left")
    assert all(torch.equal(values, again.weights[name]) for name, values in bundle.weights.items())
    assert bundle.metrics == again.metrics
    said.clear()
    train(recordings, tiny, tmp_path, seed=0, say=said.append)  # stopped before the bundle was written
    (line,) = (line for line in said if line.startswith("epoch "))
    assert line.startswith("epoch 2/2: found in the run's folder")


def test_a_bundle_says_how_far_its_distances_are_off(
    recordings: Recordings, tiny: RFMambaConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recogniser, "_LEAST_PEOPLE", 2)
    monkeypatch.setattr(recogniser, "_LEAST_WINDOWS", 24)
    held_out = tiny.override(epochs=1, held_out=0.34)
    bundle, said = train(recordings, held_out, tmp_path / "many", seed=0, say=lambda text: None), list[str]()
    told = bundle.config["calibration"]["distance_error_95_m"]
    assert told == bundle.metrics["held_out/distance_error_95_m"]
    assert load_auxiliary(find_method("rfmamba"), bundle).distance_error_95_m == told
    monkeypatch.setattr(recogniser, "_LEAST_PEOPLE", 3)
    few = train(recordings, held_out, tmp_path / "few", seed=0, say=said.append)
    assert said[-1].startswith("24 windows of 2 people do not tell how far distances are off") and "3 people or more" in said[-1]
    assert load_auxiliary(find_method("rfmamba"), few).distance_error_95_m == math.inf


def test_six_people_do_not_tell_how_far_distances_are_off(radar: RadarRecogniser) -> None:
    assert radar.distance_error_95_m == math.inf


def test_the_error_of_distances_is_of_those_who_are_near(recordings: Recordings) -> None:
    """A radar that puts everybody in one place is off by most where somebody is near."""
    windows = recordings.windows(4, 3)
    joints = torch.from_numpy(windows.joints)
    activity = torch.full((len(windows),), -1)
    assert pose_figures(Answers(joints=joints, activity=activity), windows)["distance_error_95_m"] == 0.0
    further = joints + torch.tensor([1.0, 0.0, 0.0])  # people are in front of the arm
    assert 0.5 < pose_figures(Answers(joints=further, activity=activity), windows)["distance_error_95_m"] <= 1.0
    farthest = joints[joints[:, :, 0].amin(dim=1).argmax()].expand_as(joints)
    near = windows.joints[:, :, 0].min(axis=1)
    assert pose_figures(Answers(joints=farthest, activity=activity), windows)["distance_error_95_m"] > 0.9 * (np.median(near) - near.min())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"arrays": {}}, "radar geometry: 'transmitters'; valid: arrays transmitters, receivers, frequencies"),
        ({"weights": {"antenna_scale": torch.ones(3)}}, r"antenna_scale of \(3,\), valid: \(16,\)"),
        ({"weights": {"antenna_scale": torch.ones(16)}}, "weights do not fit its settings"),
    ],
)
def test_a_bundle_that_cannot_be_is_refused(bundle: Bundle, change: dict[str, object], says: str) -> None:
    with pytest.raises(BundleError, match=says):
        load_auxiliary(find_method("rfmamba"), dataclasses.replace(bundle, **change))  # type: ignore[arg-type]


def test_from_data_to_figures(cli: Cli, tmp_path: Path) -> None:
    small = ("--people", "2", "--recordings", "4", "--frames", "4", "--wall", "0.5")
    made = cli("aux", "data", "rfmamba", "--out", tmp_path / "data", *small, "--seed", "1", "--json")
    assert made.status == 0 and made.figures["frames"] == 32, made.err
    again = cli("aux", "data", "rfmamba", "--out", tmp_path / "data", *small, "--seed", "1", "--json")
    assert again.status == 0 and again.figures["frames"] == 32 and "are there already" in again.err
    other = cli("aux", "data", "rfmamba", "--out", tmp_path / "data", *small, "--seed", "2", "--json")
    assert other.status != 0 and "'seed': 1" in other.err and "valid: equal settings, or a new folder" in other.err
    run = tmp_path / "run"
    quick = ("--config.epochs", "1", "--config.network.widths", "4", "4", "--config.network.head", "8", "--config.network.states", "2")
    trained = cli("aux", "train", "rfmamba", "--data", tmp_path / "data", "--run-dir", run, *quick, "--json")
    assert (
        trained.status == 0 and "4 windows of 4 frames, 1 people; 1 held out" in trained.err and trained.figures["held_out/mpjpe_m"] > 0
    ), trained.err
    judged = cli("aux", "eval", "rfmamba", "--bundle", run / "bundle", "--data", tmp_path / "data", "--json")
    assert judged.status == 0 and judged.figures["sha256"] == trained.figures["sha256"] and judged.figures["mpjpe_m"] > 0, judged.err
    assert judged.figures["distance_error_95_m"] >= 0 and judged.figures["latency_s"] > 0
