"""Figures of an arm beside a person, and the experiment that they come from, on one short visit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS, Person, RadarGeometry
from robot_bridge.separation import experiment
from robot_bridge.separation.experiment import Guest, run
from robot_bridge.separation.radar_geometry import geometry_of
from robot_bridge.separation.trace import SeparationTrace, figures
from sim_envs.sensors.recordings import RadarScene, Recorder
from sim_envs.sensors.visit import record_visit
from sim_envs.sensors.walker import Walker
from tests.ros_graph import ROOT


def trace(**changes: object) -> SeparationTrace:
    """Somebody comes and goes within 2 s; the arm is held at 0.6 s, stands at 0.8 s and goes on at 1.6 s."""
    seconds = np.arange(20) * 0.1
    values: dict[str, object] = {
        "seconds": seconds,
        "distance_m": 0.3 + np.abs(seconds - 1.0),
        "heard_m": 0.4 + np.abs(seconds - 1.0),
        "speed": np.where((seconds > 0.75) & (seconds < 1.55), 0.0, 0.5),
        "measured_speed": np.where((seconds > 0.75) & (seconds < 1.55), 1e-4, 0.5),
        "scale": np.ones(20),
        "held": (seconds > 0.55) & (seconds < 1.55),
    }
    return SeparationTrace(**{**values, **changes})  # type: ignore[arg-type]


def test_figures_of_a_visit_that_went_well() -> None:
    found = figures(trace(), 0.45, np.full(20, 0.6))
    assert found["violations"] == 0 and found["holds"] == 1
    assert found["stop_s_max"] == pytest.approx(0.2) and found["stop_distance_m_min"] == pytest.approx(0.5)
    assert found["least_moving_m"] == pytest.approx(0.6) and found["within_s"] == pytest.approx(0.3)
    assert found["held_percent"] == pytest.approx(50.0) and found["moving_percent"] == pytest.approx(60.0)
    assert found["heard_error_m_95"] == pytest.approx(0.1)
    assert found["false_holds"] == 1 and found["false_hold_percent"] == pytest.approx(20.0)  # begun at 0.7 m


def test_motion_within_the_limit_is_a_violation_whatever_was_heard() -> None:
    found = figures(trace(speed=np.full(20, 1e-9), heard_m=np.full(20, 5.0)), 0.45)
    assert found["violations"] == 3 and found["violation_s"] == pytest.approx(0.3)
    assert found["measured_violations"] == 0 and "false_holds" not in found


def test_motion_that_is_measured_is_a_violation_whatever_was_sent() -> None:
    found = figures(trace(measured_speed=np.where(np.arange(20) == 10, 0.02, 1e-4)), 0.45)
    assert found["violations"] == found["measured_violations"] == 1 and found["least_moving_m"] == pytest.approx(0.3)


def test_a_hold_in_which_the_arm_never_stands_counts_whole() -> None:
    found = figures(trace(speed=np.full(20, 0.5)), 0.45)
    assert found["stop_s_max"] == pytest.approx(1.0) and found["unstopped_holds"] == found["holds"] == 1
    assert found["stop_distance_m_min"] == pytest.approx(0.3)
    twice = trace(held=(np.arange(20) < 3) | (np.arange(20) > 5), speed=np.where(np.arange(20) < 8, 0.5, 0.0))
    found = figures(twice, 0.45)  # the first ends before the arm stands, which is not the time of the second
    assert found["stop_s_max"] == pytest.approx(0.3) and found["unstopped_holds"] == 1 and found["holds"] == 2


class ConstantRadar:
    """Sees somebody 1.6 m in front of the base whatever comes."""

    activities, current = ("standing",), 3

    def __init__(self, geometry: RadarGeometry) -> None:
        self.geometry = geometry

    def perceive(self, echo: NDArray[np.complex64], background: NDArray[np.complex64]) -> Person:
        assert echo.shape == self.geometry.shape and np.abs(echo - background).max() > 0
        joints = np.tile(np.float32([1.6, 0.0, 0.2]), (len(JOINTS), 1))
        return Person(joints=joints, activity={"standing": 1.0}, body=np.zeros(self.geometry.shape[1:], np.float32))


@pytest.fixture(autouse=True)
def _short_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    def guest(recorder: Recorder, rng: np.random.Generator) -> Guest:
        walker = Walker([(0, 2.6, 0.2), (0.6, 2.6, 0.2), (1.7, 1.05, 0.0), (2.1, 1.05, 0.0), (3.2, 2.6, 0.2), (3.6, 2.6, 0.2)])
        return Guest(walker=walker, visit=record_visit(recorder, walker, rng))

    monkeypatch.setattr(experiment, "_guest", guest)


def _config(**changes: object) -> dict[str, object]:
    written = yaml.safe_load((ROOT / "experiments/separation.yaml").read_text())["runs"][0]["config"]
    return {**written, "visits": 1, "calibration": 1, **changes}


def test_a_guarded_arm_does_not_move_within_the_limit_and_an_unguarded_one_does(tmp_path: Path) -> None:
    guarded = run(_config(bundle=""), 100, tmp_path)
    assert guarded["violations"] == 0 and guarded["within_s"] > 0.3 and guarded["moving_percent"] > 20 and guarded["error_m"] == 0.0
    assert (tmp_path / "separation.png").is_file()
    unguarded = run(_config(bundle="", guarded=False), 100, tmp_path)
    assert unguarded["violations"] > 20 and unguarded["holds"] == 0


def test_the_arm_waits_for_the_restart_delay(tmp_path: Path) -> None:
    assert run(_config(bundle="", restart_delay_s=60.0), 100, tmp_path)["held_percent"] == 100.0


def test_the_radars_own_error_widens_the_trigger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "_radar", lambda bundle: ConstantRadar(geometry_of(RadarScene(), 4)))
    found = run(_config(person_mps=0.5), 100, tmp_path)
    assert found["error_m"] > 0.2 and found["trigger_standing_m"] == pytest.approx(0.5 + found["error_m"] + 0.5 * (0.2 + 0.02 + 0.012))
    assert found["look_ms_95"] is not None
