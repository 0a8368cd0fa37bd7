"""DAC's update (arXiv 2405.20555): critic with a lower-confidence-bound target, actor by shifted noise regression, dual step on eta."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.dac.config import DACConfig
from rl_core.dac.losses import (
    ACTION_BOUND,
    bc_loss,
    bellman_target,
    critic_loss,
    dual_step,
    guidance_loss,
    guidance_weight,
    next_state_value,
    q_gradient,
    q_scale,
)
from rl_core.dac.networks import Critic, make_actor, make_schedule
from rl_core.dac.policy import DACPolicy, torch_policy_from_bundle
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.normalizer import Mode, Normalizer
from rl_core.models import ClippedAdam, ema_update
from rl_core.models.diffusion import ancestral_sample, q_sample
from rl_core.training.seeding import torch_generator


class DACLearner:
    """Implements `Learner`.

    Args:
        config: hyperparameters.
        contract: observation channels and action of the policy.
        device: torch device.
        seed: seed of the initial weights and of all noise.
        data: the dataset trained on; gives the reward scale and the observation statistics, where the configuration asks for them.
    """

    def __init__(
        self, config: DACConfig, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        self.config = config
        self.contract = contract
        self.device = torch.device(device)
        self.generator = torch_generator(seed, "dac", "noise", device=device)
        sizes = (contract.observation_size, contract.action.size)
        weights = torch_generator(seed, "dac", "weights")
        self.actor = make_actor(config, *sizes, generator=weights).to(device)
        self.critic = Critic(config, *sizes, generator=weights).to(device)
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        decay, norm = config.lr_decay_steps, config.max_grad_norm
        self.actor_optimizer = ClippedAdam(self.actor.parameters(), lr=config.actor_lr, decay_steps=decay, max_norm=norm)
        self.critic_optimizer = ClippedAdam(self.critic.parameters(), lr=config.critic_lr, decay_steps=decay, max_norm=norm)
        self.schedule = make_schedule(config).to(device)
        self.eta = torch.tensor(config.eta, device=device)
        self.step = 0
        self.reward_scale = return_range_scale(data) if config.reward_scaling == "return_range" else 1.0
        self.normalizer = data_normalizer(data, contract, config) if config.normalize_observations or config.scale_actions else None

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One step of critic, actor and eta; keys `observation` (B, S), `action` (B, A), `reward`, `terminal` (B,), `next_observation`."""
        observation = self._scaled("observation", batch["observation"])
        action = self._scaled("action", batch["action"]).clamp(-ACTION_BOUND, ACTION_BOUND)
        metrics = self._update_critic(observation, action, batch)
        # The target critic moves every update, before the actor is led by it; the target actor every few, and only after a start.
        ema_update(self.critic_target, self.critic, self.config.critic_ema_rate)
        metrics |= self._update_actor(observation, action)
        self.step += 1
        if self.step > self.config.ema_start and self.step % self.config.actor_ema_every == 0:
            ema_update(self.actor_target, self.actor, self.config.actor_ema_rate)
        return metrics

    def _update_critic(self, observation: Tensor, action: Tensor, batch: TensorDict) -> dict[str, Tensor]:
        reward = batch["reward"].to(self.device) * self.reward_scale
        target = self.critic_targets(reward, batch["terminal"].to(self.device), self._scaled("observation", batch["next_observation"]))
        values = self.critic(observation, action)
        loss = critic_loss(values, target)
        norm = self.critic_optimizer.minimize(loss)
        return {"loss/critic": loss.detach(), "q/data_mean": values.detach().mean(), "grad/critic": norm}

    @torch.no_grad()
    def critic_targets(self, reward: Tensor, terminal: Tensor, next_observation: Tensor) -> Tensor:
        """y (B,) from N_q actions of the target actor at s', scored by the target critics, joined by the lower confidence bound."""
        config = self.config
        if config.gamma == 0.0:
            return reward
        noise = self._normal(config.diffusion_steps, len(reward), config.next_actions, self.contract.action.size)
        states = next_observation.unsqueeze(1)
        clip = 1.0 if config.clip_denoised else None
        actions = ancestral_sample(self.actor_target.denoiser(states), self.schedule, noise, clip=clip)
        values = self.critic_target(states, actions)
        value = next_state_value(values, rho=config.rho, target=config.target, next_value=config.next_value)
        return bellman_target(reward, terminal, value, gamma=config.gamma)

    def _update_actor(self, observation: Tensor, action: Tensor) -> dict[str, Tensor]:
        config = self.config
        t = torch.randint(1, config.diffusion_steps + 1, (len(action),), generator=self.generator, device=self.device)
        noise = self._normal(*action.shape)
        x = q_sample(self.schedule, action, t, noise)

        predicted = self.actor(x, t, observation)
        # Behaviour cloning: the plain noise regression, weighted by eta.
        loss = self.eta * bc_loss(predicted, noise)
        # Guidance: Q enters by its gradient at the noisy action (soft, hard), or by its value at the end of a full chain (denoised).
        loss = loss + self.guidance_term(observation, action, x, t, predicted)
        norm = self.actor_optimizer.minimize(loss)

        bc = bc_loss(predicted.detach(), noise)
        if config.eta_lr > 0:
            # Dual ascent on eta, with the error of the updated actor on the same noise.
            with torch.no_grad():
                bc = bc_loss(self.actor(x, t, observation), noise)
            limits = {"low": config.eta_min, "high": config.eta_max}
            self.eta = dual_step(self.eta, bc, threshold=config.bc_threshold, rate=config.eta_lr, **limits)
        return {"loss/actor": loss.detach(), "loss/bc": bc, "dual/eta": self.eta, "grad/actor": norm}

    def guidance_term(self, observation: Tensor, action: Tensor, x: Tensor, t: Tensor, predicted: Tensor) -> Tensor:
        """The part of the actor's loss that carries Q, (); only `predicted` (or the chain) carries a gradient."""
        config, q = self.config, self.critic_target
        if config.guidance == "none":
            return predicted.new_zeros(())
        if config.guidance == "denoised":
            chain_noise = self._normal(config.diffusion_steps, *action.shape)
            clip = 1.0 if config.clip_denoised else None
            values = q(observation, ancestral_sample(self.actor.denoiser(observation), self.schedule, chain_noise, clip=clip))
            return -values.mean() / (values.detach().abs().mean() + 1e-6)
        gradient = q_gradient(q, observation, x) / (q_scale(q, observation, action) + 1e-6)
        return guidance_loss(predicted, gradient, guidance_weight(self.schedule, t, guidance=config.guidance))

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)

    def _scaled(self, column: str, values: Tensor) -> Tensor:
        values = values.to(self.device)
        return self.normalizer.normalize(column, values) if self.normalizer is not None else values

    def policy(self) -> DACPolicy:
        """The policy of the current weights, shared."""
        return DACPolicy(self.config, self.contract, self.actor, self.critic_target, self.normalizer)

    def init_from(self, bundle: Bundle) -> None:
        """Starts from a trained policy's networks and statistics, targets included; optimisers and eta start anew."""
        policy = torch_policy_from_bundle(bundle)
        self.contract.accepts(policy.contract, needed_by="this run", offered_by="the bundle of init_from")
        for actor in (self.actor, self.actor_target):
            actor.load_state_dict(policy.actor.state_dict())
        for critic in (self.critic, self.critic_target):
            critic.load_state_dict(policy.critic.state_dict())
        self.normalizer = policy.normalizer

    def bundle(self) -> Bundle:
        """Online actor and target critics, what acting needs."""
        modules = {"actor": self.actor, "critic": self.critic_target}
        return Bundle(
            kind="policy",
            method="dac",
            config=self.config.to_dict(),
            contract=self.contract,
            normalizer=self.normalizer.to_dict() if self.normalizer is not None else None,
            weights={f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()},
        )

    def _parts(self) -> dict[str, Any]:
        names = ("actor", "critic", "actor_target", "critic_target", "actor_optimizer", "critic_optimizer")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Networks, targets, optimisers, eta, step, generator, and what was taken from the dataset."""
        return {
            **{name: part.state_dict() for name, part in self._parts().items()},
            "eta": self.eta.clone(),
            "step": self.step,
            "generator": self.generator.get_state(),
            "reward_scale": self.reward_scale,
            "normalizer": self.normalizer.to_dict() if self.normalizer is not None else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.eta = state["eta"].to(self.device, copy=True)
        self.step = int(state["step"])
        self.generator.set_state(state["generator"])
        self.reward_scale = float(state["reward_scale"])
        self.normalizer = Normalizer.from_dict(state["normalizer"]) if state["normalizer"] is not None else None


def return_range_scale(data: Dataset | None) -> float:
    """1000 / (largest - smallest episode return), the rescaling of rewards used on D4RL locomotion.

    Raises:
        DatasetError: no dataset, or all episodes have the same return; valid then is `reward_scaling="none"`.
    """
    returns = [episode.episode_return for episode in data.episodes] if data is not None else []
    spread = max(returns) - min(returns) if returns else 0.0
    if spread <= 0:
        found = f"{len(returns)} of {returns[0]}" if returns else "none"
        raise DatasetError(f"DACConfig.reward_scaling 'return_range' needs episodes of different returns, found {found}; use 'none'")
    return 1000.0 / spread


def data_normalizer(data: Dataset | None, contract: RobotContract, config: DACConfig) -> Normalizer:
    """Mean and deviation of the dataset's observations, range of its actions, where the configuration asks for them.

    Raises:
        DatasetError: no dataset.
    """
    if data is None:
        raise DatasetError("DACConfig.normalize_observations and scale_actions need a dataset, found none; set both to False")
    observation: Mode = "mean_std" if config.normalize_observations else "identity"
    action: Mode = "min_max" if config.scale_actions else "identity"
    return Normalizer.fit(data, contract, observation=observation, action=action)
