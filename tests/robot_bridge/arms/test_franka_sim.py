"""The Franka driver against the simulator of the robot's protocol (make sims)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robot_bridge.arms.base import Arm
from robot_bridge.arms.franka import FrankaArm
from robot_bridge.control.kinematics import Kinematics
from tests.robot_bridge.arms.following import Following, assert_inside_limits, following, wait, wait_for_rest
from tests.robot_bridge.arms.killing import seconds_of_motion, stated_s
from tests.robot_bridge.arms.simulators import franky_sim
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import NodeProcess


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address, and where the simulator writes what its joints do."""
    pytest.importorskip("franky", reason="pip install 'armstack[franka]'")
    log = tmp_path_factory.mktemp("franka") / "joints"
    with franky_sim(log) as host:
        yield host, log


@pytest.fixture(scope="module")
def host(simulation: tuple[str, Path]) -> str:
    return simulation[0]


@pytest.fixture(scope="module")
def run(host: str) -> Iterator[Following]:
    """A loop as fast as the simulator, which falls behind a clock on a busy machine."""
    arm = FrankaArm(host=host)
    with following(arm, factor=_rate(host)) as run:
        yield run


def _rate(host: str) -> float:
    """Simulated seconds in a second, at most 1."""
    import franky

    robot = franky.Robot(host, realtime_config=franky.RealtimeConfig.Ignore)
    first, begin = robot.state.time.to_sec(), time.monotonic()
    wait(lambda: time.monotonic() - begin > 0.5, "half a second")
    return float(min(1.0, max(0.02, 0.8 * (robot.state.time.to_sec() - first) / (time.monotonic() - begin))))


def test_it_reads_joints_hand_and_an_end_effector_that_fits_its_kinematics(run: Following) -> None:
    arm = run.arm
    assert isinstance(arm, Arm) and isinstance(arm, FrankaArm)
    state = arm.read()
    assert state.names == arm.limits.names == arm.joint_names
    assert 0.0 <= state.positions[-1] <= 0.08 and state.wrench is not None
    position, quaternion = Kinematics(arm.description).fk(state.positions[:7])
    assert state.ee_pos == pytest.approx(position, abs=0.01)  # the robot's own tool frame lies 6 mm further out
    assert abs(float(state.ee_quat @ quaternion)) == pytest.approx(1.0, abs=1e-4)


def test_pain_16_discontinuity_reflex(run: Following) -> None:
    """A first command 0.1 rad from the measured pose becomes a ramp from there; franky's controller gets no step either."""
    handed: list[np.ndarray] = []
    command = run.arm.command

    def watched(positions: np.ndarray, period_s: float) -> None:
        handed.append(positions.copy())
        command(positions, period_s)

    run.arm.command = watched  # type: ignore[method-assign]
    first = len(run.periods)
    for _ in range(12):
        run.send(0.1)
        time.sleep(0.05 / run.factor)
    run.arm.command = command  # type: ignore[method-assign]
    assert run.refusals == []
    periods = run.periods[first:]
    assert_inside_limits(periods, run.arm.limits)
    assert np.abs(periods[0].output.positions - periods[0].measured.positions).max() < 0.01
    assert periods[-1].output.positions[0] - run.begin[0] > 0.09
    steps = np.abs(np.diff(np.array(handed)[:, :7], axis=0)).max(axis=0)
    assert (steps < 0.01).all() and (steps > 0).any()
    assert not run.arm._robot.has_errors and run.loop.status().state in ("moving", "holding")  # type: ignore[attr-defined]


def test_a_sine_is_followed_inside_all_limits_at_every_sample(run: Following) -> None:
    first = len(run.periods)
    run.swing(0.05, 1.0, 1.0)
    periods = run.periods[first:]
    assert run.refusals == []
    assert_inside_limits(periods, run.arm.limits)
    sent = np.array([period.output.positions[:7] for period in periods])
    measured = np.array([period.measured.positions[:7] for period in periods])
    assert np.ptp(measured[:, 0]) > 0.05
    assert np.abs(measured - sent).max() < 0.05
    assert np.abs(sent[:, 1:] - sent[0, 1:]).max() < 0.05


def test_an_e_stop_brings_it_to_rest_and_no_error_stands(run: Following) -> None:
    run.loop.e_stop(True, "button")
    wait(lambda: run.loop.status().state == "stopped", "the stop")
    wait(lambda: run.arm._tracker is None, "the driver's stop")  # type: ignore[attr-defined]
    wait_for_rest(run.arm.read, moved=1e-3)
    assert not run.arm._robot.has_errors  # type: ignore[attr-defined]


def test_after_kill_9_of_the_process_motion_ends_within_the_time_that_the_safety_report_states(
    run: Following, simulation: tuple[str, Path], cli: Cli
) -> None:
    """Read from the simulator's side, in its own time: on a busy machine it is slower than a clock, so the loop is, too."""
    host, log = simulation
    run.close()
    process = NodeProcess("tests.robot_bridge.arms.following", "franka", host, str(run.factor))
    process.wait_line("moving", 90.0)
    process.kill()
    moved_s = seconds_of_motion(log, time.time_ns())
    assert moved_s <= stated_s(cli, "franka") < 0.4
