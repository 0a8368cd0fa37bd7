"""The detector in the auxiliary node, as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from std_msgs.msg import String

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.monitoring.manifold import training
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from tests.robot_bridge.auxiliary.cameras import Camera, auxiliary_node, ready, show_until_judged
from tests.robot_bridge.auxiliary.fakes import SIDE
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import flat_frames, real_frames
from tests.ros_graph import Graph


def test_scores_over_ros_are_the_direct_ones_and_a_guard_may_hold_on_them(graph: Graph, tmp_path: Path) -> None:
    data = real_frames(objects=10, side=SIDE)
    tiny = {"side": 8, "width": 8, "levels": 10, "updates": 1, "batch_size": 8}
    config = ManifoldConfig().override(ddpm=tiny, alpha=0.4, noises=4, score="contrast")
    folder = training.train(data, config, tmp_path, seed=0, say=lambda text: None).save(tmp_path / "bundle")
    shown = np.concatenate((data.frames[:2], flat_frames(1, SIDE)))
    results, camera = graph.collect(String, "aux/manifold/result"), Camera(graph)
    with auxiliary_node(folder, method="manifold", hold_on="generated", hold_above=0.5) as node:
        ready(node)
        said = [show_until_judged(camera, results, frame) for frame in shown]
        rule = node._rule
    direct = load_auxiliary(find_method("manifold"), Bundle.load(folder))
    for one, frame in zip(said, shown, strict=True):
        prediction = direct.predict(frame[None])
        assert list(one["scores"]) == ["real", "generated"]
        assert np.array_equal(np.float32(list(one["scores"].values())), prediction.scores[0])
        assert np.float32(one["values"]["deviations"]) == prediction.values["deviations"][0]
    assert said[2]["scores"]["generated"] > 0.5 and rule.judge(said[2]["scores"]).startswith("generated")
    assert said[0]["scores"]["generated"] > 0.5 or rule.judge(said[0]["scores"]) == ""
