"""Behaviour cloning: maximum likelihood of the demonstrated action given the observation.

Heads (one network, three likelihoods; robomimic's BC and BC-GMM, arXiv 2108.03298, appendix on BC):

    deterministic   loss = mean (mu(s) - a)^2
    gaussian        loss = -log N(a; mu(s), diag sigma(s)^2)
    gmm             loss = -log sum_k w_k(s) N(a; mu_k(s), diag sigma_k(s)^2)

Acting: the mean; for `gmm` the mean of a component drawn by its weight, from the row's own generator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.data.normalizer import Normalizer
from rl_core.models.mlp import MLP
from rl_core.models.optimizer import ClippedAdam
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
from rl_core.restore import restore_contract, restore_normalizer, restore_weights
from rl_core.training.config import Config
from rl_core.training.seeding import torch_generator

Head = Literal["deterministic", "gaussian", "gmm"]


@dataclass(frozen=True, kw_only=True)
class BCConfig(Config):
    """Behaviour cloning; the defaults are robomimic's for low-dimensional data."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cpu": {"hidden": (256, 256), "batch_size": 128, "lr": 1e-3},
        "demo": {"hidden": (256, 256), "batch_size": 128, "lr": 1e-3},
    }

    head: Head = "deterministic"
    """Likelihood of the action: deterministic, gaussian or gmm."""
    batch_size: int = 256
    """Transitions in a batch."""
    hidden: tuple[int, ...] = (1024, 1024)
    """Widths of the hidden layers (robomimic: 1024, 1024)."""
    activation: str = "relu"
    """Activation between the layers."""
    lr: float = 1e-4
    """Adam's learning rate (robomimic: 1e-4)."""
    max_grad_norm: float = 0.0
    """Global norm that gradients are clipped to; 0 = no clipping."""
    modes: int = 5
    """Components of the gmm head (robomimic: 5)."""
    min_std: float = 1e-2
    """Lower bound on a component's standard deviation, in policy values; keeps the likelihood of repeated actions finite."""
    normalize_observations: bool = True
    """Standardise observations with the dataset's statistics, which are kept in the bundle."""

    def __post_init__(self) -> None:
        self.require_least(batch_size=1, hidden=1, modes=1, max_grad_norm=0)
        self.require_above_zero("lr", "min_std")


def head_size(config: BCConfig, action_size: int) -> int:
    """Outputs of the network."""
    return {"deterministic": action_size, "gaussian": 2 * action_size, "gmm": config.modes * (2 * action_size + 1)}[config.head]


