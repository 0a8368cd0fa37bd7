"""Geometry, echo messages, distance."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from rl_core.errors import ContractError, ContractMismatch
from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS, Person, RadarError, RadarGeometry, echo_of, keypoint_distance
from sim_envs.sensors.humanoid import KEYPOINTS

GEOMETRY = RadarGeometry(
    transmitters=((0.0, -0.2, 0.6), (0.0, 0.2, 0.6)),
    receivers=((0.0, 0.0, 0.0), (0.0, 0.0, 0.4), (0.0, 0.0, 0.8)),
    frequencies=(1e9, 1.5e9, 2e9, 2.5e9),
    frames=3,
    period_s=0.1,
)


def test_keypoints_have_one_order() -> None:
    assert JOINTS == KEYPOINTS


def test_geometry_goes_through_its_message() -> None:
    assert RadarGeometry.from_json(GEOMETRY.to_json()) == GEOMETRY and GEOMETRY.shape == (3, 2, 3, 4)
    moved = json.loads(GEOMETRY.to_json())
    for text, says in (
        ("[]", "valid: an object of transmitters"),
        ("{", "not readable"),
        (json.dumps({**moved, "gain": 1}), "valid: an object of"),
        (json.dumps({**moved, "frequencies": [2e9, 1e9]}), "above 0 Hz and rising"),
        (json.dumps({**moved, "frequencies": [1e9, 2e9, 4e9]}), "valid: equal steps"),
        (json.dumps({**moved, "receivers": [[0, 0]]}), r"receivers .*valid: one or more \(x, y, z\)"),
        (json.dumps({**moved, "frames": 0}), "frames 0"),
        (json.dumps({**moved, "period_s": "fast"}), "not readable"),
    ):
        with pytest.raises(ContractError, match=says):
            RadarGeometry.from_json(text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"transmitters": ((0.0, -0.2, 0.6), (0.0, 0.25, 0.6))},
            r"radar.transmitters\[1\]: needs \[0.0, 0.2, 0.6\] m, offered \[0.0, 0.25, 0.6\]",
        ),
        ({"receivers": GEOMETRY.receivers[::-1]}, r"radar.receivers\[\d\]: needs"),
        ({"receivers": GEOMETRY.receivers[:2]}, "radar.receivers: needs 3, offered 2"),
        (
            {"frequencies": (1e9, 1.4e9, 1.8e9, 2.2e9)},
            "radar.frequencies: needs 4 from 1.0000 to 2.5000 GHz, offered 4 from 1.0000 to 2.2000",
        ),
        ({"frames": 4}, "radar.frames: needs 3, offered 4"),
        ({"period_s": 0.2}, "radar.period_s: needs 0.1, offered 0.2"),
    ],
)
def test_a_radar_of_another_geometry_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ContractMismatch, match=says):
        GEOMETRY.accepts(dataclasses.replace(GEOMETRY, **change))
    GEOMETRY.accepts(dataclasses.replace(GEOMETRY, period_s=0.101))


def test_a_message_becomes_a_complex_window() -> None:
    numbers = np.random.default_rng(0).normal(size=(3, 2, 3, 4, 2)).astype(np.float32)
    window = echo_of(numbers, GEOMETRY)
    assert window.dtype == np.complex64 and window.shape == GEOMETRY.shape
    np.testing.assert_array_equal(window, numbers[..., 0] + 1j * numbers[..., 1])
    with pytest.raises(RadarError, match=r"shape \(3, 2, 3, 4\), valid: \(3, 2, 3, 4, 2\)"):
        echo_of(numbers[..., 0], GEOMETRY)
    numbers[0, 0, 0, 0, 0] = np.nan
    with pytest.raises(RadarError, match="NaN or infinity"):
        echo_of(numbers, GEOMETRY)


def test_distance_is_to_the_line_through_the_links() -> None:
    arm = [(0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0)]
    assert keypoint_distance([(0.5, 0.0, 1.5)], arm) == pytest.approx(0.5)  # beside the middle of a link
    assert keypoint_distance([(1.3, 0.4, 1.0), (5, 5, 5)], arm) == pytest.approx(0.5)  # past the tip; the nearest joint counts
    assert keypoint_distance([(3.0, 4.0, 0.0)], arm[:1]) == pytest.approx(5.0)
    person = Person(joints=np.full((14, 3), 2.0, np.float32), activity={"standing": 1.0}, body=np.zeros((1, 1, 1), np.float32))
    assert person.distance_to(np.array(arm)) == pytest.approx(math.sqrt(1 + 4 + 1))
    for wrong in (np.zeros((0, 3)), np.zeros((2, 2)), [(np.nan, 0, 0)]):
        with pytest.raises(RadarError, match=r"valid: \(k, 3\) finite numbers"):
            keypoint_distance([(0, 0, 0)], wrong)
