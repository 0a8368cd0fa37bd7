"""The human radar over a real graph, in the process of the test, with a radar that is told where the person is."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseArray
from numpy.typing import NDArray
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, Float32MultiArray, String

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS, Person, RadarGeometry
from robot_bridge.auxiliary.protocols import Frames, Prediction
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.auxiliary_node import AuxiliaryNode
from robot_bridge.nodes.human_radar_node import HumanRadarNode
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.messages import joint_state
from robot_bridge.nodes.qos import LATCHED, SENSOR, STREAM, advertise
from robot_bridge.nodes.radar_messages import WINDOW, echo_message, numbers_of
from robot_bridge.nodes.spin import NodeError
from robot_bridge.nodes.stamps import to_ns
from tests.robot_bridge.control.rig import NAMES, PERIOD_S, bench_limits
from tests.robot_bridge.control.test_separation import MJCF
from tests.ros_graph import Graph, spun

HERE = "tests.robot_bridge.nodes.test_human_radar_node"
GEOMETRY = RadarGeometry(
    transmitters=((0.0, -0.5, 0.6), (0.0, 0.5, 0.6)),
    receivers=((0.0, 0.0, 0.0),),
    frequencies=(1e9, 1.1e9, 1.2e9, 1.3e9),
    frames=3,
    period_s=0.1,
)
EMPTY = np.full(GEOMETRY.shape[1:], 2 + 1j, np.complex64)


class ToldRadar:
    """All joints are where the newest frame's first three numbers over the background say."""

    geometry, activities, current, distance_error_95_m = GEOMETRY, ("walking", "standing"), 1, 0.3
    classes = activities
    wait_s = 0.0

    def perceive(self, echo: NDArray[np.complex64], background: NDArray[np.complex64]) -> Person:
        time.sleep(self.wait_s)
        place = (echo[-1] - background)[0, 0, :3].real
        activity = {"walking": 0.2, "standing": 0.8}
        return Person(joints=np.tile(place, (len(JOINTS), 1)).astype(np.float32), activity=activity, body=np.zeros((2, 1, 4), np.float32))

    def predict(self, frames: Frames, condition: Mapping[str, Any] | None = None) -> Prediction:
        raise NotImplementedError


class NoRadar:
    """A recogniser of pictures."""

    classes = ("a",)

    def predict(self, frames: Frames, condition: Mapping[str, Any] | None = None) -> Prediction:
        raise NotImplementedError


def load(bundle: Bundle) -> ToldRadar | NoRadar:
    radar = ToldRadar() if bundle.config["sees"] else NoRadar()
    if isinstance(radar, ToldRadar):
        radar.wait_s, radar.distance_error_95_m = bundle.config["wait_s"], bundle.config.get("error_m", math.inf)
    return radar


TOLD = AuxiliaryMethod(
    name="told-radar",
    family="monitoring",
    kind="recogniser",
    summary="told where the person is",
    config="rl_core.training.config:Config",
    load=f"{HERE}:load",
    evaluate=f"{HERE}:load",
)


@contextmanager
def radar_node(
    folder: Path, *, sees: bool = True, wait_s: float = 0.0, own_error_m: float | None = 0.3, **parameters: Any
) -> Iterator[HumanRadarNode]:
    config = {"sees": sees, "wait_s": wait_s} | ({} if own_error_m is None else {"error_m": own_error_m})
    bundle = Bundle(kind="recogniser", method="told-radar", config=config, weights={"none": torch.zeros(1)}).save(folder / "bundle")
    values = {"method": f"{HERE}:TOLD", "bundle": str(bundle), "error_m": 0.3, **parameters}
    with spun(HumanRadarNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])) as node:
        yield node


class StandingArm:
    """The bench arm along x, 1 m long."""

    def __init__(self, graph: Graph) -> None:
        self._contract = advertise(graph.probe, String, "arm/contract", LATCHED)
        offer = ArmOffer(
            contracts=(), limits=bench_limits(), tool_frame="ee", ik_model=MJCF, sim_mode="none", clock="system", control_period_s=PERIOD_S
        )
        self._contract.publish(String(data=offer.to_json()))
        self._joints = advertise(graph.probe, JointState, "joint_states", STREAM)

    def show(self) -> None:
        """Where it is."""
        self._joints.publish(joint_state(NAMES, np.zeros(3), np.zeros(3), time.time_ns()))


class Cell:
    """The standing arm, and a radar by hand."""

    def __init__(self, graph: Graph, geometry: RadarGeometry = GEOMETRY) -> None:
        self.echoes = advertise(graph.probe, Float32MultiArray, "radar/echo", SENSOR)
        self.backgrounds = advertise(graph.probe, Float32MultiArray, "radar/background", LATCHED)
        self._geometry = advertise(graph.probe, String, "radar/geometry", LATCHED)
        self._geometry.publish(String(data=geometry.to_json()))
        self._arm = StandingArm(graph)
        self._rng = np.random.default_rng(0)

    def show(self, x: float = 0.0) -> None:
        """The arm where it is, and a window with somebody at (x, 0, 0); nobody for x 0. Noise lies where `ToldRadar` does not look."""
        echo = np.broadcast_to(EMPTY, GEOMETRY.shape).copy()
        echo[..., 3] += self._rng.normal(scale=0.01, size=echo.shape[:-1])
        echo[-1, 0, 0, 0] += x
        self.hear(echo)

    def hear(self, echo: NDArray[np.complex64]) -> None:
        """The arm where it is, and this window."""
        self._arm.show()
        self.echoes.publish(echo_message(echo))


