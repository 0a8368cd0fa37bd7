"""One level of the hierarchy: soft actor-critic whose actor also imitates the demonstrations at the end of each batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rl_core.models import ClippedAdam, ema_update
from rl_core.pear.bounds import expert_divergence
from rl_core.pear.config import Level, PEARConfig
from rl_core.pear.losses import (
    adversarial_loss,
    cloning_loss,
    critic_loss,
    critic_target,
    discriminator_loss,
    margin_loss,
    q_filter,
    sac_loss,
)
from rl_core.pear.networks import Discriminator, TwinCritic, make_actor
from rl_core.training.seeding import torch_generator


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A level's batch: scaled states and goals (B, I), actions (B, A), reward, terminal (B,); the last `expert` rows are demonstrated."""

    state: Tensor
    action: Tensor
    reward: Tensor
    terminal: Tensor
    next_state: Tensor
    expert: int


class LevelLearner:
    """Networks and the update of one level.

    Args:
        config: hyperparameters.
        level: which one; names its metrics.
        inputs: I, size of a state with its goal.
        action: A; for the higher level the size of a decision.
        device: torch device.
        seed: seed of weights and noise.
    """

    def __init__(self, config: PEARConfig, level: Level, inputs: int, action: int, *, device: str = "cpu", seed: int = 0) -> None:
        self.config, self.level = config, level
        self.switches = config.switches
        self.device = torch.device(device)
        self.generator = torch_generator(seed, "pear", level, "noise", device=device)
        weights = torch_generator(seed, "pear", level, "weights")
        self.actor = make_actor(config, inputs, action, generator=weights).to(device)
        self.critic = TwinCritic(config, inputs, action, generator=weights).to(device)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.discriminator = Discriminator(config, inputs, action, generator=weights).to(device)
        self.actor_optimizer = ClippedAdam(self.actor.parameters(), lr=config.actor_lr, max_norm=0.0)
        self.critic_optimizer = ClippedAdam(self.critic.parameters(), lr=config.critic_lr, max_norm=0.0)
        self.discriminator_optimizer = ClippedAdam(self.discriminator.parameters(), lr=config.discriminator_lr, max_norm=0.0)
        self.value_bounds = value_bounds(config, level)
        irl = self.switches.imitates and self.switches.reinforces and config.imitation == "irl"
        self.adversarial = irl or self.switches.discriminator_reward
        self.margin = (config.margin_low if level == "low" else config.margin_high) if self.switches.margin else 0.0

    def update(self, rows: Rows) -> dict[str, Tensor]:
        """One step of critics, discriminator and actor."""
        metrics: dict[str, Tensor] = {}
        if self.adversarial:
            metrics |= self._update_discriminator(rows)
        if self.switches.reinforces:
            metrics |= self._update_critic(rows)
        metrics |= self._update_actor(rows)
        return {f"{name}_{self.level}": value for name, value in metrics.items()}

    def update_targets(self) -> None:
        """target <- kept * target + (1 - kept) * online."""
        ema_update(self.critic_target, self.critic, 1.0 - self.config.polyak_kept)

    @torch.no_grad()
    def value(self, state: Tensor) -> Tensor:
        """min over both critics of Q(s, g, a) at the deterministic action, (B, I) -> (B,): what relabelling asks."""
        return self.critic(state, self.actor.mode(state)).amin(0)

    @torch.no_grad()
    def critic_targets(self, rows: Rows) -> Tensor:
        """y (B,), with the soft value min Q'(s', a') - alpha log pi(a' | s')."""
        action, log_prob = self.actor.sample(rows.next_state, self._normal(*rows.action.shape))
        value = self.critic_target(rows.next_state, action).amin(0) - self.config.entropy * log_prob
        reward = rows.reward
        if self.switches.discriminator_reward:
            reward = self.discriminator(rows.state, rows.action).clamp(-1.0, 1.0)
        return critic_target(reward, rows.terminal, value, gamma=self.config.gamma, bounds=self.value_bounds)

    def _update_critic(self, rows: Rows) -> dict[str, Tensor]:
        target = self.critic_targets(rows)
        values = self.critic(rows.state, rows.action)
        # Temporal difference, over replay rows and demonstrations alike: the reward of both is recomputed from achieved goals.
        loss = td = critic_loss(values, target)
        if self.margin:
            # Margin: values of what the policy would do in replayed states below those of what was demonstrated.
            replay = rows.state[: len(rows.state) - rows.expert]
            with torch.no_grad():
                own = self.actor.mode(replay)
            loss = loss + self.margin * margin_loss(self.critic(replay, own), values[:, len(replay) :])
        self.critic_optimizer.minimize(loss)
        return {"loss/critic": td.detach(), "q/data_mean": values.detach().mean()}

    def _update_discriminator(self, rows: Rows) -> dict[str, Tensor]:
        start = len(rows.state) - rows.expert
        state, action = rows.state[start:], rows.action[start:]
        if self.switches.discriminator_reward:
            # As a reward it has to know the places the policy comes to: the replay is the other side.
            policy = self.discriminator(rows.state[:start], rows.action[:start])
        else:
            # As a regulariser it has to tell actions apart and not places: both sides in the demonstrations' states.
            with torch.no_grad():
                own, _ = self.actor.sample(state, self._normal(*action.shape))
            policy = self.discriminator(state, own)
        loss = discriminator_loss(self.discriminator(state, action), policy)
        self.discriminator_optimizer.minimize(loss)
        return {"loss/discriminator": loss.detach()}

    def _update_actor(self, rows: Rows) -> dict[str, Tensor]:
        config = self.config
        loss = torch.zeros((), device=self.device)
        metrics: dict[str, Tensor] = {}
        if self.switches.reinforces:
            # lambda_1 times SAC's loss, over all rows.
            action, log_prob = self.actor.sample(rows.state, self._normal(*rows.action.shape))
            value = self.critic(rows.state, action).amin(0)
            loss = loss + config.rl_weight * sac_loss(value, log_prob, action, entropy=config.entropy, action_l2=config.action_l2)
            metrics |= {"q/policy_mean": value.detach().mean(), "policy/entropy": -log_prob.detach().mean()}
        if self.switches.imitates:
            # lambda_2 times the imitation loss, over the demonstrations' rows.
            imitation, figures = self._imitation(rows)
            loss = loss + config.il_weight * imitation
            metrics |= figures
        self.actor_optimizer.minimize(loss)
        return {"loss/actor": loss.detach(), **metrics}

    def _imitation(self, rows: Rows) -> tuple[Tensor, dict[str, Tensor]]:
        start = len(rows.state) - rows.expert
        state, expert = rows.state[start:], rows.action[start:]
        mean, log_std = self.actor(state)
        own = torch.tanh(mean)
        figures = expert_divergence(mean.detach(), log_std.detach(), expert)
        if self.adversarial:
            loss = adversarial_loss(self.discriminator(state, own))
            return loss, {"loss/irl": loss.detach(), **figures}
        kept = torch.ones(len(state), device=self.device)
        if self.switches.reinforces and self.config.q_filter:
            with torch.no_grad():
                kept = q_filter(self.critic(state, expert)[0], self.critic(state, own)[0])
        loss = cloning_loss(own, expert, kept)
        return loss, {"loss/bc": loss.detach() / len(state), "demos/kept": kept.mean(), **figures}

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)

    def _parts(self) -> dict[str, Any]:
        names = ("actor", "critic", "critic_target", "discriminator")
        return {name: getattr(self, name) for name in (*names, *(f"{name}_optimizer" for name in names if name != "critic_target"))}

    def state_dict(self) -> dict[str, Any]:
        """Networks, targets, optimisers and the noise's generator."""
        return {"generator": self.generator.get_state(), **{name: part.state_dict() for name, part in self._parts().items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.generator.set_state(state["generator"])
        for name, part in self._parts().items():
            part.load_state_dict(state[name])


def value_bounds(config: PEARConfig, level: Level) -> tuple[float, float]:
    """Lowest and highest value there can be: least and greatest reward, for ever."""
    switches, horizon = config.switches, 1.0 / (1.0 - config.gamma)
    if switches.discriminator_reward:
        return -horizon, horizon
    penalty = config.miss_penalty if switches.miss_penalty and level == "high" else 0.0
    return -(1.0 + penalty) * horizon, 0.0
