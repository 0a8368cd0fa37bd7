"""Behaviour cloning with a diffusion policy: DAC's noise network, process and sampler without a critic.

    loss = mean (eps_theta(sqrt(abar_t) a + sqrt(1 - abar_t) eps, t, s) - eps)^2,  t ~ U{1..T}   (DDPM eq. 14, arXiv 2006.11239)

One action is drawn by the full reverse chain from a moving average of the weights, as diffusion policies do (arXiv 2303.04137).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.normalizer import Normalizer
from rl_core.models import ClippedAdam, ema_update
from rl_core.models.diffusion import NoiseMLP, ancestral_sample, q_sample, vp_schedule
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
from rl_core.restore import restore_contract, restore_normalizer, restore_weights
from rl_core.training.config import Config
from rl_core.training.seeding import torch_generator


@dataclass(frozen=True, kw_only=True)
class DiffusionBCConfig(Config):
    """Diffusion behaviour cloning; the defaults are those of DAC's actor."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cpu": {"hidden": (128, 128), "batch_size": 128, "lr": 1e-3, "lr_decay_steps": 0},
        "demo": {"hidden": (128, 128), "batch_size": 128, "lr": 1e-3, "lr_decay_steps": 0},
    }

    batch_size: int = 256
    """Transitions in a batch."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the noise network's hidden layers."""
    diffusion_steps: int = 5
    """T, steps of the chain; 20 or more where several narrow modes matter."""
    lr: float = 3e-4
    """Adam's learning rate."""
    lr_decay_steps: int = 2_000_000
    """Updates over which the rate falls to 0 along a cosine; 0 keeps it constant."""
    max_grad_norm: float = 1.0
    """Global norm that gradients are clipped to; 0 = no clipping."""
    ema_rate: float = 0.005
    """Rate of the moving average that acts."""
    normalize_observations: bool = True
    """Standardise observations with the dataset's statistics, which are kept in the bundle."""

    def __post_init__(self) -> None:
        self.require_least(batch_size=1, hidden=1, diffusion_steps=1, lr_decay_steps=0, max_grad_norm=0)
        self.require_above_zero("lr", "ema_rate")


class DiffusionBCPolicy(StatelessPolicy):
    """Draws one action a row; `normalizer` is None where observations are not scaled."""

    def __init__(self, config: DiffusionBCConfig, contract: RobotContract, actor: NoiseMLP, normalizer: Normalizer | None) -> None:
        self.config = config
        self.contract = contract
        self.actor = actor
        self.normalizer = normalizer
        self.device = next(actor.parameters()).device
        self.schedule = vp_schedule(config.diffusion_steps).to(self.device)

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        observation = flatten_observation(self.contract, obs)
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
        noise = state.normal(self.config.diffusion_steps, self.contract.action.size).to(self.device)
        action = ancestral_sample(self.actor.denoiser(observation.to(self.device)), self.schedule, noise.transpose(0, 1))
        return ActionChunk(values=action.clamp(-1.0, 1.0).unsqueeze(1), period_s=self.contract.action.period_s), state


class DiffusionBCLearner:
    """Implements `Learner`.

    Args:
        config: hyperparameters.
        contract: observation channels and action of the policy.
        device: torch device.
        seed: seed of the initial weights and of all noise.
        data: what is trained on; gives the observation statistics where the configuration asks for them.
    """

    def __init__(
        self, config: DiffusionBCConfig, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        if config.normalize_observations and data is None:
            raise DatasetError("DiffusionBCConfig.normalize_observations needs a dataset, found none; use False")
        self.config = config
        self.contract = contract
        self.device = torch.device(device)
        self.normalizer: Normalizer | None = None
        if config.normalize_observations and data is not None:
            self.normalizer = Normalizer.fit(data, contract)
        self.generator = torch_generator(seed, "diffusion_bc", "noise", device=device)
        self.actor = make_net(config, contract, generator=torch_generator(seed, "diffusion_bc", "weights")).to(device)
        self.average = copy.deepcopy(self.actor).requires_grad_(False)
        self.optimizer = ClippedAdam(
            self.actor.parameters(), lr=config.lr, decay_steps=config.lr_decay_steps, max_norm=config.max_grad_norm
        )
        self.schedule = vp_schedule(config.diffusion_steps).to(device)

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One step of noise regression; keys `observation` (B, S), `action` (B, A)."""
        observation, action = batch["observation"].to(self.device), batch["action"].to(self.device).clamp(-1.0, 1.0)
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
        t = torch.randint(1, self.config.diffusion_steps + 1, (len(action),), generator=self.generator, device=self.device)
        noise = torch.randn(action.shape, generator=self.generator, device=self.device)
        predicted = self.actor(q_sample(self.schedule, action, t, noise), t, observation)
        loss = (predicted - noise).square().mean()
        norm = self.optimizer.minimize(loss)
        ema_update(self.average, self.actor, self.config.ema_rate)
        return {"loss/bc": loss.detach(), "grad/actor": norm}

    def policy(self) -> DiffusionBCPolicy:
        """The policy of the averaged weights, shared."""
        return DiffusionBCPolicy(self.config, self.contract, self.average, self.normalizer)

    def init_from(self, bundle: Bundle) -> None:
        """Starts from a trained policy's weights and statistics; the optimiser starts anew."""
        policy = policy_from_bundle(bundle)
        self.contract.accepts(policy.contract, needed_by="this run", offered_by="the bundle of init_from")
        for net in (self.actor, self.average):
            net.load_state_dict(policy.actor.state_dict())
        self.normalizer = policy.normalizer

    def bundle(self) -> Bundle:
        """Averaged network and observation statistics."""
        return Bundle(
            kind="policy",
            method="diffusion_bc",
            config=self.config.to_dict(),
            contract=self.contract,
            normalizer=self.normalizer.to_dict() if self.normalizer is not None else None,
            weights=self.average.state_dict(),
        )

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimiser, statistics and generator."""
        return {
            "actor": self.actor.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "normalizer": self.normalizer.to_dict() if self.normalizer is not None else None,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.actor.load_state_dict(state["actor"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.normalizer = Normalizer.from_dict(state["normalizer"]) if state["normalizer"] is not None else None
        self.generator.set_state(state["generator"])


def make_net(config: DiffusionBCConfig, contract: RobotContract, *, generator: torch.Generator | None = None) -> NoiseMLP:
    """The noise network."""
    sizes = (contract.observation_size, contract.action.size)
    return NoiseMLP(*sizes, config.hidden, steps=config.diffusion_steps, generator=generator)


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> DiffusionBCPolicy:
    """The policy of a bundle that `DiffusionBCLearner.bundle` wrote.

    Raises:
        BundleError: no contract, or weights that do not fit the configuration.
    """
    contract, config = restore_contract(bundle), DiffusionBCConfig.from_dict(bundle.config)
    actor = restore_weights(make_net(config, contract), bundle, device)
    return DiffusionBCPolicy(config, contract, actor, restore_normalizer(bundle, needed=config.normalize_observations))
