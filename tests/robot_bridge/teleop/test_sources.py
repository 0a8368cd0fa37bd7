"""What a person moves an arm with: a terminal, a SpaceMouse, a leader arm on an emulated bus, a script."""

from __future__ import annotations

import os
import pty
import re
import sys
import termios
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from robot_bridge.teleop.base import SourceError, View
from robot_bridge.teleop.keyboard import Keyboard
from robot_bridge.teleop.keys import ACTION_HELP, ACTIONS, HELD_S, MOVE_HELP, MOVES
from robot_bridge.teleop.leader import Leader
from robot_bridge.teleop.registry import SOURCES, make_source
from robot_bridge.teleop.script import Script
from robot_bridge.teleop.settings import JointMap
from robot_bridge.teleop.spacemouse import SpaceMouse
from tests.robot_bridge.arms.servo_bench import TICKS_PER_RAD, Bench
from tests.ros_graph import ROOT


def view(now_s: float, *, following: bool = True, recording: bool = False) -> View:
    return View(now_s=now_s, following=following, recording=recording)


# -- keyboard ---------------------------------------------------------------------------------------------------------------


def test_a_key_moves_for_a_moment_and_a_held_one_moves_on() -> None:
    master, slave = pty.openpty()
    keyboard = Keyboard(fd=slave)
    keyboard.open()
    os.write(master, b"w")
    assert keyboard.read(view(1.0)).twist == pytest.approx([1, 0, 0, 0, 0, 0])
    assert keyboard.read(view(1.0 + HELD_S - 0.01)).twist is not None
    assert keyboard.read(view(1.0 + HELD_S)).twist is None  # no key, no motion
    for k in range(5):
        os.write(master, b"wl")
        assert keyboard.read(view(2.0 + 0.1 * k)).twist == pytest.approx([1, 0, 0, 0, 0, -1])
    os.write(master, b"\x1b[Atb +q")  # an arrow, and what comes with it, means nothing
    assert keyboard.read(view(9.0)).events == ()
    os.write(master, b"tb +q")
    assert keyboard.read(view(9.1)).events == ("take", "begin", "gripper", "faster", "quit")
    keyboard.close()
    os.close(master)
    os.close(slave)


def test_the_terminal_is_as_it_was_afterwards_and_one_that_is_gone_is_an_error() -> None:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    keyboard = Keyboard(fd=slave, moves=False)
    keyboard.open()
    assert termios.tcgetattr(slave)[3] & (termios.ECHO | termios.ICANON) == 0
    assert termios.tcgetattr(slave)[3] & termios.ISIG  # Ctrl-C still ends the program
    os.write(master, b"wt")
    reading = keyboard.read(view(0.0))
    assert reading.twist is None and reading.events == ("take",)
    keyboard.close()
    assert termios.tcgetattr(slave) == before
    os.close(master)
    with pytest.raises(SourceError, match="the terminal is gone"):
        keyboard.read(view(0.1))
    os.close(slave)


def test_without_a_terminal_the_keyboard_says_so() -> None:
    with open(os.devnull) as nothing, pytest.raises(SourceError, match="no terminal; valid: .*leader"):
        Keyboard(fd=nothing.fileno()).open()


def test_every_key_is_explained() -> None:
    shown = " ".join([*MOVE_HELP, *ACTION_HELP]).replace("space", " ")
    assert set(MOVES) | set(ACTIONS) - {"="} <= set(shown)
    assert not set(MOVES) & set(ACTIONS)


# -- SpaceMouse -------------------------------------------------------------------------------------------------------------


class FakeMouse:
    """Stands in for pyspacemouse's device: a queue of reports; without one it says its last state again."""

    def __init__(self) -> None:
        self.reports: list[dict[str, float]] = []
        self.state = SimpleNamespace(t=0.0, x=0.0, y=0.0, z=0.0, roll=0.0, pitch=0.0, yaw=0.0, buttons=[0, 0])
        self.gone = False

    def read(self) -> SimpleNamespace:
        if self.gone:
            raise OSError("read failed")
        if self.reports:
            self.state = SimpleNamespace(**{**vars(self.state), **self.reports.pop(0), "t": self.state.t + 0.01})
        return self.state

    def close(self) -> None:
        self.gone = True


@pytest.fixture
def mouse(monkeypatch: pytest.MonkeyPatch) -> FakeMouse:
    device = FakeMouse()
    module: Any = types.ModuleType("pyspacemouse")
    module.AxisConvention = SimpleNamespace(ROS="ros")
    module.open = lambda device=None, axis_convention="": mouse
    mouse = device
    monkeypatch.setitem(sys.modules, "pyspacemouse", module)
    return device


def test_the_newest_report_counts_and_a_mouse_that_falls_silent_moves_nothing(mouse: FakeMouse) -> None:
    source = SpaceMouse()
    source.open()
    mouse.reports = [{"x": 0.1 * k, "yaw": 0.01} for k in range(8)]  # more than one a period
    assert source.read(view(0.0)).twist == pytest.approx([0.7, 0, 0, 0, 0, 0])
    assert source.read(view(0.15)).twist is not None
    assert source.read(view(0.5)).twist is None  # unplugged while it was held: its last state says that it still is
    mouse.reports = [{"buttons": [1, 0]}]  # type: ignore[dict-item]
    assert source.read(view(0.6)).events == ("gripper",)
    assert source.read(view(0.7)).events == ()
    mouse.gone = True
    with pytest.raises(SourceError, match="was it unplugged"):
        source.read(view(0.8))


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspacemouse", None)
    with pytest.raises(SourceError, match=r"pip install 'armstack\[spacemouse\]'"):
        SpaceMouse().open()


