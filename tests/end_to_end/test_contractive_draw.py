"""The arm draws over a real graph under its certificate: pushed, it comes back; a certificate that is violated holds it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rl_core.bundle import Bundle
from rl_core.contractive.certificate import PREFIX
from rl_core.training.run import train
from robot_bridge.drawing import TASK, drawing, hand_of, stroke
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.motion_report import draw_certificates, write_drawing_report
from robot_bridge.motion_trace import Motion, read_motions
from robot_bridge.push_experiment import compare
from robot_bridge.pushed_motion import run_pushes

SEED = 3
PUSH = {"displacement": [0.0, -0.05, 0.03], "duration_s": 0.5, "at_s": 3.0}
SMALL: dict[str, Any] = {
    "c": 1.1, "latent": 8, "horizon": 25, "blocks": 2, "block_width": 8, "jitter_copies": 2, "jitter": 0.4, "lag": 1, "lr_decay_steps": 500,
}  # fmt: skip
ARGUMENTS = {"task": TASK, "sim_mode": "lockstep"}


def _trained(folder: Path, position: NDArray[np.float64], quaternion: NDArray[np.float64]) -> tuple[Path, NDArray[np.float64]]:
    path = stroke("Sine", position, size=0.25, seconds=5.0)
    result = train("contractive", drawing(path, quaternion), folder, overrides=SMALL, trainer={"updates": 500})
    assert result.bundle is not None
    return result.bundle, path


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, NDArray[np.float64]]:
    position, quaternion, _ = hand_of("simulated")
    return _trained(tmp_path_factory.mktemp("draw") / "train", position, quaternion)


@pytest.fixture(scope="module")
def drawn(learned: tuple[Path, NDArray[np.float64]], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Motion]]:
    """The bag of an undisturbed and a pushed episode, and what it holds."""
    bag = tmp_path_factory.mktemp("drawn") / "bag"
    arguments = {**ARGUMENTS, "bundle": str(learned[0]), "horizon": "240"}
    figures = run_pushes(bag, arguments, [(SEED, None), (SEED, PUSH)])
    assert [row.length for row in figures] == [240, 240]
    return bag, read_motions(bag)


def test_a_push_is_a_disturbance_and_the_arm_comes_back(
    drawn: tuple[Path, list[Motion]], learned: tuple[Path, NDArray[np.float64]]
) -> None:
    undisturbed, pushed = drawn[1]
    assert undisturbed.pushed is None and undisturbed.certified[-1].disturbances == 0
    assert {row.verdict for row in undisturbed.certified} == {"ok"}
    assert pushed.pushed == pytest.approx((3.0, 3.5), abs=0.02)
    assert pushed.certified[-1].disturbances == 1
    assert "disturbed" in {row.verdict for row in pushed.certified} and "hold" not in {row.verdict for row in pushed.certified}
    jumped = next(row for row in pushed.certified if row.verdict == "disturbed")
    assert 3.0 <= jumped.seconds <= 3.7 and jumped.v == jumped.bound
    row = compare(undisturbed, pushed, PUSH)
    assert row["displaced_m"] > 0.03 and row["back"]
    assert np.linalg.norm(pushed.hand[-1] - learned[1][-1]) < 0.03


def test_v_and_its_bound_are_in_the_report(
    drawn: tuple[Path, list[Motion]], learned: tuple[Path, NDArray[np.float64]], tmp_path: Path
) -> None:
    bag, (undisturbed, pushed) = drawn
    picture = draw_certificates(bag, tmp_path / "certificate.png")
    assert picture is not None and picture.read_bytes().startswith(b"\x89PNG")
    places = {"shape": "Sine", "bundle": learned[0], "bag": bag, "video": None, "no_video": "nothing draws here"}
    page = write_drawing_report(tmp_path / "report.html", pushed, undisturbed, learned[1], **places).read_text()
    assert "<td>disturbances</td><td>1</td>" in page and "data:image/png" in page and "No video: nothing draws here" in page


def test_a_policy_slower_than_its_certificate_is_held_and_the_episode_goes_on_without_it(
    learned: tuple[Path, NDArray[np.float64]], tmp_path: Path
) -> None:
    bundle = Bundle.load(learned[0])
    arrays = {**bundle.arrays, f"{PREFIX}factor": torch.tensor(0.2, dtype=torch.float64)}
    lying = dataclasses.replace(bundle, arrays=arrays).save(tmp_path / "lying")
    figures = run_pushes(tmp_path / "bag", {**ARGUMENTS, "bundle": str(lying), "horizon": "100"}, [(SEED, None), (SEED + 1, None)])
    assert [row.length for row in figures] == [100, 100]
    for motion in read_motions(tmp_path / "bag"):
        (held,) = [row for row in motion.certified if row.verdict == "hold"]  # an episode that was asked for is a start
        assert "above its bound" in held.reason and held is motion.certified[-1]
        rest = motion.hand[motion.seconds > held.seconds + 1.0]
        assert len(rest) > 20 and np.ptp(rest, axis=0).max() < 1e-3


def test_the_launch_file_starts_what_is_asked_for(tmp_path: Path) -> None:
    file = find_launch_file("contractive_draw")
    names = [spec.name for spec in read_launch_file(file, {"bundle": "b"})]
    assert [name.rsplit("-", 1)[0] for name in names] == ["arm", "policy"]
    specs = read_launch_file(file, {"policy": "false", "record": "true", "viewer": "true", "arm": "franka", "host": "10.0.0.2"})
    assert [spec.name.rsplit("-", 1)[0] for spec in specs] == ["recorder", "arm", "camera_front"]
    given = " ".join(specs[1].command)
    assert 'arm:="franka"' in given and 'host:="10.0.0.2"' in given and "launch/config/arm.yaml" in given
