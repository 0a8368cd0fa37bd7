"""What a bag of an arm beside a person is read into, and its picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from rosbags.typesys import Stores, get_typestore

from rl_core.data.formats.bag import BagError, BagWriter
from robot_bridge.separation.report import draw_separation, read_separation
from robot_bridge.separation.trace import SeparationTrace


def bag_of(folder: Path, topic: str) -> Path:
    """One text on one topic."""
    store, name = get_typestore(Stores.ROS2_KILTED), "std_msgs/msg/String"
    writer = BagWriter(folder)
    writer.write(topic, name, bytes(store.serialize_cdr(store.types[name](data="{}"), name)), received_ns=1, sent_ns=1, sequence=1)
    writer.close()
    return folder


@pytest.mark.parametrize("topic", ["/chatter", "/arm/status"])
def test_a_bag_of_something_else_is_named_with_all_that_it_lacks(topic: str, tmp_path: Path) -> None:
    with pytest.raises(BagError, match="foreign: nothing on /arm/applied, /joint_states, /sim/human_distance, valid"):
        read_separation(bag_of(tmp_path / "foreign", topic))


def test_a_bag_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(BagError, match="nowhere: not there, valid: the folder of a bag"):
        read_separation(tmp_path / "nowhere")


@pytest.fixture()
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Figure:
    """Forty seconds in which the arm is fast for 20 ms, after a jump of a period that nothing moves by."""
    ones, speed = np.ones(4000), np.full(4000, 0.1)
    speed[10], speed[20:22] = 50.0, 3.0
    trace = SeparationTrace(
        seconds=np.arange(4000) * 0.01, distance_m=ones, heard_m=ones, speed=speed, measured_speed=speed, scale=ones,
        held=np.arange(4000) < 5,
    )  # fmt: skip
    figures: list[Figure] = []
    monkeypatch.setattr(pyplot, "close", figures.append)
    draw_separation(tmp_path / "picture.png", trace, limit_m=0.5)
    return figures[0]


def test_no_legend_covers_a_curve(drawn: Figure) -> None:
    (legend,) = drawn.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["hold", "heard by the guard", "true", "limit", "fastest joint", "allowed"]
    assert all(axes.get_legend() is None and not axes.get_window_extent().overlaps(legend.get_window_extent()) for axes in drawn.axes)


def test_the_speed_axis_holds_all_speeds_but_a_jump(drawn: Figure) -> None:
    assert 3.0 < drawn.axes[1].get_ylim()[1] < 4.0