# -- leader -----------------------------------------------------------------------------------------------------------------


def test_a_leader_is_read_without_torque_and_mapped_by_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "so101")
    joints = {"base": JointMap(joint="shoulder_pan", scale=-2.0, offset=0.1), "wrist": JointMap(joint="wrist_roll")}
    leader = Leader(bench.arm, joints)
    with bench.bus:
        leader.open()
        assert not any(servo.get("Torque_Enable") for servo in bench.bus.servos.values())
        first = leader.read(view(0.0))
        assert first.joints == pytest.approx({"base": 0.1, "wrist": 0.0}, abs=5e-3)
        assert first.gripper == pytest.approx(0.0, abs=0.05)  # half open
        bench.servo("shoulder_pan").turn_by_hand(0.2 * bench.calibration.joints["shoulder_pan"].direction * TICKS_PER_RAD)
        bench.seconds(0.1)
        for _ in range(12):  # also where the driver asks for the torque, which is off
            moved = leader.read(view(0.1))
        assert moved.joints == pytest.approx({"base": -0.3, "wrist": 0.0}, abs=5e-3)
        leader.close()


def test_a_leader_whose_bus_fails_is_an_error_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "so101", patience_s=0.05)
    leader = Leader(bench.arm, {})
    with bench.bus:
        leader.open()
        assert list(leader.read(view(0.0)).joints or ()) == list(bench.model.names[:-1])
        bench.bus.unplug()
        with pytest.raises(SourceError, match="leader: .*(unplugged|port)"):
            leader.read(view(0.1))
    with pytest.raises(SourceError, match="joints {'base': 'neck'}, valid: joints of the leader, .*shoulder_pan"):
        Leader(bench.arm, {"base": JointMap(joint="neck")})


# -- script and registry ----------------------------------------------------------------------------------------------------


def test_a_script_waits_for_the_arm_and_makes_up_for_nothing() -> None:
    script = Script([{"key": "t"}, {"until": "recording"}, {"delta": {"z": 0.04}, "for": 0.2}, {"key": "w", "for": 0.1}, {"key": "q"}])
    assert script.read(view(0.0, following=False)).events == ("take",)
    assert script.read(view(0.1, following=False)).step is None
    assert script.read(view(5.0, following=False, recording=True)).step is None  # the arm does not follow yet
    steps = [script.read(view(5.0 + 0.05 * k, recording=True)) for k in range(12)]
    moved = [reading.step for reading in steps if reading.step is not None]
    assert np.sum(moved, axis=0) == pytest.approx([0, 0, 0.04, 0, 0, 0])
    assert sum(reading.twist is not None for reading in steps) == 2
    assert [event for reading in steps for event in reading.events] == ["quit"] and script.done


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- {key: z}", "entry 1: {'key': 'z'}; valid: {key: one of"),
        ("- {wait: .nan}", "valid: a finite number"),
        ("- {delta: {x: 1.0}, for: 0}", "valid: more than 0"),
        ("- {delta: {w: 1.0}, for: 1}", "entry 1"),
        ("- t", "'t', valid: keys and values"),
        ("script: nowhere.yaml", "nowhere.yaml: not readable"),
        ("- [", "not readable as YAML"),
    ],
)
def test_a_script_that_cannot_be_meant_is_refused_with_file_and_entry(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(content)
    with pytest.raises(SourceError) as error:
        make_source("script", file)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gamepad", "", "no source 'gamepad'; sources: keyboard, spacemouse, leader, script"),
        ("leader", "", "setting arm, model, port, calibration is missing; settings: arm, model, port"),
        ("leader", "{arm: feetech, model: so101, port: /dev/x, calibration: no.json}", "no.json"),
        ("leader", "{arm: ur, model: so101, port: /dev/x, calibration: no.json}", "'ur', valid: 'feetech', 'dynamixel'"),
        ("leader", "{arm: feetech, model: a, port: b, calibration: c, joints: {x: {joint: y, scale: .nan}}}", "valid: finite numbers"),
        ("keyboard", "speed: 1", "has no field 'speed'"),
    ],
)
def test_settings_that_cannot_be_used_say_what_would_be_valid(tmp_path: Path, name: str, content: str, said: str) -> None:
    file = tmp_path / "source.yaml"
    file.write_text(content)
    with pytest.raises(SourceError) as error:
        make_source(name, file)
    assert said in str(error.value)


def test_the_settings_that_come_with_the_project_are_valid(tmp_path: Path) -> None:
    config = Path(__file__).parents[3] / "launch" / "config"
    assert not getattr(make_source("script", config / "teleop_script.yaml"), "done", True)
    bench = Bench(tmp_path, "so101")
    file = tmp_path / "leader.yaml"
    file.write_text((config / "teleop_leader.yaml").read_text().replace("leader.json ", f"{bench.file} "))
    leader = make_source("leader", file)
    assert isinstance(leader, Leader) and set(leader.joints) == set(bench.model.names[:-1])
    assert set(SOURCES) == {"keyboard", "spacemouse", "leader", "script"}


def test_the_script_that_the_page_shows_is_one() -> None:
    page = (ROOT / "docs/how-to/teleoperate.md").read_text()
    (shown,) = re.findall(r"```yaml\n(- \{key: t\}.*?)```", page, re.DOTALL)
    assert not Script(yaml.safe_load(shown)).done
    assert all(key in shown for key in ("delta", "wait", "following", "idle", "recording"))
