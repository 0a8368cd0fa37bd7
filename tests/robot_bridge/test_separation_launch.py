"""The launch files of speed and separation and of methods on a camera, and the example that records a run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from std_msgs.msg import String

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS
from robot_bridge.launch_file import LaunchError, ProcessSpec, read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.messages import joint_state
from robot_bridge.nodes.person_messages import keypoint_poses
from robot_bridge.separation import film
from robot_bridge.separation.trace import SeparationTrace
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


def test_no_launch_runs_on_without_a_node_that_it_is_about() -> None:
    nodes = launched("separation", **RADAR, error_m="0.4", latency_s="0.35")
    assert set(nodes) == {"arm_node", "separation_node", "simulated_person_node", "human_radar_node", "swing_node"}
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
