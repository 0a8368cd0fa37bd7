"""The launch files of speed and separation and of methods on a camera, and the example that records a run."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from std_msgs.msg import String

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.bundles import recogniser_bundle
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS
from robot_bridge.auxiliary.monitoring.rfmamba.transformer import build_network
from robot_bridge.launch_file import LaunchError, ProcessSpec, read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.messages import joint_state
from robot_bridge.nodes.person_messages import keypoint_poses
from robot_bridge.separation import film
from robot_bridge.separation.radar_geometry import geometry_of
from robot_bridge.separation.trace import SeparationTrace
from sim_envs.sensors.recordings import RadarScene
from tests.robot_bridge.control.rig import NAMES, PERIOD_S, bench_limits
from tests.robot_bridge.control.test_separation import MJCF
from tests.ros_graph import ROOT

RADAR = {"radar": "true", "radar_bundle": "runs/rfmamba/bundle"}


def launched(name: str, **arguments: str) -> dict[str, ProcessSpec]:
    """Node program -> what is started."""
    specs = read_launch_file(find_launch_file(name), arguments)
    return {next(word for word in spec.command if word.endswith("_node")): spec for spec in specs}


def told(spec: ProcessSpec) -> list[str]:
    return [word for word in spec.command if ":=" in word]


@pytest.mark.parametrize(("given", "missing"), [({}, "error_m"), ({"error_m": "0.4"}, "latency_s"), ({"latency_s": "0.4"}, "error_m")])
def test_a_radars_error_and_latency_have_no_default(given: dict[str, str], missing: str) -> None:
    with pytest.raises(LaunchError, match=f"argument '{missing}' is needed"):
        launched("separation", **RADAR, **given)


def test_guard_and_radar_are_told_the_same_of_the_distances() -> None:
    nodes = launched("separation", **RADAR, error_m="0.4", latency_s="0.35")
    assert {"error_m:=0.4", "latency_s:=0.35"} <= set(told(nodes["separation_node"]))
    assert {"error_m:=0.4", "max_age_s:=0.35"} <= set(told(nodes["human_radar_node"]))
    assert {"error_m:=0.05", "latency_s:=0.1"} <= set(told(launched("separation")["separation_node"]))


def test_the_simulated_radars_windows_are_as_long_as_is_told() -> None:
    assert "frames:=12" in told(launched("separation", **RADAR, error_m="0.4", latency_s="0.35", frames="12")["simulated_person_node"])


def test_no_launch_runs_on_without_a_node_that_it_is_about() -> None:
    nodes = launched("separation", **RADAR, error_m="0.4", latency_s="0.35", record="true")
    assert set(nodes) == {"recorder_node", "arm_node", "separation_node", "simulated_person_node", "human_radar_node", "swing_node"}
    assert all(spec.shutdown_on_exit for spec in nodes.values())
    assert all(spec.shutdown_on_exit for spec in launched("aux", method="demul", bundle="nothing").values())


# -- the example ------------------------------------------------------------------------------------------------------------


@pytest.fixture()
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("separation_example", ROOT / "examples/separation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_in_which_a_node_dies_fails_with_what_the_node_said(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = ProcessSpec(
        name="human_radar-4",
        command=(sys.executable, "-c", "print('[FATAL] bundle nope: not there'); raise SystemExit(1)"),
        shutdown_on_exit=True,
    )
    lives = ProcessSpec(name="arm-1", command=("sleep", "60"), shutdown_on_exit=True)
    monkeypatch.setattr(example, "read_launch_file", lambda file, arguments: (dies, lives))
    with pytest.raises(ArmstackError, match=r"human_radar-4 ended before the run did(.|\n)*bundle nope: not there"):
        example.main(tmp_path, seconds=30.0)
    assert not list(tmp_path.iterdir())


@pytest.fixture()
def nothing_starts(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr(example, "Launch", started)
    monkeypatch.setattr(example, "read_separation", started)


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"seconds": math.nan}, "--seconds: nan, valid: 15 to 86400"),
        ({"seconds": -1.0}, "--seconds: -1.0, valid: 15"),
        ({"seconds": 3.0}, "--seconds: 3.0, valid: 15"),
        ({"limit_m": -1.0}, "limit_m: -1.0, valid"),
        ({"limit_m": math.nan, "bag": Path("bag")}, "limit_m: nan, valid"),
        ({"error_m": -1.0}, "error_m: -1.0, valid"),
        ({"latency_s": math.inf}, "latency_s: inf, valid"),
        ({"radar_bundle": "nope"}, "nope: no bundle.json"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_starts(
    example: ModuleType, given: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArmstackError, match=f"^{re.escape(says)}"):
        example.main(**given)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("nothing_starts")
def test_a_file_is_no_folder_for_a_recording(example: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArmstackError, match="^--out .*file: is a file, valid: a folder"):
        example.main(tmp_path / "file")


def radar_bundle(folder: Path, frames: int, **calibration: float) -> str:
    """An untrained one, which says of itself how far it is off."""
    config = RFMambaConfig().override(network={"embedding": 4, "widths": [6, 8], "states": 2, "head": 16}, frames=frames)
    geometry = dataclasses.replace(geometry_of(RadarScene(), frames), frequencies=tuple(1e9 + 1e7 * np.arange(8)))
    transmitters, receivers = len(geometry.transmitters), len(geometry.receivers)
    shape = frames, transmitters * receivers, 8
    network = build_network(shape, config.network, current=config.current, activities=1)
    places = {name: torch.tensor(getattr(geometry, name)) for name in ("transmitters", "receivers", "frequencies")}
    weights = {**network.state_dict(), "antenna_scale": torch.ones(shape[1])}
    numbers = {"period_s": geometry.period_s, **calibration}
    return str(recogniser_bundle("rfmamba", config, weights, classes=("walking",), arrays=places, calibration=numbers).save(folder))


@pytest.mark.usefixtures("nothing_starts")
def test_a_radar_is_held_to_its_own_error_before_anything_starts(example: ModuleType, tmp_path: Path) -> None:
    bundle = radar_bundle(tmp_path / "bundle", 4, distance_error_95_m=0.392)
    for given, says in [
        ({}, "--error-m: not given, valid: .*0.40 m or more"),
        ({"error_m": 0.39, "latency_s": 0.2}, "--error-m: 0.39 m, valid: .*0.40 m or more"),
        ({"error_m": 0.4}, "--latency-s: not given, valid"),
        ({"error_m": 0.4, "latency_s": 10.0}, "--latency-s: 10.0, valid"),
    ]:
        with pytest.raises(ArmstackError, match=f"^{says}"):
            example.main(tmp_path, radar_bundle=bundle, **given)
    with pytest.raises(ArmstackError, match="does not say how far its distances are off"):
        example.main(tmp_path, radar_bundle=radar_bundle(tmp_path / "old", 4), error_m=0.4, latency_s=0.2)
    other = recogniser_bundle("tempme", RFMambaConfig(), {"w": torch.zeros(1)}, classes=("walking",)).save(tmp_path / "other")
    with pytest.raises(ArmstackError, match="bundle of method 'tempme'.*valid: rfmamba"):
        example.main(tmp_path, radar_bundle=str(other), error_m=0.4, latency_s=0.2)


def test_the_simulated_radar_is_told_the_bundles_frames(example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Exception):
        pass

    def record(out: Path, seconds: float, arguments: dict[str, str]) -> Path:
        raise Stopped(arguments)

    monkeypatch.setattr(example, "record", record)
    bundle = radar_bundle(tmp_path / "bundle", 12, distance_error_95_m=0.4)
    with pytest.raises(Stopped) as stopped:
        example.main(tmp_path, radar_bundle=bundle, error_m=0.4, latency_s=0.2)
    (arguments,) = stopped.value.args
    assert arguments == {
        "limit_m": "0.5", "error_m": "0.4", "latency_s": "0.2", "radar": "true", "radar_bundle": bundle, "frames": "12",
    }  # fmt: skip


def test_ctrl_c_before_anything_was_recorded_is_no_error_of_a_bag(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(example.Launch, "wait", interrupted)
    lives = ProcessSpec(name="arm-1", command=("sleep", "60"), shutdown_on_exit=True)
    monkeypatch.setattr(example, "read_launch_file", lambda file, arguments: (lives,))
    with pytest.raises(KeyboardInterrupt):
        example.main(tmp_path)


def test_picture_and_film_are_numbered_as_their_bag(example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ones, seconds = np.ones(3), np.arange(3) * 0.01
    trace = SeparationTrace(
        seconds=seconds, distance_m=ones, heard_m=ones, speed=ones, measured_speed=ones, scale=ones, held=np.zeros(3, bool)
    )
    drawn: list[Path] = []
    monkeypatch.setattr(example, "read_separation", lambda bag: trace)
    monkeypatch.setattr(example, "draw_separation", lambda file, *_, **__: drawn.append(file))
    monkeypatch.setattr(example, "write_film", lambda bag, file: drawn.append(file))
    example.main(bag=tmp_path / "bag")
    example.main(bag=tmp_path / "bag_1")
    assert drawn == [tmp_path / name for name in ("separation.png", "separation.mp4", "separation_1.png", "separation_1.mp4")]


def test_the_film_shows_arm_and_keypoints_and_is_grey_while_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer = ArmOffer(
        contracts=(), limits=bench_limits(), tool_frame="ee", ik_model=MJCF, sim_mode="none", clock="system", control_period_s=PERIOD_S
    )
    stamps = [10**9 + 10**8 * index for index in range(6)]
    people = np.full((len(JOINTS), 3), 1.5) + np.random.default_rng(0).normal(0, 0.2, (len(JOINTS), 3))
    found = {
        "contract": [(stamps[0], String(data=offer.to_json()))],
        "joints": [(stamp, joint_state(NAMES, np.zeros(3), np.zeros(3), stamp)) for stamp in stamps],
        "true": [(stamp, keypoint_poses(people, frame="base", stamp_ns=stamp)) for stamp in stamps],
        "found": [(stamp, keypoint_poses(people + [0.3, 0, 0], frame="base", stamp_ns=stamp)) for stamp in stamps[3:]],
    }
    ones = np.ones(6)
    trace = SeparationTrace(
        seconds=np.arange(6) * 0.1, distance_m=ones, heard_m=ones, speed=ones, measured_speed=ones, scale=ones,
        held=np.arange(6) < 3, begin_ns=stamps[0],
    )  # fmt: skip
    monkeypatch.setattr(film, "messages_of", lambda *_, **__: found)
    monkeypatch.setattr(film, "read_separation", lambda bag: trace)
    written: list[np.ndarray] = []
    monkeypatch.setattr(film, "write_mp4", lambda file, frames, fps: written.extend(frames))
    film.write_film(tmp_path, tmp_path / "film.mp4")
    assert len(written) == 6 and len({picture.shape for picture in written}) == 1
    assert written[0][200, 5].tolist() == [214, 214, 214] and written[5][200, 5].tolist() == [255, 255, 255]

    def drawn(picture: np.ndarray, colour: tuple[int, int, int]) -> int:
        return int((picture == colour).all(axis=-1).sum())

    assert all(drawn(picture, film.ARM) > 500 and drawn(picture, film.TRUE) > 500 for picture in written)
    assert not drawn(written[2], film.FOUND) and drawn(written[3], film.FOUND) > 200
