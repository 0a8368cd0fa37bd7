"""What may be asked for on sim/disturb, and what it does to the simulated arm."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped

from robot_bridge.control.settings import FilterSettings
from robot_bridge.nodes.disturbance_requests import DisturbanceServer, disturbance
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.simulated_world import WorldArm
from tests.end_to_end.driver import arm_node
from tests.ros_graph import Graph

PUSH = {"displacement": [0.0, 0.06, 0.0], "duration_s": 0.5}


def test_a_request_is_a_force_or_a_displacement_now_or_later() -> None:
    push, at_s = disturbance({"id": "a", "force": [0, 40, 0], "duration_s": 0.3, "at_s": 5, "body": "ee"})
    assert push.force is not None and push.force.tolist() == [0.0, 40.0, 0.0] and (push.duration_s, at_s) == (0.3, 5.0)
    push, at_s = disturbance({"id": "a", **PUSH})
    assert push.force is None and push.displacement.tolist() == PUSH["displacement"] and at_s is None


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"duration_s": 0.5}, "valid: either force or displacement"),
        ({**PUSH, "force": [1, 0, 0]}, "valid: either force or displacement"),
        ({**PUSH, "body": "elbow"}, "body 'elbow', valid: ee"),
        ({**PUSH, "velocity": 1}, r"fields \['velocity'\], valid: .*displacement"),
        ({"displacement": [0, 0.2, 0], "duration_s": 0.5}, r"displacement \[0, 0.2, 0\], valid: .*at most 0.15 m"),
        ({"displacement": [0, 0, 0], "duration_s": 0.5}, "above 0"),
        ({"displacement": [0, 0.05], "duration_s": 0.5}, "valid: x, y, z"),
        ({"displacement": [0, 0.05, "0"], "duration_s": 0.5}, "valid: x, y, z"),
        ({"displacement": [0, float("nan"), 0], "duration_s": 0.5}, "valid: x, y, z"),
        ({"force": [0, 300, 300], "duration_s": 0.5}, "at most 300 N"),
        ({"force": [0, True, 0], "duration_s": 0.5}, "valid: x, y, z"),
        ({**PUSH, "duration_s": 6}, "duration_s 6, valid: .*at most 5"),
        ({**PUSH, "duration_s": None}, "duration_s None"),
        ({**PUSH, "duration_s": float("inf")}, "duration_s inf"),
        ({**PUSH, "at_s": -1}, "at_s -1, valid"),
        ({**PUSH, "at_s": "5"}, "at_s '5', valid"),
    ],
)
def test_what_cannot_be_meant_is_refused(request_: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        disturbance({"id": "a", **request_})


def _world() -> WorldArm:
    arm = WorldArm("reach", FilterSettings())
    arm.begin_episode(0, arm.read)
    return arm


def _hold(arm: WorldArm, periods: int, target: np.ndarray) -> np.ndarray:
    hands = []
    for _ in range(periods):
        arm.command(target, 0.01)
        hands.append(arm.read().ee_pos)
    return np.array(hands)


def test_the_hand_is_dragged_aside_and_the_servos_bring_it_back() -> None:
    arm = _world()
    target, start = arm.read().positions, arm.read().ee_pos
    push, _ = disturbance({"id": "a", **PUSH})
    assert arm.disturb(push, 0.2) == pytest.approx(0.2)
    moved = _hold(arm, 170, target) - start
    assert np.abs(moved[:20]).max() < 1e-3  # not before it is due
    assert 0.01 < moved[20:70, 1].max() < 0.06  # stiff servos give way less than a policy that counts from the measured pose
    assert np.linalg.norm(moved[-1]) < 2e-3
    stamps, forces = zip(*arm.forces, strict=True)
    assert len(forces) == 51 and not forces[-1].any() and all(force.any() for force in forces[1:-1])
    assert np.ptp(stamps) == 500_000_000


def test_one_push_at_a_time_none_in_the_past_and_a_reset_ends_it() -> None:
    arm = _world()
    target = arm.read().positions
    push, _ = disturbance({"id": "a", "force": [0, 0, 50], "duration_s": 1.0})
    _hold(arm, 10, target)
    with pytest.raises(RequestError, match="at_s 0.05, valid: 0.1 or more"):
        arm.disturb(push, 0.05)
    assert arm.disturb(push, None) == pytest.approx(0.1)
    with pytest.raises(RequestError, match="another push begins at 0.1 s"):
        arm.disturb(push, 1.5)
    _hold(arm, 5, target)
    arm.begin_episode(1, arm.read)
    arm.forces.clear()
    still = _hold(arm, 20, arm.read().positions)
    assert not arm.forces and np.ptp(still, axis=0).max() < 1e-3
    arm.disturb(push, None)


def test_over_topics_it_is_answered_refused_and_told_to_recorders(graph: Graph) -> None:
    forces = graph.collect(WrenchStamped, "sim/disturbance")
    client = JsonClient(graph.probe, "sim/disturb")
    with arm_node(task="reach"):
        JsonClient(graph.probe, "episode").call({"op": "reset", "seed": 1}, 20.0)
        with pytest.raises(RequestError, match="valid: either force or displacement"):
            client.call({}, 10.0)
        assert client.call({"force": [0, 0, 30], "duration_s": 0.2}, 10.0)["ok"]
        pushed = forces.wait(lambda m: m.wrench.force.z == 30.0)
        assert pushed.header.frame_id == "base"
        forces.wait(lambda m: m.wrench.force.z == 0.0)


def test_an_arm_that_is_not_simulated_refuses_every_push(graph: Graph) -> None:
    server = DisturbanceServer(graph.probe, None)
    with pytest.raises(RequestError, match="no simulated one"):
        server._asked({"id": "a", **PUSH}, lambda answer: pytest.fail(json.dumps(dict(answer))))
