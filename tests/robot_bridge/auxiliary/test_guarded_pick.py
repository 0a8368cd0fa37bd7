"""The guarded pick: its launch file, the sorter, the files of bins, what the experiment counts. Its episodes are long runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from rclpy.parameter import Parameter
from std_msgs.msg import String

from robot_bridge.guarded_pick_experiment import Trial, load_by_lot, summary, was_touched, what_is_fed
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.nodes.qos import EVENTS, STREAM, advertise
from robot_bridge.nodes.sorter_node import SorterNode
from robot_bridge.nodes.spin import NodeError, SpinThread
from robot_bridge.sorting import BinsError, read_bins
from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.sort import BINS
from sim_envs.parts.station import SORTED
from tests.robot_bridge.auxiliary.cameras import until
from tests.robot_bridge.auxiliary.fakes import HERE
from tests.ros_graph import ROOT, Graph

FILE = ROOT / "launch/config/sorting.yaml"
GIVEN = {"bundle": "runs/sort/bundle", "classifier_bundle": "runs/c/bundle", "guard_bundle": "runs/g/bundle", "namespace": "left"}


def test_a_guarded_pick_is_a_policy_that_hears_the_sorter_and_an_arm_that_requires_the_guard() -> None:
    specs = {
        spec.name.rsplit("-", 1)[0]: spec.command
        for spec in read_launch_file(find_launch_file("guarded_pick"), {**GIVEN, "image_size": "64"})
    }
    assert list(specs) == ["arm", "camera_station", "classifier", "guard", "sorter", "policy"]
    (config,) = [word for word in specs["arm"] if word.endswith("guarded_arm.yaml")]
    assert yaml.safe_load(Path(config).read_text())["/**"]["ros__parameters"]["required_guards"] == ["guard"]
    assert 'task:="sort"' in specs["arm"] and 'task:="sort"' in specs["camera_station"]
    assert {"width:=64", "height:=64"} <= set(specs["camera_station"]) and "__ns:=/left" in specs["guard"]
    guard = {"__node:=guard", 'method:="local-prompt"', 'hold_on:="unknown"', "hold_above:=0.5", "first_frames:=5"}
    assert guard <= set(specs["guard"])
    assert 'method:="demul"' in specs["classifier"] and 'method:="demul"' in specs["sorter"]
    assert "objects/bin/pose:=sorting/bin/pose" in specs["policy"]


def test_the_shipped_bins_are_those_of_the_world() -> None:
    bins = {each.name: each for each in read_bins(FILE)}
    assert {name: each.classes for name, each in bins.items()} == SORTED
    for name, (x, y) in BINS.items():
        assert bins[name].position == (x, y, TABLE_TOP)


@pytest.mark.parametrize(
    "text, said",
    [
        ("left: {position: [0, 0, 0]}", "valid: position and classes"),
        ("left: {position: [0, .nan, 0], classes: [mug]}", "three finite numbers"),
        ("left: {position: [0, 0], classes: [mug]}", "three finite numbers"),
        ("left: {position: [0, 0, 0], classes: []}", "a list of names"),
        ("left: {position: [0, 0, 0], classes: [mug]}\nright: {position: [0, 0, 0], classes: [mug]}", "'mug' is in left too"),
        ("- left", "a mapping"),
        ("left: [", "a YAML file"),
    ],
)
def test_bins_that_cannot_be_meant_are_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bins.yaml"
    file.write_text(text)
    with pytest.raises(BinsError, match=said) as found:
        read_bins(file)
    assert "bins.yaml" in str(found.value)


def _sorter(**parameters: object) -> SorterNode:
    values = {"method": f"{HERE}:BRIGHTNESS", "bins": str(FILE), "first_frames": 2, **parameters}
    return SorterNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])


@pytest.mark.parametrize(
    "parameters, said", [({"bins": "none.yaml"}, "none.yaml"), ({"method": "juggle"}, "juggle"), ({"first_frames": 0}, "1 or more")]
)
def test_a_sorter_that_cannot_work_says_why(graph: Graph, parameters: dict[str, object], said: str) -> None:
    with pytest.raises(NodeError, match=said):
        _sorter(**parameters)


@pytest.fixture
def sorter(graph: Graph) -> Iterator[SorterNode]:
    node = _sorter()
    with SpinThread(node):
        yield node
    node.destroy_node()


def test_the_sorter_says_the_bin_of_the_first_frames_mean_and_none_without_a_bin(graph: Graph, sorter: SorterNode) -> None:
    poses, decisions = graph.collect(PoseStamped, "sorting/bin/pose"), graph.collect(String, "sorting/decision", EVENTS)
    results, episodes = advertise(graph.probe, String, "aux/brightness/result", STREAM), advertise(graph.probe, String, "episode", EVENTS)

    def play(index: int, *rows: dict[str, float]) -> dict[str, object]:
        begin = 1000 * index
        episodes.publish(String(data=json.dumps({"index": index, "stamp_ns": begin})))
        until(lambda: sorter._episode == index)
        assert sorter._chosen is None, "the bin of the part before is said no more"
        for unusable in ("no JSON", '{"stamp": 9000000, "scores": {"bowl": NaN}}', '{"stamp": 9000000, "scores": {}}'):
            results.publish(String(data=unusable))
        results.publish(String(data=json.dumps({"stamp": begin - 1, "scores": {"bowl": 9.0}})))  # of the episode before
        for number, scores in enumerate(rows):
            results.publish(String(data=json.dumps({"stamp": begin + number, "scores": scores})))
        return json.loads(decisions.wait(lambda m: json.loads(m.data)["episode"] == index).data)

    until(lambda: results.get_subscription_count() and episodes.get_subscription_count())
    assert play(1, {"mug": 0.9, "bowl": 0.1}, {"mug": 0.3, "bowl": 0.6}) == {"episode": 1, "class": "mug", "bin": "left", "score": 0.6}
    said = poses.wait(lambda m: m.header.frame_id == "base")
    assert (said.pose.position.x, said.pose.position.y) == BINS["left"]
    assert play(2, {"bowl": 0.9}, {"bowl": 0.9})["bin"] == "right"
    poses.wait(lambda m: m.pose.position.y == BINS["right"][1])
    assert play(3, {"juggler": 0.9}, {"juggler": 0.9})["bin"] is None
    assert sorter._chosen is None


def test_what_is_fed_belongs_to_the_worlds_bin_and_feeds_differ() -> None:
    for seed in range(6):
        place, name = what_is_fed("known", seed)
        assert name in SORTED[place]
        assert what_is_fed("damaged", seed) == (place, name), "the same part, damaged"
        nowhere, foreign = what_is_fed("foreign", seed)
        assert not nowhere and all(foreign not in names for names in SORTED.values())
    assert {what_is_fed("known", seed)[0] for seed in range(12)} == set(BINS)


def test_a_part_is_touched_when_it_moves_or_the_fingers_are_around_it() -> None:
    part, far = np.zeros((3, 3)), np.full((3, 3), 0.2)
    assert not was_touched(far, part)
    assert was_touched(np.array([[0.2, 0, 0], [0.03, 0, 0], [0.2, 0, 0]]), part)
    assert was_touched(far, np.array([[0, 0, 0], [0.003, 0, 0], [0, 0, 0]]))


def test_counts() -> None:
    one = {"seed": 0, "part": "mug", "bin": "left"}
    trials = [
        Trial(**one, said="mug", sorted=True, touched=True, held=False),
        Trial(**one, said="bowl", sorted=False, touched=False, held=True),
        Trial(**one, said="", sorted=False, touched=True, held=True),
    ]
    found = summary(trials)
    assert found == {"parts": 3, "sorted": 1, "touched": 2, "held": 2, "held_untouched": 1, "rightly_named": 1}


def test_verdicts_by_lot_have_nothing_to_do_with_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    from robot_bridge.auxiliary.protocols import Prediction

    class Sure:
        classes = ("mug",)

        def predict(self, frames: np.ndarray, condition: object = None) -> Prediction:
            ones = np.ones(len(frames), np.float32)
            return Prediction(scores=ones[:, None], values={"unknown": 0 * ones})

    monkeypatch.setattr("robot_bridge.guarded_pick_experiment.local_prompt.load", lambda bundle: Sure())
    guard = load_by_lot(None)  # type: ignore[arg-type]
    verdicts = guard.predict(np.zeros((400, 2, 2, 3), np.uint8)).values["unknown"]
    assert set(verdicts) == {0.0, 1.0} and 0.4 < verdicts.mean() < 0.6
