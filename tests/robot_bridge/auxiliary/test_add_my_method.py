"""A method of the user's own: the how-to page's file is trained, judged and run as the page says."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from PIL import Image as Picture
from sensor_msgs.msg import Image
from std_msgs.msg import String

from robot_bridge.cli import main
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.nodes.messages import rgb_image
from robot_bridge.nodes.qos import SENSOR, advertise
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import ROOT, Collected, Graph

PAGE = (ROOT / "docs/how-to/add-my-method.md").read_text()
COLOURS = {"brick": (200, 40, 30), "leaf": (40, 180, 50)}


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's file on PYTHONPATH, and photos of two classes."""
    (tmp_path / "my_method.py").write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_method", raising=False)
    generator = np.random.default_rng(0)
    for split in ("train", "test"):
        for name, colour in COLOURS.items():
            folder = tmp_path / "photos" / split / name
            folder.mkdir(parents=True)
            for number in range(4):
                pixels = np.clip(generator.normal(colour, 20.0, (128, 128, 3)), 0, 255).astype(np.uint8)
                Picture.fromarray(pixels).save(folder / f"{number}.png")
    return tmp_path / "photos"


def test_the_page_has_fifty_lines_of_code_and_its_launch_line_is_one() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 50
    arguments = dict(word.split(":=") for word in re.findall(r"armstack launch aux (.*)", PAGE)[0].split())
    camera, node = read_launch_file(find_launch_file("aux"), arguments)
    assert "real_camera_node" in camera.command and "auxiliary_node" in node.command and node.shutdown_on_exit
    told = [word for word in node.command if ":=" in word]
    assert 'method:="my_method:METHOD"' in told and "hold_above:=0.5" in told and 'hold_on:=""' in told
    (alone,) = read_launch_file(find_launch_file("aux"), {**arguments, "with_camera": "false", "name": "colour_guard"})
    assert "__node:=colour_guard" in alone.command


def test_it_is_trained_and_judged(cli: Cli, photos: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs/colour"
    options = ("--data", photos / "train", "--run-dir", run, "--config.softness", "0.1", "--json")
    trained = cli("aux", "train", "my_method:METHOD", *options)
    assert trained.status == 0, trained.err
    assert trained.figures["bundle"] == str(run / "bundle") and "8 pictures of 2 classes" in trained.err
    judged = cli("aux", "eval", "my_method:METHOD", "--bundle", run / "bundle", "--data", photos / "test", "--json")
    assert judged.figures["accuracy"] == 1.0 and judged.figures["sha256"] == trained.figures["sha256"]
    assert json.loads((run / "bundle/bundle.json").read_text())["config"]["settings"] == {"softness": 0.1}


def test_it_is_launched_on_a_camera_and_holds(graph: Graph, photos: Path, tmp_path: Path) -> None:
    assert main(["aux", "train", "my_method:METHOD", "--data", str(photos / "train"), "--run-dir", str(tmp_path)]) == 0
    results, holds = graph.collect(String, "aux/colour/result"), graph.collect(DiagnosticArray, "safety/holds")
    camera = advertise(graph.probe, Image, "cell/image", SENSOR)
    arguments = {
        "method": "my_method:METHOD", "bundle": str(tmp_path / "bundle"), "source": "topic", "topic": "/cell/image",
        "name": "colour_guard", "hold_on": "unknown", "hold_above": "0.2", "max_age_s": "2.0",
    }  # fmt: skip
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    lines = Collected()

    def judged(colour: tuple[int, int, int]) -> dict[str, Any]:
        """The result of a picture of that colour, sent again and again."""
        stamps: set[int] = set()
        for _ in range(400):
            stamps.add(time.time_ns())
            camera.publish(rgb_image(np.full((128, 128, 3), colour, np.uint8), frame="", stamp_ns=max(stamps)))
            for message in results.messages[-5:]:
                if (said := json.loads(message.data))["stamp"] in stamps:
                    return said
            time.sleep(0.1)
        raise AssertionError(f"no result; {lines.messages[-5:]}")

    with Launch(read_launch_file(find_launch_file("aux"), arguments), env=env, emit=lines.add):
        for name, colour in COLOURS.items():
            said = judged(colour)
            assert max(said["scores"], key=said["scores"].get) == name and said["values"]["unknown"] < 0.2
        holds.wait(lambda m: m.status[0].name == "colour_guard" and m.status[0].level == DiagnosticStatus.OK)
        said = judged((30, 30, 250))
        assert said["values"]["unknown"] > 0.2
        holds.wait(lambda m: m.status[0].level == DiagnosticStatus.ERROR and "above 0.2" in m.status[0].message)
