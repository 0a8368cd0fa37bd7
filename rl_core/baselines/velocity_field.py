"""What the baselines of contractive policies share: a field y' = f(y) that is regressed on the velocities of demonstrated motions.

    loss = mean |f(y) - v|^2,   v from one point of a motion to the next, in motion sizes per duration; 0 at its end

States, goal and unit are those of `rl_core.contractive.motion`, so that a difference is the method's. Acting is one explicit Euler step.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor, nn

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import RobotContract
from rl_core.contractive.demonstrations import DemonstrationReader
from rl_core.contractive.motion import MotionFrame, fit_frame, motion_contract
from rl_core.contractive.policy import frame_arrays, restore_frame
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.normalizer import Normalizer
from rl_core.models import MLP, ClippedAdam
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
from rl_core.restore import restore_weights
from rl_core.training.config import Config
from rl_core.training.seeding import torch_generator

HEAD_WIDTH = 32


@dataclass(frozen=True, kw_only=True)
class VelocityFieldConfig(Config):
    """What all of them have; the defaults are those of the contractive policies' code."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {"cpu": {"lr_decay_steps": 3_000}}

    batch_size: int = 16
    """Demonstrations in a batch; with fewer demonstrations every batch holds them all."""
    points: int = 128
    """Points of them in a batch, drawn with replacement."""
    horizon: int = 50
    """Points of a motion; demonstrations are resampled to them."""
    lr: float = 1e-3
    """Adam's learning rate."""
    lr_decay_steps: int = 10_000
    """Updates over which the rate falls to 0 along a cosine; 0 keeps it constant."""
    max_grad_norm: float = 0.5
    """Global norm that gradients are clipped to; 0 = no clipping."""
    goal_channel: str = ""
    """Observation channel that says where a motion ends; see `ContractiveConfig.goal_channel`."""

    def __post_init__(self) -> None:
        self.require_least(batch_size=1, points=1, horizon=3, lr_decay_steps=0, max_grad_norm=0)
        self.require_above_zero("lr")


