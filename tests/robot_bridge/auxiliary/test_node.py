"""The auxiliary node over a real graph, in the process of the test."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image
from std_msgs.msg import String

from rl_core.bundle import Bundle, bundle_sha256
from robot_bridge.auxiliary.bundles import image_channel, recogniser_bundle
from robot_bridge.auxiliary.recognition.csr import CSRConfig, new_classifier
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from robot_bridge.nodes.auxiliary_node import AuxiliaryNode
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.messages import image_to_rgb
from robot_bridge.nodes.newest_worker import Counts, Load
from robot_bridge.nodes.qos import LATCHED, SENSOR, advertise
from robot_bridge.nodes.spin import NodeError
from robot_bridge.nodes.stamps import to_ns
from tests.robot_bridge.auxiliary.cameras import METHOD, Camera, auxiliary_node, gray, ready, show_until_judged, until
from tests.robot_bridge.auxiliary.fakes import SIDE, Gate, grey_data, load
from tests.ros_graph import Graph


def test_scores_over_ros_are_those_of_the_method_called_directly(graph: Graph, bundle: Path) -> None:
    results = graph.collect(String, "aux/brightness/result")
    camera, direct, frames = Camera(graph), load(Bundle.load(bundle)), grey_data().frames[::3]
    with auxiliary_node(bundle) as node:
        ready(node)
        said = [show_until_judged(camera, results, frame) for frame in frames]
    prediction = direct.predict(frames)
    assert np.array_equal(np.array([list(one["scores"].values()) for one in said], np.float32), prediction.scores)
    assert np.array_equal(np.array([one["values"]["dark_part"] for one in said], np.float32), prediction.values["dark_part"])
    assert list(said[0]["scores"]) == ["dark", "bright"] and said[0]["bundle"] == bundle_sha256(bundle)
    assert (said[0]["method"], said[0]["camera"]) == ("brightness", "front")


def test_a_method_of_the_registry_gives_its_direct_scores_too(graph: Graph, tmp_path: Path) -> None:
    results = graph.collect(String, "aux/trades/result")
    method, data = find_method("trades"), grey_data(5)
    config = CSRConfig(side=8, width=2)
    weights, robustness = new_classifier(2, config, seed=3).state_dict(), {"dark": 0.25, "bright": 0.75}
    camera_contract = image_channel(data.frames.shape)
    made = recogniser_bundle("trades", config, weights, classes=data.classes, camera=camera_contract, calibration=robustness)
    camera, folder = Camera(graph), made.save(tmp_path / "bundle")
    with auxiliary_node(folder, method="trades") as node:
        ready(node)
        said = [show_until_judged(camera, results, frame) for frame in data.frames[::4]]
    direct = load_auxiliary(method, Bundle.load(folder))
    for one, frame in zip(said, data.frames[::4], strict=True):
        prediction = direct.predict(frame[None])
        assert np.array_equal(np.float32(list(one["scores"].values())), prediction.scores[0])
        assert np.float32(one["values"]["robustness"]) == prediction.values["robustness"][0]


def test_the_newest_task_is_the_condition(graph: Graph, bundle: Path) -> None:
    results = graph.collect(String, "aux/brightness/result")
    camera = Camera(graph)
    task = advertise(graph.probe, String, "task", LATCHED)
    with auxiliary_node(bundle) as node:
        ready(node)
        assert show_until_judged(camera, results, gray(0))["scores"]["bright"] < 0.5
        task.publish(String(data=json.dumps({"object": "anything"})))
        until(lambda: show_until_judged(camera, results, gray(0))["scores"]["bright"] == 1.0)


def test_an_old_frame_is_dropped_and_one_of_another_size_too(graph: Graph, bundle: Path) -> None:
    results = graph.collect(String, "aux/brightness/result")
    camera = Camera(graph)
    with auxiliary_node(bundle, max_age_s=0.3) as node:
        ready(node)
        show_until_judged(camera, results, gray(10))
        worker, seen = node._worker, len(results.messages)
        assert worker is not None
        for frame, age_s in ((gray(20), 0.4), (gray(20), -0.4), (gray(20, 8), 0.0)):
            dropped = worker.counts.stale + worker.counts.unusable
            until(
                lambda dropped=dropped: worker.counts.stale + worker.counts.unusable > dropped,
                lambda frame=frame, age_s=age_s: camera.show(frame, age_s=age_s),
            )
        assert worker.counts.stale >= 2 and worker.counts.unusable >= 1
        last = show_until_judged(camera, results, gray(30))
    assert [json.loads(message.data)["stamp"] for message in results.messages[seen:]] == [last["stamp"]]


def test_an_overloaded_node_judges_the_newest_frame_never_queues_and_says_so(graph: Graph, bundle: Path) -> None:
    results = graph.collect(String, "aux/brightness/result")
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    camera, gate = Camera(graph), Gate()
    with auxiliary_node(bundle, max_age_s=30.0) as node:
        ready(node)
        show_until_judged(camera, results, gray(1))
        worker = node._worker
        assert worker is not None
        worker.loaded.wait = gate
        until(gate.reached.is_set, lambda: camera.show(gray(2)))
        judged, waiting = len(results.messages), worker.counts.received
        shown = [camera.show(gray(level)) for level in range(3, 20)]

        def newest_waits() -> bool:
            waits = worker._newest is not None and to_ns(worker._newest.header.stamp)
            return waits == shown[-1] and worker.counts.received >= waiting + 10

        until(newest_waits, lambda: shown.append(camera.show(gray(40))), every_s=0.05)
        newest_waiting = shown[-1]
        gate.open.set()
        results.wait(lambda message: json.loads(message.data)["stamp"] == newest_waiting)
        said = diagnostics.wait(lambda m: "overloaded" in m.status[0].message, after=len(diagnostics.messages))
    judged_stamps = [json.loads(message.data)["stamp"] for message in results.messages[judged:]]
    assert len(judged_stamps) <= 2 and judged_stamps[-1] == newest_waiting
    status = said.status[0]
    values = {pair.key: pair.value for pair in status.values}
    assert status.level == DiagnosticStatus.WARN and status.name == "auxiliary brightness" and "frames/s" in status.message
    assert int(values["skipped"]) >= 5 and int(values["received"]) >= int(values["judged"]) + int(values["skipped"])


def test_overload_is_what_more_than_a_tenth_is_skipped_for() -> None:
    load, counts = Load(0.0), Counts()
    counts.received, counts.judged, counts.skipped = 30, 28, 2
    assert load.report(1.0, counts) == ({"received_hz": 30.0, "judged_hz": 28.0}, "")
    counts.received, counts.judged, counts.skipped = 60, 38, 22
    rates, overload = load.report(2.0, counts)
    assert rates == {"received_hz": 30.0, "judged_hz": 19.0} and "judges 19.0 of 30.0 frames/s" in overload
    for second in range(3, 9):
        counts.received, counts.judged = counts.received + 30, counts.judged + 30
        rates, overload = load.report(float(second), counts)
    assert overload == "" and rates["judged_hz"] == 30.0


def test_throughput_and_percentiles_are_in_the_diagnostics(graph: Graph, bundle: Path) -> None:
    results, diagnostics = graph.collect(String, "aux/brightness/result"), graph.collect(DiagnosticArray, "diagnostics")
    camera = Camera(graph)
    with auxiliary_node(bundle) as node:
        ready(node)
        for level in range(10):
            show_until_judged(camera, results, gray(level))
        message = diagnostics.wait(lambda m: "age_p99_ms" in str(m.status[0].values), after=len(diagnostics.messages))
    values = {pair.key: pair.value for pair in message.status[0].values}
    assert {f"{stage}_{key}_ms" for stage in ("predict", "age") for key in ("p50", "p95", "p99")} <= values.keys()
    assert float(values["judged_hz"]) > 0 and float(values["age_p50_ms"]) >= float(values["predict_p50_ms"]) > 0
    assert values["bundle"] == bundle_sha256(bundle) and message.status[0].level == DiagnosticStatus.OK


def test_an_annotated_image_is_drawn_for_who_listens(graph: Graph, bundle: Path) -> None:
    images, results = graph.collect(Image, "aux/brightness/image", SENSOR), graph.collect(String, "aux/brightness/result")
    camera = Camera(graph)
    with auxiliary_node(bundle, hold_on="dark_part") as node:
        ready(node)
        until(lambda: images.messages, lambda: show_until_judged(camera, results, gray(5)))
    sheet = image_to_rgb(images.messages[0])
    assert sheet.shape[1] == 256 and sheet.shape[0] > 256 and sheet[-1, -1].tolist() == [120, 0, 0]


# -- guard ------------------------------------------------------------------------------------------------------------------


def test_a_guard_says_hold_and_ok_with_the_frame_it_judged(graph: Graph, bundle: Path) -> None:
    holds, results = graph.collect(DiagnosticArray, "safety/holds"), graph.collect(String, "aux/brightness/result")
    camera = Camera(graph)
    with auxiliary_node(bundle, hold_on="dark_part", hold_above=0.5, max_age_s=0.5) as node:
        first = holds.wait().status[0]
        assert (first.name, first.level, first.message) == ("auxiliary", DiagnosticStatus.ERROR, "no frame judged yet")
        ready(node)
        for level, hold in ((200, DiagnosticStatus.OK), (20, DiagnosticStatus.ERROR), (200, DiagnosticStatus.OK)):
            seen = len(holds.messages)
            stamp = show_until_judged(camera, results, gray(level))["stamp"]
            status = holds.wait(lambda m, stamp=stamp: f"'{stamp}'" in str(m.status[0].values), after=seen).status[0]  # type: ignore[misc]
            assert status.level == hold
            assert {pair.key: pair.value for pair in status.values} == {"judged_stamp": str(stamp), "max_age": "0.5"}
        assert not [m for m in holds.messages if m.status[0].level == DiagnosticStatus.OK and "old" in m.status[0].message]
        old = holds.wait(lambda m: "s old" in m.status[0].message, after=len(holds.messages)).status[0]  # the camera fell silent
        assert old.level == DiagnosticStatus.ERROR
        seen, begin = len(holds.messages), time.monotonic()
        holds.wait(after=seen + 4)
        assert time.monotonic() - begin < 2.5  # at least 2 Hz


def test_a_method_that_breaks_holds_before_its_node_ends(graph: Graph, bundle: Path) -> None:
    holds, results = graph.collect(DiagnosticArray, "safety/holds"), graph.collect(String, "aux/brightness/result")
    camera = Camera(graph)

    def fail() -> None:
        raise RuntimeError("out of memory")

    with auxiliary_node(bundle, hold_on="dark_part") as node:
        ready(node)
        show_until_judged(camera, results, gray(200))
        assert node._worker is not None
        node._worker.loaded.wait = fail
        with pytest.raises(NodeError, match="brightness: RuntimeError: out of memory"):
            until(node.failure.raise_reported, lambda: camera.show(gray(200)))
        status = holds.wait(lambda m: "out of memory" in m.status[0].message).status[0]
        assert status.level == DiagnosticStatus.ERROR
        node.failure = type(node.failure)()


# -- refusals and life ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"method": "brightnes"}, "auxiliary method 'brightnes', valid: .*module:ROW"),
        ({"bundle": ""}, "parameter bundle is empty; give the folder that `armstack aux train brightness` wrote"),
        ({"bundle": "no/such"}, "no bundle.json"),
        ({"hold_above": float("nan")}, "hold_above: nan"),
        ({"max_age_s": 0.0}, "max_age_s: 0"),
    ],
)
def test_what_cannot_be_used_is_said_at_once(ros: int, bundle: Path, parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(NodeError, match=says):
        AuxiliaryNode(
            parameter_overrides=[
                Parameter(name, value=value) for name, value in {"method": METHOD, "bundle": str(bundle), **parameters}.items()
            ]
        )


def test_a_policys_bundle_is_refused(ros: int, bundle: Path, tmp_path: Path) -> None:
    header = json.loads((bundle / "bundle.json").read_text())
    (bundle / "bundle.json").write_text(json.dumps({**header, "kind": "policy", "method": "bc"}))
    with pytest.raises(NodeError, match="bundle of method 'bc', valid: brightness"):
        AuxiliaryNode(parameter_overrides=[Parameter("method", value=METHOD), Parameter("bundle", value=str(bundle))])


@pytest.mark.parametrize(
    ("side", "parameters", "says"),
    [
        (8, {}, r"camera.shape: needs \(16, 16, 3\), offered \(8, 8, 3\)"),
        (SIDE, {"hold_on": "unknown, dark"}, "hold_on: unknown, valid: dark, bright, dark_part"),
    ],
)
def test_a_wrong_camera_or_hold_rule_ends_the_node(graph: Graph, bundle: Path, side: int, parameters: dict[str, Any], says: str) -> None:
    Camera(graph, side)
    with auxiliary_node(bundle, **parameters) as node:
        with pytest.raises(NodeError, match=says):
            until(node.failure.raise_reported)
        node.failure = type(node.failure)()


def test_a_method_for_any_size_keeps_to_the_size_it_began_with(graph: Graph, bundle: Path) -> None:
    header = json.loads((bundle / "bundle.json").read_text())
    header["config"]["camera"] = None
    (bundle / "bundle.json").write_text(json.dumps(header))
    results = graph.collect(String, "aux/brightness/result")
    camera = Camera(graph, 24)
    with auxiliary_node(bundle) as node:
        ready(node)
        show_until_judged(camera, results, gray(3, 24))
        camera.offer(8)
        with pytest.raises(NodeError, match=r"its pictures became \(8, 8, 3\), they were \(24, 24, 3\)"):
            until(node.failure.raise_reported)
        node.failure = type(node.failure)()


def test_a_deactivated_node_says_nothing_and_goes_on_when_activated(graph: Graph, bundle: Path) -> None:
    holds, results = graph.collect(DiagnosticArray, "safety/holds"), graph.collect(String, "aux/brightness/result")
    camera = Camera(graph)
    with auxiliary_node(bundle, hold_on="dark_part") as node:
        ready(node)
        show_until_judged(camera, results, gray(200))
        node.trigger_deactivate()
        with pytest.raises(RequestError, match="the node is not active"):
            JsonClient(graph.probe, "auxiliary").call({"op": "reset"}, 10.0)
        said = len(holds.messages)
        for _ in range(5):
            camera.show(gray(200))
            time.sleep(0.1)
        assert len(holds.messages) <= said + 1
        node.trigger_activate()
        ready(node)
        show_until_judged(camera, results, gray(200))
        assert len(holds.messages) > said
