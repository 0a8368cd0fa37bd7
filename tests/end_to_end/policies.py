"""Policies and bundles for end-to-end tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.methods import get_method, make_learner
from rl_core.policy import ActionChunk, Policy, PolicyState, StatelessPolicy
from robot_bridge.collection import CollectionPlan, make_world, record_episode


class RecordingPolicy:
    """A policy that keeps what it saw, did and said of it; calls on zeros (the warm-up) are left out."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.contract = policy.contract
        self.prepare = policy.prepare
        self.reset = policy.reset
        self.reset_rows = policy.reset_rows
        self.subgoal_channel = getattr(policy, "subgoal_channel", None)
        self.example_condition = getattr(policy, "example_condition", {})
        self.observations: list[dict[str, np.ndarray]] = []
        self.actions: list[np.ndarray] = []
        self.info: list[dict[str, np.ndarray]] = []

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        chunk, after = self._policy.act(obs, condition, state)
        if any(bool(torch.any(value)) for value in obs.values()):
            self.observations.append({str(name): value.numpy().copy() for name, value in obs.items()})
            self.actions.append(chunk.values.numpy().copy())
            self.info.append({name: value.numpy().copy() for name, value in chunk.info.items()})
        return chunk, after


class RandomWalk(StatelessPolicy):
    """Smooth random end-effector motion that also depends on what is seen: any difference in an observation grows."""

    def __init__(self, contract: RobotContract, *, horizon: int = 1, size: float = 1.0) -> None:
        self.contract = contract
        self._size = size
        self._horizon = horizon

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset`."""
        state = super().reset(seeds)
        size = self.contract.action.size
        return PolicyState(generators=state.generators, tensors={"last": torch.zeros(len(seeds), size)})

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset_rows`."""
        last = state.tensors["last"].clone()
        last[list(rows)] = 0.0
        return PolicyState(generators=super().reset_rows(state, rows, seeds).generators, tensors={"last": last})

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        noise = state.normal(self._horizon, self.contract.action.size)
        seen = 0.2 * torch.sin(50 * obs["eef_pos"].sum(-1, keepdim=True) + 50 * obs["gripper_to_cube_pos"].sum(-1, keepdim=True))
        values = [state.tensors["last"]]
        for i in range(self._horizon):
            values.append((0.8 * values[-1] + 0.4 * noise[:, i] + seen).clamp(-1, 1))
        chunk = ActionChunk(values=self._size * torch.stack(values[1:], 1), period_s=self.contract.action.period_s, execute=self._horizon)
        return chunk, PolicyState(generators=state.generators, tensors={"last": values[-1]})


def small_bundle(folder: Path, *, task: str = "lift", method: str = "bc", **config: Any) -> Path:
    """A bundle with random weights and a normaliser of two short demonstrations."""
    env = make_world(task, "filtered", 10)
    plan = CollectionPlan(task=task, episodes=2, horizon=10, seed=1)
    dataset = Dataset(contract=env.contract, episodes=tuple(record_episode(env, plan, i) for i in range(2)))  # type: ignore[attr-defined]
    learner = make_learner(method, get_method(method).config_class(**config), dataset, seed=0)
    return learner.bundle().save(folder)
