"""SAC (arXiv 1812.05905) and TD3 (arXiv 1802.09477): stable-baselines3's updates inside our Trainer.

The gradient step is theirs, unchanged; worlds, replay, checkpoints, metrics and resume are ours. A dataset or a `-v0` world
is thus judged by the same expert everywhere, and a run can be stopped and resumed to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from tensordict import TensorDict
from torch import Tensor

from rl_core.baselines.sb3_export import export_sb3
from rl_core.baselines.sb3_policy import SB3Policy, policy_from_bundle
from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
from rl_core.training.config import Config
from rl_core.training.seeding import derive_seed, preserved_rng


@dataclass(frozen=True, kw_only=True)
class OnlineConfig(Config):
    """What SAC and TD3 share."""

    batch_size: int = 256
    """Transitions in a batch."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of actor and critics."""
    gamma: float = 0.99
    """Discount."""
    tau: float = 0.005
    """Rate of the target networks' moving average."""
    replay_size: int = 1_000_000
    """Transitions kept."""
    random_steps: int = 1_000
    """World steps with random actions before the first update."""
    steps_per_update: int = 1
    """World steps before each update."""


@dataclass(frozen=True, kw_only=True)
class SACConfig(OnlineConfig):
    """Soft Actor-Critic with a learned entropy weight; defaults of the paper."""

    lr: float = 3e-4
    """Adam's learning rate of actor, critics and entropy weight."""


@dataclass(frozen=True, kw_only=True)
class TD3Config(OnlineConfig):
    """Twin Delayed DDPG; defaults of the paper."""

    lr: float = 1e-3
    """Adam's learning rate of actor and critics."""
    exploration_noise: float = 0.1
    """Standard deviation of the Gaussian noise on collected actions."""


class _Spaces(gymnasium.Env):
    """Carries the spaces that a model of stable-baselines3 is built from; never stepped."""

    def __init__(self, observation_size: int, action_size: int) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (observation_size,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (action_size,), np.float32)


class _GivenBatch:
    """Stands where a model keeps its replay buffer; hands out the batch it was given."""

    def __init__(self) -> None:
        self.batch: Any = None

    def sample(self, batch_size: int, env: Any = None) -> Any:
        return self.batch


class ExploringPolicy(StatelessPolicy):
    """Collects: SAC draws from its actor, TD3 adds noise to it; each row from its own generator."""

    def __init__(self, model: Any, contract: RobotContract, noise: float | None) -> None:
        self.model, self.contract, self.noise = model, contract, noise

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        observation = flatten_observation(self.contract, obs).to(self.model.device)
        draw = state.normal(self.contract.action.size).to(self.model.device)
        if self.noise is None:
            mean, log_std, _ = self.model.actor.get_action_dist_params(observation)
            values = torch.tanh(mean + log_std.exp() * draw)
        else:
            values = (self.model.actor(observation) + self.noise * draw).clamp(-1.0, 1.0)
        return ActionChunk(values=values.unsqueeze(1), period_s=self.contract.action.period_s), state


class _SB3Learner:
    """Implements `Learner` around a model of stable-baselines3; `data` is not used, an online method starts without."""

    algorithm: str

    def __init__(
        self, config: SACConfig | TD3Config, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        import stable_baselines3
        from stable_baselines3.common.logger import Logger

        self.config = config
        self.contract = contract
        with preserved_rng():
            torch.manual_seed(derive_seed(seed, self.algorithm, "weights"))
            self.model = getattr(stable_baselines3, self.algorithm.upper())(
                "MlpPolicy",
                _Spaces(contract.observation_size, contract.action.size),
                learning_rate=config.lr,
                buffer_size=1,
                batch_size=config.batch_size,
                tau=config.tau,
                gamma=config.gamma,
                policy_kwargs={"net_arch": list(config.hidden)},
                device=device,
            )
        self._given = _GivenBatch()
        self.model.replay_buffer = self._given
        self.model.set_logger(Logger(folder=None, output_formats=[]))

    def update(self, batch: TensorDict) -> Mapping[str, float]:
        """One gradient step of the algorithm on a batch of transitions."""
        from stable_baselines3.common.type_aliases import ReplayBufferSamples

        device = self.model.device
        self._given.batch = ReplayBufferSamples(
            observations=batch["observation"].to(device),
            actions=batch["action"].to(device),
            next_observations=batch["next_observation"].to(device),
            dones=batch["terminal"].to(device).unsqueeze(1),
            rewards=batch["reward"].to(device).unsqueeze(1),
        )
        self.model.train(gradient_steps=1, batch_size=len(batch))
        # TD3 updates its actor every other time; in between there is no actor loss.
        names = {"train/critic_loss": "loss/critic", "train/actor_loss": "loss/actor", "train/ent_coef": "policy/entropy_weight"}
        logged = self.model.logger.name_to_value
        metrics = {ours: float(logged[theirs]) for theirs, ours in names.items() if theirs in logged}
        logged.clear()
        return metrics

    def policy(self) -> SB3Policy:
        """The deterministic policy of the current weights, a copy."""
        return policy_from_bundle(self.bundle(), str(self.model.device))

    def explore(self) -> ExploringPolicy:
        """The policy that collects; it shares the weights."""
        return ExploringPolicy(self.model, self.contract, self.config.exploration_noise if isinstance(self.config, TD3Config) else None)

    def bundle(self) -> Bundle:
        """The actor, rebuilt without stable-baselines3."""
        return export_sb3(self.model, self.contract)

    def _optimizers(self) -> dict[str, Any]:
        optimizers = {"actor": self.model.actor.optimizer, "critic": self.model.critic.optimizer}
        if getattr(self.model, "ent_coef_optimizer", None) is not None:
            optimizers["entropy"] = self.model.ent_coef_optimizer
        return optimizers

    def state_dict(self) -> dict[str, Any]:
        """Networks with their targets, optimisers, entropy weight, update count."""
        entropy: Tensor | None = getattr(self.model, "log_ent_coef", None)
        return {
            "policy": self.model.policy.state_dict(),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self._optimizers().items()},
            "log_ent_coef": entropy.detach().clone() if entropy is not None else None,
            "updates": self.model._n_updates,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.model.policy.load_state_dict(state["policy"])
        for name, optimizer in self._optimizers().items():
            optimizer.load_state_dict(state["optimizers"][name])
        if state["log_ent_coef"] is not None:
            with torch.no_grad():
                self.model.log_ent_coef.copy_(state["log_ent_coef"])
        self.model._n_updates = state["updates"]


class SACLearner(_SB3Learner):
    """Soft Actor-Critic."""

    algorithm = "sac"


class TD3Learner(_SB3Learner):
    """Twin Delayed DDPG."""

    algorithm = "td3"
