"""The drawing of a person's stroke on other arms than the MuJoCo one: simulators of the makers' protocols (make sims)."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from std_msgs.msg import String

from rl_core.methods import load_policy
from rl_core.training.run import train
from robot_bridge.drawing import check_reach, drawing, hand_of, stroke
from robot_bridge.nodes.messages import pose_arrays
from tests.robot_bridge.arms.simulators import franky_sim, trossen_sim
from tests.ros_graph import Graph

SETTINGS: dict[str, Any] = {
    "c": 1.1, "latent": 8, "horizon": 25, "blocks": 2, "block_width": 8, "jitter_copies": 2, "jitter": 0.4, "lag": 1, "lr_decay_steps": 500,
}  # fmt: skip
BESIDE_M = 0.02


def assert_draws(graph: Graph, folder: Path, arm: str, host: str) -> None:
    """Trains for where the arm's hand is, launches the drawing, and watches hand and certificate until the stroke's end."""
    position, quaternion, limits = hand_of(arm, host)
    path = stroke("Sine", position, size=0.15, seconds=8.0)
    check_reach(path, limits)
    result = train("contractive", drawing(path, quaternion), folder / "train", overrides=SETTINGS, trainer={"updates": 500})
    assert result.bundle is not None
    motion = _motion(result.bundle, path)
    assert np.linalg.norm(motion[:, None] - path[None], axis=-1).min(axis=1).mean() < 0.01  # it is the stroke
    poses, certificates = graph.collect(PoseStamped, "ee_pose"), graph.collect(String, "policy/certificate")
    given = {"bundle": str(result.bundle), "arm": arm, "host": host}
    process = graph.process("robot_bridge.cli", "launch", "contractive_draw", *(f"{name}:={text}" for name, text in given.items()))
    near = 0

    def arrived(message: PoseStamped) -> bool:
        nonlocal near
        near = near + 1 if np.linalg.norm(pose_arrays(message)[0] - motion[-1]) < BESIDE_M else 0
        return near >= 25

    poses.wait(arrived, timeout_s=100)
    told = [json.loads(message.data) for message in certificates.messages]
    hand = np.stack([pose_arrays(message)[0] for message in poses.messages])
    process.end(signal.SIGINT, timeout_s=30)
    assert len(told) > 50 and {row["verdict"] for row in told} <= {"ok", "disturbed"}
    beside = np.linalg.norm(hand[:, None] - motion[None], axis=-1)
    assert beside.min(axis=1).max() < BESIDE_M  # the hand is nowhere off the motion
    assert beside.min(axis=0).max() < BESIDE_M  # and leaves no part of it out


def _motion(bundle: Path, path: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the policy would take a hand without mass (N, 3) m."""
    policy: Any = load_policy(bundle)
    start = np.zeros((1, policy.frame.size))
    start[0, :3] = (path[0] - path[-1]) / policy.frame.units[:3]
    coarse = policy.model.rollout(start)[1][0, :, :3] * policy.frame.units[:3] + path[-1]
    share = np.linspace(0, len(coarse) - 1, 10 * len(coarse))
    return np.stack([np.interp(share, np.arange(len(coarse)), coarse[:, axis]) for axis in range(3)], axis=1)


def test_franky_sim_draws(graph: Graph, tmp_path: Path) -> None:
    pytest.importorskip("franky", reason="pip install 'armstack[franka]'")
    with franky_sim() as host:
        assert_draws(graph, tmp_path, "franka", host)


def test_trossen_arm_sim_draws(graph: Graph, tmp_path: Path) -> None:
    pytest.importorskip("trossen_arm", reason="pip install 'armstack[trossen]'")
    with trossen_sim() as host:
        assert_draws(graph, tmp_path, "trossen", host)
