"""Actors trained by stable-baselines3, rebuilt in plain torch: loading a bundle needs no stable-baselines3.

SAC acts by tanh(mu(s)), TD3 by tanh of its last layer; both are one MLP with a tanh at its end. Observation statistics of
`VecNormalize` lie in the bundle: s <- clip((s - mean) / sqrt(var + epsilon), -clip, clip).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.normalizer import Normalizer
from rl_core.models.mlp import MLP
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
from rl_core.restore import restore_contract, restore_normalizer, restore_weights
from rl_core.training.config import Config


@dataclass(frozen=True, kw_only=True)
class ActorConfig(Config):
    """What rebuilding an exported actor needs; the bundle's `config`."""

    algorithm: Literal["sac", "td3"]
    """Which algorithm trained it."""
    hidden: tuple[int, ...]
    """Widths of the hidden layers."""
    activation: Literal["relu", "tanh", "elu"] = "relu"
    """Activation between the layers."""
    clip: float | None = None
    """Bound on normalised observations (VecNormalize.clip_obs); none without a normaliser."""


class SB3Policy(StatelessPolicy):
    """The deterministic action of an exported actor."""

    def __init__(self, config: ActorConfig, contract: RobotContract, net: MLP, normalizer: Normalizer | None) -> None:
        self.config = config
        self.contract = contract
        self.net = net
        self.normalizer = normalizer
        self.device = next(net.parameters()).device

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        observation = flatten_observation(self.contract, obs)
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
            if self.config.clip is not None:
                observation = observation.clamp(-self.config.clip, self.config.clip)
        values = torch.tanh(self.net(observation.to(self.device))).unsqueeze(1)
        return ActionChunk(values=values, period_s=self.contract.action.period_s), state


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> SB3Policy:
    """The policy of a bundle that `rl_core.baselines.sb3` wrote.

    Raises:
        BundleError: no contract, statistics that are missing, or weights that do not fit the configuration.
    """
    contract, config = restore_contract(bundle), ActorConfig.from_dict(bundle.config)
    net = MLP(contract.observation_size, contract.action.size, config.hidden, activation=config.activation)
    normalizer = restore_normalizer(bundle, needed=config.clip is not None)
    return SB3Policy(config, contract, restore_weights(net, bundle, device), normalizer)
