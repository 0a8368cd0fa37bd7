"""How the pushes experiment replays, pushes and judges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from robot_bridge.motion_trace import Motion
from robot_bridge.nodes.disturbance_requests import disturbance
from robot_bridge.push_experiment import OpenLoop, compare, pushes, summary
from sim_envs.arm.observation import world_contract
from tests.end_to_end.policies import RandomWalk

REQUEST = {"displacement": [0.0, 0.06, 0.0], "duration_s": 0.5, "at_s": 4.0}


def _observation(seed: int) -> TensorDict:
    rng = np.random.default_rng(seed)
    channels = {c.name: torch.tensor(rng.normal(size=(1, *c.shape)), dtype=torch.float32) for c in world_contract("lift").observation}
    return TensorDict(channels, batch_size=[1])


def _play(policy: Any, seed: int, steps: int, seen: int) -> list[np.ndarray]:
    state, condition, actions = policy.reset([seed]), policy.prepare({}), []
    for step in range(steps):
        chunk, state = policy.act(_observation(seen + step), condition, state)
        actions.append(chunk.values[0, 0].numpy())
    return actions


def test_open_loop_acts_once_a_seed_and_then_repeats_itself_whatever_it_sees() -> None:
    policy = OpenLoop(RandomWalk(world_contract("lift")))
    closed = _play(RandomWalk(world_contract("lift")), 7, 12, seen=0)
    first, again = _play(policy, 7, 12, seen=0), _play(policy, 7, 14, seen=500)
    assert np.array_equal(first, closed)
    assert np.array_equal(again[:12], first) and np.array_equal(again[13], first[-1])
    other = _play(policy, 8, 12, seen=0)
    assert not np.array_equal(other, first)


def _motion(offset: Any, *, pushed: bool, **changes: Any) -> Motion:
    seconds = np.arange(201) * 0.05
    hand = np.stack([0.45 + 0 * seconds, 0.02 * seconds, 0.1 + 0 * seconds], axis=1)
    hand[:, 2] += offset(seconds)
    forces = np.zeros((51, 3))
    forces[:-1, 2] = 50.0 if pushed else 0.0
    values: dict[str, Any] = {
        "index": 0, "seed": 3, "success": True, "seconds": seconds, "hand": hand, "force_seconds": 4.0 + 0.01 * np.arange(51),
        "forces": forces if pushed else np.zeros((0, 3)), "certified": (),
    }  # fmt: skip
    return Motion(**{**values, **changes})


def test_a_motion_is_back_when_it_stays_near_the_undisturbed_path_until_the_end() -> None:
    undisturbed = _motion(lambda s: 0 * s, pushed=False)
    returns = _motion(lambda s: np.where(s < 4, 0, 0.06 * np.exp(-np.clip(s - 4.5, 0, None))), pushed=True)
    row = compare(undisturbed, returns, REQUEST)
    assert row["back"] and row["back_in_time"] and row["displaced_m"] == pytest.approx(0.06)
    assert row["seconds_back"] == pytest.approx(np.log(0.06 / 0.015), abs=0.06)
    leaves = _motion(lambda s: np.where(s < 4, 0, np.where(s < 9, 0.005, 0.03)), pushed=True)
    assert not compare(undisturbed, leaves, REQUEST)["back"] and compare(undisturbed, leaves, REQUEST)["seconds_back"] is None
    stays = _motion(lambda s: np.where(s < 4, 0, 0.06), pushed=True)
    assert not compare(undisturbed, stays, REQUEST)["back"]


def test_a_motion_that_is_late_is_back_on_the_path_but_not_in_time() -> None:
    undisturbed = _motion(lambda s: 0 * s, pushed=False)
    late = undisturbed.hand.copy()
    late[80:, 1] = undisturbed.hand[80:, 1] - np.minimum(0.02 * (undisturbed.seconds[80:] - 4), 0.04)
    row = compare(undisturbed, _motion(lambda s: 0 * s, pushed=True, hand=late), REQUEST)
    assert row["back"] and not row["back_in_time"] and row["end_m"] == pytest.approx(0.04)


def test_figures_are_shares_in_percent_with_an_interval() -> None:
    undisturbed = _motion(lambda s: 0 * s, pushed=False)
    returns = compare(undisturbed, _motion(lambda s: np.where((s > 4) & (s < 5), 0.05, 0), pushed=True), REQUEST)
    stays = compare(undisturbed, _motion(lambda s: np.where(s > 4, 0.07, 0), pushed=True, success=False), REQUEST)
    figures = summary([returns] * 9 + [stays])
    assert figures["trials"] == 10 and figures["back_percent"] == 90.0 and figures["success_percent"] == 90.0
    assert figures["back_percent_low"] == pytest.approx(59.6, abs=0.1) and figures["displaced_cm"] == pytest.approx(5.2)
    nobody = summary([stays])
    assert nobody["seconds_back_median"] is None and nobody["back_percent"] == 0.0


def test_pushes_are_what_the_arm_node_takes_and_follow_from_the_seed() -> None:
    config = {"trials": 40, "push_at_s": [3.0, 5.0], "push_m": [0.05, 0.08]}
    made = pushes(config, 5000)
    assert made == pushes(config, 5000) != pushes(config, 5001)
    for request in made:
        push, at_s = disturbance({"id": "a", **request})
        assert 0.05 <= np.linalg.norm(push.displacement) <= 0.08 and push.displacement[2] >= 0 and at_s is not None and 3 <= at_s <= 5