def split_head(config: BCConfig, output: Tensor, action_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Network output (B, head_size) -> log weights (B, K), means in [-1, 1] (B, K, A), standard deviations (B, K, A); K = 1 but for gmm."""
    modes = config.modes if config.head == "gmm" else 1
    logits = output[:, :modes] if config.head == "gmm" else output.new_zeros(len(output), 1)
    rest = output[:, modes:] if config.head == "gmm" else output
    parts = rest.reshape(len(output), modes, -1)
    means = torch.tanh(parts[..., :action_size])
    stds = F.softplus(parts[..., action_size:]) + config.min_std if config.head != "deterministic" else torch.ones_like(means)
    return torch.log_softmax(logits, dim=-1), means, stds


def bc_loss(config: BCConfig, output: Tensor, action: Tensor) -> Tensor:
    """Mean loss over the batch: squared error per dimension, or negative log likelihood; `action` (B, A)."""
    log_weights, means, stds = split_head(config, output, action.shape[-1])
    if config.head == "deterministic":
        return F.mse_loss(means.squeeze(1), action)
    z = (action.unsqueeze(1) - means) / stds
    log_density = (-0.5 * z**2 - stds.log() - 0.5 * math.log(2 * math.pi)).sum(-1)
    return -torch.logsumexp(log_weights + log_density, dim=-1).mean()


class BCPolicy(StatelessPolicy):
    """See the module; `normalizer` is None where observations are not scaled."""

    def __init__(self, config: BCConfig, contract: RobotContract, net: MLP, normalizer: Normalizer | None) -> None:
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
        log_weights, means, _ = split_head(self.config, self.net(observation.to(self.device)), self.contract.action.size)
        if self.config.head == "gmm":
            # One uniform number a row picks its component: the first whose cumulated weight exceeds it.
            uniform = torch.stack([torch.rand((), generator=generator) for generator in state.generators]).to(self.device)
            chosen = (log_weights.exp().cumsum(-1) < uniform.unsqueeze(-1)).sum(-1).clamp_max(self.config.modes - 1)
            means = means.gather(1, chosen[:, None, None].expand(-1, 1, means.shape[-1]))
        return ActionChunk(values=means, period_s=self.contract.action.period_s), state


class BCLearner:
    """Implements `Learner`.

    Args:
        config: hyperparameters.
        contract: observation channels and action of the policy.
        device: torch device.
        seed: seed of the initial weights.
        data: what is trained on; gives the observation statistics where the configuration asks for them.
    """

    method = "bc"

    def __init__(
        self, config: BCConfig, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        if config.normalize_observations and data is None:
            raise ValueError("BCLearner needs `data` for the observation statistics (normalize_observations is true)")
        self.config = config
        self.contract = contract
        self.device = torch.device(device)
        self.normalizer: Normalizer | None = None
        if config.normalize_observations and data is not None:
            self.normalizer = Normalizer.fit(data, contract)
        weights = torch_generator(seed, "bc", "weights")
        self.net = make_net(config, contract, generator=weights).to(device)
        self.optimizer = ClippedAdam(self.net.parameters(), lr=config.lr, max_norm=config.max_grad_norm)

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One step down the negative log likelihood; keys `observation` (B, S), `action` (B, A)."""
        observation, action = batch["observation"], batch["action"].to(self.device)
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
        loss = bc_loss(self.config, self.net(observation.to(self.device)), action)
        norm = self.optimizer.minimize(loss)
        return {"loss/actor": loss.detach(), "grad/actor": norm}

    def policy(self) -> BCPolicy:
        """The policy of the current weights, shared."""
        return BCPolicy(self.config, self.contract, self.net, self.normalizer)

    def init_from(self, bundle: Bundle) -> None:
        """Starts from a trained policy's weights and statistics; the optimiser starts anew."""
        policy = policy_from_bundle(bundle)
        self.contract.accepts(policy.contract, needed_by="this run", offered_by="the bundle of init_from")
        self.net.load_state_dict(policy.net.state_dict())
        self.normalizer = policy.normalizer

    def bundle(self) -> Bundle:
        """Network and observation statistics."""
        return Bundle(
            kind="policy",
            method=self.method,
            config=self.config.to_dict(),
            contract=self.contract,
            normalizer=self.normalizer.to_dict() if self.normalizer is not None else None,
            weights=self.net.state_dict(),
        )

    def state_dict(self) -> dict[str, Any]:
        """Network, optimiser and statistics."""
        normalizer = self.normalizer.to_dict() if self.normalizer is not None else None
        return {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "normalizer": normalizer}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.normalizer = Normalizer.from_dict(state["normalizer"]) if state["normalizer"] is not None else None


def make_net(config: BCConfig, contract: RobotContract, *, generator: torch.Generator | None = None) -> MLP:
    """Observation (B, S) -> head's outputs."""
    outputs = head_size(config, contract.action.size)
    return MLP(contract.observation_size, outputs, config.hidden, activation=config.activation, generator=generator)


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> BCPolicy:
    """The policy of a bundle that `BCLearner.bundle` wrote.

    Raises:
        BundleError: no contract, or weights that do not fit the configuration.
    """
    contract, config = restore_contract(bundle), BCConfig.from_dict(bundle.config)
    net = restore_weights(make_net(config, contract), bundle, device)
    return BCPolicy(config, contract, net, restore_normalizer(bundle, needed=config.normalize_observations))
