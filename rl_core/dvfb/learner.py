"""DVFB's reward-free update: novelty, contrastive encoder, exploration value, successor measure, actor, in this order."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import torch
from tensordict import TensorDict
from torch import Tensor, nn

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.data.replay import ReplayBuffer
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.contrastive import ContrastiveEncoder, contrastive_entropy, contrastive_loss
from rl_core.dvfb.goals import goal_inputs
from rl_core.dvfb.inference import SkillInference, backward_net
from rl_core.dvfb.losses import actor_loss, skill_value, td_loss, td_target
from rl_core.dvfb.networks import Actor, Critic, ForwardNet, orthogonal
from rl_core.dvfb.novelty import Novelty
from rl_core.dvfb.optimizer import PlainAdam
from rl_core.dvfb.policy import DVFBPolicy, ExploringPolicy, skill_contract
from rl_core.dvfb.skills import mixed_skills, noisy_action, on_sphere
from rl_core.dvfb.states import CarriedStates
from rl_core.dvfb.successor import Step, SuccessorNets, skill_features, successor_loss
from rl_core.models import ema_update
from rl_core.training.seeding import torch_generator
from rl_core.training.worlds import MakeEnv


class DVFBLearner:
    """Implements `Learner`; rewards in the batches are never read.

    Args:
        config: hyperparameters.
        contract: observation channels and action of the world.
        device: torch device.
        seed: seed of the initial weights and of all noise.
        data: not used, the method learns in a world.

    Attributes:
        contract: what the policy needs: the world's channels, and z.
        collected: contract of what is collected.
        replay: where the bundle's carried states are taken from; None leaves the bundle without.
    """

    def __init__(
        self, config: DVFBConfig, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        self.config = config
        self.contract, self.collected = skill_contract(contract, config.z_dim), dataclasses.replace(contract, condition=())
        self.device = torch.device(device)
        self.generator = torch_generator(seed, "dvfb", "noise", device=device)
        self.replay: ReplayBuffer | None = None
        sizes = (contract.observation_size, contract.action.size)
        weights = torch_generator(seed, "dvfb", "weights")
        self.actor = Actor(config, *sizes)
        self.nets = SuccessorNets(ForwardNet(config, *sizes), backward_net(config, contract), generator=weights)
        self.critic = Critic(config, *sizes)
        self.novelty = Novelty(config, sizes[0])
        self.contrastive = ContrastiveEncoder(config, sizes[0])
        for part in (self.actor, self.critic, self.novelty, self.contrastive):
            orthogonal(part, weights)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        for module in self._modules().values():
            module.to(device)
        self.optimizers = {
            name: PlainAdam(module.parameters(), lr=config.lr) for name, module in self._modules().items() if name != "critic_target"
        }

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One update on a batch with keys `observation` (B, S), `action` (B, A), `terminal` (B,), `next_observation`, and for the goal
        variant pair_compat `later_observation`."""
        step = self.step_of(batch)
        metrics = self._explore(step) if self.config.explores else {}
        loss, figures = successor_loss(self.config, self.nets, step)
        self.optimizers["nets"].minimize(loss)
        metrics |= figures | self._update_actor(step)
        self.nets.move_targets(self.config.tau)
        ema_update(self.critic_target, self.critic, self.config.tau)
        return metrics

    @torch.no_grad()
    def step_of(self, batch: TensorDict) -> Step:
        """The batch with fresh z, half of them B of its own rows, and the current policy's next actions for these z."""
        config = self.config
        observation, action, next_observation = (batch[name].to(self.device) for name in ("observation", "action", "next_observation"))
        later = batch["later_observation"].to(self.device) if "later_observation" in batch.keys() else None
        rows = len(observation)
        order = torch.randperm(rows, generator=self.generator, device=self.device)
        goals = goal_inputs(config.goal, observation, next_observation, later, order)
        prior = on_sphere(self._normal(rows, config.z_dim))
        shown = self.nets.b(goals.reached)
        shuffled = shown[order] if goals.shuffled is None else self.nets.b(goals.shuffled)
        features = skill_features(config, shuffled)
        uniform = torch.rand(rows, generator=self.generator, device=self.device)
        skill = mixed_skills(prior, features, config.mix_ratio, uniform=uniform)
        return Step(
            observation=observation,
            action=action,
            next_observation=next_observation,
            discount=config.gamma * (1.0 - batch["terminal"].to(self.device)),
            skill=skill,
            next_action=noisy_action(self.actor(next_observation, skill), self._action_noise(rows)),
            goals=goals,
            shown=shown,
        )

    def _explore(self, step: Step) -> dict[str, Tensor]:
        config = self.config
        # Novelty: the predictor learns the random network on every batch.
        seen, wanted = self.novelty.look(step.observation)
        novelty_loss = self.novelty.error(seen, wanted).mean()
        self.optimizers["novelty"].minimize(novelty_loss)
        reward = self.novelty.reward(seen, wanted)
        metrics = {"loss/novelty": novelty_loss.detach(), "reward/novelty": reward.mean()}
        # Contrastive entropy: transitions against the skills that they themselves are examples of, not the z acted with.
        if config.contrasts:
            query, key = self.contrastive(step.observation, step.next_observation, step.shown)
            contrast = contrastive_loss(query, key, temperature=config.temperature)
            self.optimizers["contrastive"].minimize(contrast)
            with torch.no_grad():
                query, key = self.contrastive(step.observation, step.next_observation, step.shown)
            entropy = contrastive_entropy(query, key, neighbours=config.neighbours, kind=config.neighbour_kind)
            reward = reward + config.contrastive_weight * entropy
            metrics |= {"loss/contrastive": contrast.detach(), "reward/contrastive_entropy": entropy.mean()}
        # Exploration value: TD on the intrinsic reward, which is computed anew for each batch and never stored.
        with torch.no_grad():
            target = td_target(reward, step.discount, self.critic_target(step.next_observation, step.skill, step.next_action))
        loss = td_loss(self.critic(step.observation, step.skill, step.action), target)
        self.optimizers["critic"].minimize(loss)
        return metrics | {"loss/critic": loss.detach(), "reward/intrinsic": reward.mean()}

    def _update_actor(self, step: Step) -> dict[str, Tensor]:
        observation, skill = step.observation, step.skill
        action = noisy_action(self.actor(observation, skill), self._action_noise(len(observation)))
        values = skill_value(self.nets.f(observation, skill, action), skill)
        explored = self.critic(observation, skill, action) if self.config.explores else None
        loss = actor_loss(values, explored, self.config.exploration_weight)
        self.optimizers["actor"].minimize(loss)
        metrics = {"loss/actor": loss.detach(), "q/skill_mean": values.detach().amin(0).mean()}
        return metrics if explored is None else metrics | {"q/exploration_mean": explored.detach().amin(0).mean()}

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)

    def _action_noise(self, rows: int) -> Tensor:
        config = self.config
        return (config.action_std * self._normal(rows, self.contract.action.size)).clamp(-config.action_clip, config.action_clip)

    def world(self, make_env: MakeEnv) -> gymnasium.Env:
        """The world that is collected in: as it is."""
        return make_env()

    def policy(self) -> DVFBPolicy:
        """The policy of the current weights, shared; its condition is z."""
        return DVFBPolicy(self.contract, self.actor)

    def explore(self) -> ExploringPolicy:
        """The policy that collects: a new z every `skill_steps`, noise on the action; it shares the weights."""
        return ExploringPolicy(self.collected, self.actor, std=self.config.action_std, skill_steps=self.config.skill_steps)

    def inference(self) -> SkillInference:
        """Inference of skills with states of the replay and the B of now."""
        if self.replay is None:
            raise ValueError("inference needs states: set `replay` first")
        states = CarriedStates.from_replay(self.replay, self.config.carried_states)
        return SkillInference(self.config, self.contract, self.nets.b, states)

    def bundle(self) -> Bundle:
        """Actor, F and B, and states of the replay without their rewards."""
        modules = {"actor": self.actor, "f": self.nets.f, "b": self.nets.b}
        states = CarriedStates.from_replay(self.replay, self.config.carried_states) if self.replay is not None else None
        return Bundle(
            kind="policy",
            method="dvfb",
            config=self.config.to_dict(),
            contract=self.contract,
            weights={f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()},
            arrays=states.arrays() if states is not None else {},
        )

    def _modules(self) -> dict[str, nn.Module]:
        names = ("actor", "nets", "critic", "critic_target", "novelty", "contrastive")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Networks with their targets and running figures, optimisers, generator."""
        return {
            **{name: module.state_dict() for name, module in self._modules().items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        for name, module in self._modules().items():
            module.load_state_dict(state[name])
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.generator.set_state(state["generator"])