class VelocityModel(nn.Module):
    """A field and, where an action has dimensions that no state moves, a head for them.

    Args:
        field: states (N, n_y) -> velocities (N, n_y).
        size: n_y.
        extra: dimensions of the head.
        generator: source of the head's initial weights.
    """

    def __init__(self, field: nn.Module, size: int, extra: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.field = field
        self.head = MLP(size, extra, (HEAD_WIDTH,), activation="tanh", generator=generator) if extra else None

    def rollout(self, start: Tensor, points: int) -> Tensor:
        """Starts (N, n_y) -> (N, points, n_y) by explicit Euler steps."""
        states = [start]
        with torch.no_grad():
            for _ in range(points - 1):
                states.append(states[-1] + self.field(states[-1]) / (points - 1))
        return torch.stack(states, dim=1)


class VelocityFieldPolicy(StatelessPolicy):
    """Leads from the measured state to where the field is one period later. Double precision, on the CPU."""

    def __init__(self, config: VelocityFieldConfig, frame: MotionFrame, model: VelocityModel, device: str = "cpu") -> None:
        self.config, self.frame, self.device = config, frame, device
        self.contract = frame.contract
        self.model = copy.deepcopy(model).cpu().double().requires_grad_(False)

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`. The goal is read anew in each period: the policy has no memory."""
        raw = flatten_observation(self.contract, obs).numpy().astype(np.float64)
        goal = self.frame.goal(raw)
        measured = self.frame.states(raw[:, : self.frame.width], goal)
        y = torch.from_numpy(measured)
        velocity = self.model.field(y).numpy()
        target = measured + velocity * (self.frame.period_steps / (self.config.horizon - 1))
        values = np.empty((len(raw), self.contract.action.size))
        values[:, self.frame.moved] = self.frame.values(target, measured, goal)
        if self.model.head is not None:
            values[:, self.frame.extra] = torch.tanh(self.model.head(y)).numpy()
        chunk = torch.from_numpy(np.clip(values, -1.0, 1.0).astype(np.float32)).unsqueeze(1).to(self.device)
        return ActionChunk(values=chunk, period_s=self.contract.action.period_s), state


class VelocityFieldLearner(ABC):
    """Implements `Learner`; a method gives its name, its configuration and its field.

    Args:
        config: hyperparameters.
        contract: see `ContractiveLearner`.
        device: torch device.
        seed: seed of the initial weights and of the points drawn.
        data: the demonstrations.

    Raises:
        DatasetError: no data.
    """

    method: ClassVar[str]

    def __init__(
        self, config: VelocityFieldConfig, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        if data is None:
            raise DatasetError(f"{self.method} takes goal and unit from the demonstrations: give `data`")
        self.config = config
        self.device = torch.device(device)
        self.generator = torch_generator(seed, self.method, "points", device=device)
        self.contract = motion_contract(contract, config.goal_channel)
        frame = fit_frame(data, self.contract, goal_channel=config.goal_channel, horizon=config.horizon, stretched=True)
        self.reader = DemonstrationReader(frame, contract, horizon=config.horizon, stretched=True, device=self.device)
        weights = torch_generator(seed, self.method, "weights")
        field = self.make_field(config, frame.size, weights)
        self.model = VelocityModel(field, frame.size, len(frame.extra), generator=weights).to(device)
        decay, norm = config.lr_decay_steps, config.max_grad_norm
        self.optimizer = ClippedAdam(self.model.parameters(), lr=config.lr, decay_steps=decay, max_norm=norm)

    @staticmethod
    @abstractmethod
    def make_field(config: Any, size: int, generator: torch.Generator | None) -> nn.Module:
        """The method's field of `size` dimensions."""

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One step down the squared error of velocities; see `rl_core.training.sources.rollout_source`."""
        demos = self.reader.read(batch)
        velocity = demos.states.diff(dim=1, append=demos.states[:, -1:]) * (self.config.horizon - 1)
        rows = torch.randint(demos.states[..., 0].numel(), (self.config.points,), generator=self.generator, device=self.device)
        states = demos.states.flatten(0, 1)[rows]
        imitation = (self.model.field(states) - velocity.flatten(0, 1)[rows]).square().mean()
        metrics, loss = {"loss/bc": imitation.detach()}, imitation
        if self.model.head is not None:
            extra = (torch.tanh(self.model.head(states)) - demos.extra.flatten(0, 1)[rows]).square().mean()
            loss = loss + extra
            metrics["loss/extra"] = extra.detach()
        return {**metrics, "grad/actor": self.optimizer.minimize(loss)}

    def policy(self) -> VelocityFieldPolicy:
        """The policy of the current weights, copied."""
        return VelocityFieldPolicy(self.config, self.reader.frame, self.model, str(self.device))

    def bundle(self) -> Bundle:
        """Weights and motion frame."""
        return Bundle(
            kind="policy",
            method=self.method,
            config=self.config.to_dict(),
            contract=self.contract,
            normalizer=self.reader.frame.normalizer.to_dict(),
            weights=self.model.state_dict(),
            arrays=frame_arrays(self.reader.frame),
        )

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, generator, and what was taken from the dataset."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "normalizer": self.reader.frame.normalizer.to_dict(),
            "period_steps": self.reader.frame.period_steps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        frame, normalizer = self.reader.frame, Normalizer.from_dict(state["normalizer"])
        period_steps = float(state["period_steps"])
        self.reader.frame = MotionFrame(frame.contract, normalizer, goal_channel=frame.goal_channel, period_steps=period_steps)


def restore_policy(
    learner: type[VelocityFieldLearner], config_class: type[VelocityFieldConfig], bundle: Bundle, device: str
) -> VelocityFieldPolicy:
    """The policy of a bundle that `learner` made.

    Raises:
        BundleError: another method's, or something is missing or does not fit.
    """
    if bundle.method != learner.method:
        raise BundleError(f"bundle of method {bundle.method!r}, valid: {learner.method}")
    config = config_class.from_dict(bundle.config)
    frame = restore_frame(bundle, config.goal_channel)
    model = VelocityModel(learner.make_field(config, frame.size, None), frame.size, len(frame.extra))
    return VelocityFieldPolicy(config, frame, restore_weights(model, bundle), device)


def euler_rollouts(policy: VelocityFieldPolicy, starts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Motions (N, horizon, n_y) of the field from states `starts` (N, n_y)."""
    return policy.model.rollout(torch.from_numpy(starts), policy.config.horizon).numpy()
