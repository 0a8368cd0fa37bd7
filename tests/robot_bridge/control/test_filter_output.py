"""Whatever is sent, what leaves the filter keeps every limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_bridge.control.holds import GuardReport
from tests.robot_bridge.control.rig import PERIOD_S, SENDER, Rig, bench_limits, planar

steps = st.floats(-0.6, 0.6)
chunk = st.lists(st.tuples(steps, steps, st.floats(-0.05, 0.13)), min_size=1, max_size=4)
actions = st.one_of(
    st.tuples(st.just("send"), chunk, st.floats(0.01, 0.3)),
    st.tuples(st.just("send"), chunk, st.floats(0.01, 0.3)),
    st.tuples(st.just("hold"), st.booleans()),
    st.tuples(st.just("scale"), st.floats(-0.2, 1.2)),
    st.tuples(st.just("stop")),
    st.tuples(st.just("rearm")),
    st.tuples(st.just("take"), st.sampled_from(("policy", "teleop"))),
)


def play(rig: Rig, action: Any) -> None:
    match action:
        case "send", deltas, spacing:
            points = rig.position + np.cumsum([(a, b, 0.0) for a, b, _ in deltas], axis=0)
            points[:, 2] = [grip for _, _, grip in deltas]
            holder = rig.filter.authority.holder
            rig.send(points, times=spacing * (np.arange(len(points)) + 1), source=holder.source if holder else "policy")
        case "hold", held:
            rig.filter.holds.receive(GuardReport(name="guard", hold=held), rig.now_ns)
        case "scale", value:
            rig.filter.speed_scale.receive(value, "separation", rig.now_ns)
        case ("stop",):
            rig.filter.estop.receive(True, "button", rig.now_ns)
        case ("rearm",):
            rig.filter.rearm(rig.now_ns, rig.source_ns)
            rig.filter.authority.take("policy", rig.now_ns, SENDER)
        case "take", source:
            rig.filter.authority.take(source, rig.now_ns, SENDER)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.tuples(actions, st.integers(1, 12)), min_size=3, max_size=25), st.booleans())
def test_output_keeps_position_velocity_acceleration_jerk_and_workspace(script: list[tuple[Any, int]], boxed: bool) -> None:
    limits = bench_limits(workspace_max=(2.0, 0.8, 1.0) if boxed else (2.0, 2.0, 1.0), max_lead=(0.7, 0.7, 0.2))
    rig = Rig((0.5, 0.5, 0.04), limits=limits, policy_period_s=0.2)
    for action, periods in script:
        play(rig, action)
        rig.tick(periods)
    rig.outputs.insert(0, rig.outputs[0])
    trace = rig.trace()
    assert (trace >= np.array(limits.position_min) - 1e-9).all() and (trace <= np.array(limits.position_max) + 1e-9).all()
    velocity, acceleration, jerk = rig.rates()
    assert (velocity <= np.array(limits.velocity) * (1 + 1e-6)).all()
    assert (acceleration <= np.array(limits.stop_acceleration) * (1 + 1e-6)).all()
    assert (jerk <= np.array(limits.stop_jerk) * (1 + 1e-6)).all()
    if boxed:
        # Braking in line may cut a corner of the box by second order of the stopping distance.
        assert max(planar(positions[:2])[0][1] for positions in trace) <= 0.8 + 1e-4


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(steps, steps), min_size=2, max_size=12), st.integers(1, 9))
def test_normal_motion_keeps_the_normal_limits(deltas: list[tuple[float, float]], wait: int) -> None:
    """No hold, no stop, no late sender: only the acceleration and jerk of motion are used, never those of braking."""
    rig = Rig(limits=bench_limits(max_lead=(2.0, 2.0, 0.1)))
    for a, b in deltas:
        rig.send((2 * a, 2 * b, 0.04))
        rig.tick(wait)
    assert rig.outputs[-1].state == "moving"
    assert (rig.rates()[1] <= np.array(rig.limits.acceleration) * (1 + 1e-6)).all()
    assert (rig.rates()[2] <= np.array(rig.limits.jerk) * (1 + 1e-6)).all()


def test_a_20_hz_delta_stream_is_followed_evenly() -> None:
    """Constant deltas from the measured pose, one every 50 ms, give a constant velocity, not a stop at every point."""
    rig = Rig((-1.0, 0.0, 0.04))
    for _ in range(30):
        assert rig.send(rig.position + (0.03, 0.01, 0.0)) is None
        rig.tick(5)
    velocity = np.diff(rig.trace()[50:], axis=0) / PERIOD_S
    assert velocity[:, 0].min() > 0.9 * velocity[:, 0].max() > 0.2
    assert velocity[:, 1].min() > 0.9 * velocity[:, 1].max() > 0.05


def test_a_chunk_is_interpolated_by_time_from_start() -> None:
    """Points are passed at their times, however they are spaced, and in between the output goes from one to the next."""
    rig = Rig(policy_period_s=1.0, ramp_s=0.01)
    times = (0.3, 0.5, 0.9)
    points = np.array([(0.06, 0.03, 0.04), (0.12, 0.03, 0.04), (0.20, 0.0, 0.04)])
    assert rig.send(points, times=times) is None
    rig.wait(0.95)
    trace = rig.trace()  # entry k is reached at (k + 1) periods
    for point, seconds in zip(points, times, strict=True):
        assert trace[round(seconds / PERIOD_S) - 1] == pytest.approx(point, abs=1e-6)
    assert (np.diff(trace[:90, 0]) >= 0).all() and (np.diff(trace[50:90, 1]) <= 1e-12).all()
    assert not any(output.limited for output in rig.outputs[2:])  # after the ramp


def test_braking_is_in_line_with_the_motion() -> None:
    """Both joints slow down alike: the output stays on the line it was on."""
    rig = Rig((-1.0, 0.0, 0.04))
    for _ in range(20):
        rig.send(rig.position + (0.08, 0.04, 0.0))
        rig.tick(5)
    before = rig.trace()[-2:]
    direction = (before[1] - before[0])[:2] / np.linalg.norm((before[1] - before[0])[:2])
    rig.filter.estop.receive(True, "button", rig.now_ns)
    rig.wait(0.5)
    way = (rig.trace()[-50:] - before[1])[:, :2]
    assert np.linalg.norm(way[-1]) > 5e-3
    assert np.abs(way @ np.array([-direction[1], direction[0]])).max() < 0.01 * np.linalg.norm(way[-1])


def test_the_gripper_never_slows_the_arm() -> None:
    still, closing = Rig(), Rig()
    for rig, grip in ((still, 0.04), (closing, 0.0)):
        rig.send((0.05, 0.02, grip))
        rig.tick(8)
    assert (still.trace()[:, :2] == closing.trace()[:, :2]).all()
    assert closing.position[2] < 0.04


def test_two_runs_are_equal_to_the_bit() -> None:
    runs = []
    for _ in range(2):
        rig, rng = Rig(), np.random.default_rng(0)
        for _ in range(30):
            rig.send(rig.position + rng.uniform(-0.2, 0.2, 3) * (1, 1, 0))
            rig.tick(int(rng.integers(1, 12)))
        runs.append(rig.trace())
    assert (runs[0] == runs[1]).all()


def test_a_chunk_that_is_faster_than_the_arm_can_start_never_sends_it_backwards() -> None:
    """A slow arm cannot have the chunk's speed at its first point; going back to run up for it would never end."""
    rig = Rig(limits=bench_limits(acceleration=(1.0, 1.0, 2.0), jerk=(400.0, 400.0, 400.0)))
    times = np.array([0.05, 0.1, 0.15, 0.2])
    for step in range(20):
        way = 0.3 * (0.05 * step + times)
        assert rig.send(np.stack([way, 0 * way, 0 * way + 0.04], axis=1), times=times) is None
        rig.tick(5)
    assert np.diff(rig.trace()[:, 0]).min() >= -1e-9
    assert rig.position[0] > 0.25
