"""A policy that swings a joint."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.contract import ContractError
from robot_bridge.control.swing import Swing
from sim_envs.arm.observation import world_contract


def _swing() -> Swing:
    return Swing(world_contract("reach", "joint_delta"), "panda_joint1", amplitude_rad=0.3, period_s=2.0)


def test_an_arm_that_follows_swings_and_only_that_joint() -> None:
    swing, joints = _swing(), torch.linspace(-0.5, 0.5, 7)[None].repeat(2, 1)
    joints[1] += 0.1
    start, state, track = joints.clone(), _swing().reset([0, 1]), []
    for _ in range(40):
        chunk, state = swing.act(TensorDict({"joint_pos": joints}, batch_size=[2]), TensorDict({}, batch_size=[]), state)
        assert chunk.values.shape == (2, 1, 8) and chunk.values.abs().max() <= 1.0 and (chunk.values[..., -1] == -1.0).all()
        joints = joints + 0.1 * chunk.values[:, 0, :7]
        track.append(joints[:, 0] - start[:, 0])
    times = 0.05 * np.arange(1, 41)
    np.testing.assert_allclose(torch.stack(track).numpy(), 0.3 * np.sin(np.pi * times)[:, None].repeat(2, 1), atol=1e-5)
    np.testing.assert_allclose(joints[:, 1:].numpy(), start[:, 1:].numpy(), atol=1e-6)


def test_a_row_begins_anew_from_where_it_is() -> None:
    swing = _swing()
    state = swing.reset([0, 1])
    _, state = swing.act(TensorDict({"joint_pos": torch.zeros(2, 7)}, batch_size=[2]), TensorDict({}, batch_size=[]), state)
    state = swing.reset_rows(state, [1], [5])
    assert state.tensors["step"].tolist() == [[1.0], [0.0]] and state.tensors["first"][1].isnan().all()


def test_what_cannot_swing_is_refused() -> None:
    with pytest.raises(ContractError, match="valid: deltas of joints"):
        Swing(world_contract("reach", "ee_delta"), "panda_joint1", amplitude_rad=0.3, period_s=2.0)
    with pytest.raises(ContractError, match="'elbow'.*panda_joint1"):
        Swing(world_contract("reach", "joint_delta"), "elbow", amplitude_rad=0.3, period_s=2.0)