def until(condition: Callable[[], object], again: Callable[[], object], *, timeout_s: float = 15.0) -> None:
    """Does `again` ten times a second until `condition()` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        again()
        time.sleep(0.1)


def test_it_says_where_a_person_is_and_how_far_from_the_arm(graph: Graph, tmp_path: Path) -> None:
    cell = Cell(graph)
    cell.backgrounds.publish(echo_message(EMPTY, WINDOW[1:]))
    distances = graph.collect(Float32, "human/distance", SENSOR)
    keypoints, activities = graph.collect(PoseArray, "human/keypoints"), graph.collect(String, "human/activity")
    with radar_node(tmp_path, arm_radius_m=0.1, body_radius_m=0.2):
        until(lambda: distances.messages and keypoints.messages and activities.messages, lambda: cell.show(3.0))
        now_ns, newest = time.time_ns(), keypoints.messages[-1]
        diagnostics = graph.collect(DiagnosticArray, "diagnostics")
        until(lambda: any("perceive_p95_ms" in str(message) for message in diagnostics.messages), lambda: cell.show(3.0))
    assert distances.messages[-1].data == pytest.approx(3.0 - 1.0 - 0.3, abs=1e-6)
    assert activities.messages[0].data == "standing"
    assert len(newest.poses) == len(JOINTS) and newest.header.frame_id == "base" and newest.poses[0].position.x == pytest.approx(3.0)
    assert 0.1 < (now_ns - to_ns(newest.header.stamp)) * 1e-9 < 2.0  # about the frame before the newest, 0.1 s
    values = {pair.key: pair.value for pair in diagnostics.messages[-1].status[0].values}
    assert float(values["judged_hz"]) > 0 and float(values["age_p95_ms"]) >= 100.0


def test_the_empty_cell_is_learnt_when_asked_for(graph: Graph, tmp_path: Path) -> None:
    cell, distances = Cell(graph), graph.collect(Float32, "human/distance", SENSOR)
    client, answers = JsonClient(graph.probe, "human_radar"), []
    with radar_node(tmp_path) as node:
        until(lambda: node._worker is not None and node._worker.counts.unusable > 2, lambda: cell.show(3.0))
        assert node._worker is not None and "empty cell is not known" in node._worker.unusable and not distances.messages
        with pytest.raises(RequestError, match="windows 0, valid: 1 to"):
            client.call({"op": "empty", "windows": 0}, 5.0)
        with pytest.raises(RequestError, match="valid: empty"):
            client.call({"op": "full"}, 5.0)
        asked = threading.Thread(target=lambda: answers.append(client.call({"op": "empty", "windows": 3}, 15.0)))
        asked.start()
        until(lambda: answers, cell.show)
        asked.join()
        assert answers[0]["windows"] == 3
        until(lambda: distances.messages, lambda: cell.show(3.0))
    assert distances.messages[-1].data == pytest.approx(3.0 - 1.0 - 0.25, abs=1e-5)


def test_a_request_for_the_empty_cell_is_answered_when_it_cannot_be_met(graph: Graph, tmp_path: Path) -> None:
    """Whoever asked took the old background for wrong: it is not used again, not even where it is told anew."""
    cell, distances = Cell(graph), graph.collect(Float32, "human/distance", SENSOR)
    cell.backgrounds.publish(echo_message(EMPTY, WINDOW[1:]))
    client, refused = JsonClient(graph.probe, "human_radar"), []

    def ask() -> None:
        try:
            client.call({"op": "empty", "windows": 1000}, 15.0)
        except RequestError as error:
            refused.append(str(error))

    with radar_node(tmp_path) as node:
        until(lambda: distances.messages, lambda: cell.show(3.0))
        askers = [threading.Thread(target=ask) for _ in range(2)]
        askers[0].start()
        until(lambda: node._background is None, cell.show)
        askers[1].start()
        until(lambda: refused, cell.show)
        assert "asked for anew; ask again" in refused[0]
        worker = node._worker
        assert worker is not None
        node.trigger_deactivate()
        for asker in askers:
            asker.join(10.0)
        assert "deactivated before all windows had come; ask again" in refused[1]
        told = len(distances.messages)
        node.trigger_activate()
        until(lambda: node._worker is not None and node._worker.counts.unusable > 2, lambda: cell.show(3.0))
        assert node._worker is not None and "empty cell is not known" in node._worker.unusable and len(distances.messages) == told
        cell.backgrounds.publish(echo_message(EMPTY, WINDOW[1:]))
        until(lambda: len(distances.messages) > told, lambda: cell.show(3.0))


@pytest.mark.parametrize("error_m", [0.29, math.nan, math.inf])
def test_a_guard_that_takes_the_bundle_to_be_better_than_it_is_is_not_served(ros: int, tmp_path: Path, error_m: float) -> None:
    found = "not given" if math.isnan(error_m) else f"{error_m} m"
    says = f"parameter error_m: {found}, valid: what the guard that hears the radar was given, 0.31 m or more"
    with pytest.raises(NodeError, match=says), radar_node(tmp_path, error_m=error_m, own_error_m=0.304):
        pass


def test_a_bundle_of_unknown_error_is_not_used(ros: int, tmp_path: Path) -> None:
    says = "does not say how far its distances are off, as no or too few people"
    with pytest.raises(NodeError, match=says), radar_node(tmp_path, own_error_m=None):
        pass


def test_another_radar_ends_it_with_both_sides_named(graph: Graph, tmp_path: Path) -> None:
    Cell(graph, dataclasses.replace(GEOMETRY, transmitters=((0.0, -0.5, 0.6), (0.0, 0.51, 0.6))))
    distances = graph.collect(Float32, "human/distance", SENSOR)
    with radar_node(tmp_path) as node:
        until(lambda: node.failure._error is not None, lambda: None)
        with pytest.raises(NodeError, match=r"radar/geometry: .*\n?.*transmitters\[1\]: needs .*0.5, 0.6.* offered .*0.51, 0.6"):
            node.failure.raise_reported()
    assert not distances.messages


def test_windows_too_old_or_of_another_shape_give_no_distance(graph: Graph, tmp_path: Path) -> None:
    cell, distances = Cell(graph), graph.collect(Float32, "human/distance", SENSOR)
    cell.backgrounds.publish(echo_message(EMPTY, WINDOW[1:]))
    with radar_node(tmp_path, wait_s=0.15, max_age_s=0.2) as node:  # about a frame 0.1 s ago, and 0.15 s to judge it
        until(lambda: node._worker is not None and node._worker.counts.stale > 2, lambda: cell.show(3.0))
        worker = node._worker
        assert worker is not None and worker.counts.judged == 0
        until(lambda: worker.counts.unusable > 0, lambda: cell.echoes.publish(echo_message(EMPTY, WINDOW[1:])))
        assert "shape (2, 1, 4, 2), valid: (3, 2, 1, 4, 2)" in worker.unusable
    assert not distances.messages


def test_a_radar_that_froze_gives_no_distance_though_it_goes_on_sending(graph: Graph, tmp_path: Path) -> None:
    cell, distances = Cell(graph), graph.collect(Float32, "human/distance", SENSOR)
    cell.backgrounds.publish(echo_message(EMPTY, WINDOW[1:]))
    window = (EMPTY + np.random.default_rng(1).normal(scale=0.01, size=GEOMETRY.shape)).astype(np.complex64)
    with radar_node(tmp_path) as node:
        until(lambda: node._worker is not None and node._worker.counts.unusable > 3, lambda: cell.hear(window))
        worker = node._worker
        assert worker is not None and "equal to the bit" in worker.unusable and worker.counts.judged <= 1
        told = len(distances.messages)
        until(lambda: len(distances.messages) > told, lambda: cell.show(3.0))


def test_a_window_that_is_too_old_when_its_turn_comes_costs_nothing(graph: Graph, tmp_path: Path) -> None:
    cell = Cell(graph)
    cell.backgrounds.publish(echo_message(EMPTY, WINDOW[1:]))
    with radar_node(tmp_path, max_age_s=0.05) as node:  # about a frame 0.1 s ago
        until(lambda: node._worker is not None and node._worker.counts.stale > 5, lambda: cell.show(3.0))
        assert node._worker is not None and "perceive" not in node._worker.latency.milliseconds()


def test_a_message_keeps_shape_and_numbers() -> None:
    echo = (np.arange(24).reshape(3, 2, 1, 4) * (1 - 2j)).astype(np.complex64)
    message = echo_message(echo)
    assert [dimension.label for dimension in message.layout.dim] == list(WINDOW)
    assert [dimension.stride for dimension in message.layout.dim] == [48, 16, 8, 8, 2]
    assert np.array_equal(numbers_of(message).view(np.complex64)[..., 0], echo)


def test_a_node_for_pictures_refuses_a_radars_method_before_it_loads_anything(ros: int) -> None:
    with pytest.raises(NodeError, match="hears a radar and sees no pictures; valid: `armstack launch separation radar:=true`"):
        AuxiliaryNode(parameter_overrides=[Parameter("method", value="rfmamba"), Parameter("bundle", value="nothing/there")])


def test_what_cannot_be_run_is_refused(ros: int, tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="NoRadar sees no people by radar"), radar_node(tmp_path, sees=False):
        pass
    with pytest.raises(NodeError, match="parameter bundle is empty"):
        HumanRadarNode(parameter_overrides=[Parameter("method", value=f"{HERE}:TOLD")])
