"""Policies without learning, for tests of what runs them."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict

from rl_core.contract import RobotContract
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation


class NoisyReach(StatelessPolicy):
    """Moves towards the cube with noise from the row's generator; `execute` of `horizon` actions a chunk."""

    def __init__(self, contract: RobotContract, horizon: int = 1, execute: int = 1) -> None:
        self.contract = contract
        self.horizon, self.execute = horizon, execute
        self.asked = 0

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        self.asked += 1
        flat = flatten_observation(self.contract, obs)
        noise = state.normal(self.horizon, self.contract.action.size)
        values = torch.tanh(0.3 * noise + 0.1 * flat.mean(dim=1)[:, None, None])
        return ActionChunk(values=values, period_s=self.contract.action.period_s, execute=self.execute), state


class Scripted(StatelessPolicy):
    """Gives the chunks it was made with, one after the other."""

    def __init__(self, contract: RobotContract, chunks: list[Any], execute: int) -> None:
        self.contract = contract
        self.chunks = [torch.as_tensor(chunk, dtype=torch.float32)[None] for chunk in chunks]
        self.execute = execute
        self.asked = 0
        self.conditions: list[Any] = []

    def prepare(self, condition: Any) -> TensorDict:
        self.conditions.append(dict(condition))
        return TensorDict({}, batch_size=[])

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        values = self.chunks[self.asked % len(self.chunks)]
        self.asked += 1
        return ActionChunk(values=values, period_s=self.contract.action.period_s, execute=self.execute), state
