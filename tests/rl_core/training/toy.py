"""A tiny learner, source and world for tests of training: noisy regression with Adam and dropout, a point that is pushed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from tensordict import TensorDict
from torch import nn

from rl_core.bundle import Bundle
from rl_core.contract import Action, Channel, RobotContract
from rl_core.policy import ActionChunk, StatelessPolicy, flatten_observation

CONTRACT = RobotContract(
    robot="toy",
    observation=(Channel(name="position", names=("x", "y"), unit="m"), Channel(name="velocity", names=("x",), unit="m/s")),
    action=Action(names=("x", "y"), meaning="delta", space="joint", scale=(1.0, 1.0), units=("rad", "rad")),
)


class ToyPolicy(StatelessPolicy):
    def __init__(self, net: nn.Module, contract: RobotContract = CONTRACT) -> None:
        self.net, self.contract = net, contract

    def act(self, obs, condition, state):
        with torch.no_grad():
            return ActionChunk(values=self.net(flatten_observation(self.contract, obs)).tanh().unsqueeze(1), period_s=0.05), state


class ToyLearner:
    """Uses the global generator (dropout) and a private one (noise), so that resume has both to restore."""

    def __init__(self, seed: int = 0, *, nan_at: int = 0) -> None:
        torch.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.generator = torch.Generator().manual_seed(seed + 1)
        self.steps, self.nan_at = 0, nan_at

    def update(self, batch: TensorDict) -> Mapping[str, Any]:
        self.steps += 1
        self.net.train()
        noise = 0.1 * torch.randn(batch["action"].shape, generator=self.generator)
        loss = ((self.net(batch["observation"]) - batch["action"] - noise) ** 2).mean()
        if self.steps == self.nan_at:
            loss = loss * float("nan")
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss/actor": loss.detach()}

    def state_dict(self) -> dict[str, Any]:
        return {
            "net": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "steps": self.steps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.steps = state["steps"]

    def policy(self) -> ToyPolicy:
        return ToyPolicy(self.net.eval())

    def bundle(self) -> Bundle:
        return Bundle(kind="policy", method="toy", config={}, weights=self.net.state_dict(), contract=CONTRACT)

    def weights(self) -> torch.Tensor:
        return nn.utils.parameters_to_vector(self.net.parameters()).detach().clone()


class ToySource:
    """Random batches from a generator of its own; calls `on_batch` with the number of batches given."""

    def __init__(self, seed: int = 0, on_batch=None) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.given, self.on_batch = 0, on_batch

    def next_batch(self) -> TensorDict:
        self.given += 1
        if self.on_batch is not None:
            self.on_batch(self.given)
        observation = torch.randn(8, 3, generator=self.generator)
        return TensorDict({"observation": observation, "action": observation[:, :2] * 0.5}, batch_size=[8])

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state(), "given": self.given}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.generator.set_state(state["generator"])
        self.given = state["given"]


class PointWorld(gymnasium.Env):
    """A point that is pushed about; episodes of 5 to 9 steps by seed, noise from the world's own generator."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode: str | None = None, *, end: str = "truncated") -> None:
        self.contract, self.render_mode, self.end = CONTRACT, render_mode, end
        box = gymnasium.spaces.Box
        self.observation_space = gymnasium.spaces.Dict({"position": box(-9, 9, (2,)), "velocity": box(-9, 9, (1,))})
        self.action_space = box(-1, 1, (2,))

    def _observe(self):
        return {"position": self.position.astype(np.float32), "velocity": np.array([self.position.sum()], np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.left = self.np_random.normal(size=2), int(self.np_random.integers(5, 10))
        return self._observe(), {}

    def step(self, action):
        self.position = self.position + 0.3 * np.asarray(action) + 0.01 * self.np_random.normal(size=2)
        self.left -= 1
        distance = float(np.linalg.norm(self.position))
        done = self.left == 0
        ends = (done and self.end == "terminated", done and self.end == "truncated")
        return self._observe(), -distance, *ends, {"success": 0.2 <= distance < 0.25}

    def render(self):
        image = np.zeros((33, 32, 3), np.uint8)
        image[:, :, 0] = 20 * self.left
        return image
