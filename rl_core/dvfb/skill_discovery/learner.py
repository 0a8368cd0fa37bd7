"""The update that DIAYN, CIC and APS share: representation, critic on its reward, actor."""

from __future__ import annotations

import copy
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
from rl_core.dvfb.losses import actor_loss, td_loss, td_target
from rl_core.dvfb.networks import Actor, Critic, orthogonal
from rl_core.dvfb.optimizer import PlainAdam
from rl_core.dvfb.policy import DVFBPolicy, skill_contract
from rl_core.dvfb.skill_discovery.config import SkillDiscoveryConfig
from rl_core.dvfb.skill_discovery.inference import DiscoveredSkills
from rl_core.dvfb.skill_discovery.objectives import make_objective
from rl_core.dvfb.skill_discovery.world import SkillWorld, with_told_skill
from rl_core.dvfb.skills import noisy_action
from rl_core.dvfb.states import CarriedStates
from rl_core.models import ema_update
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
from rl_core.training.seeding import torch_generator
from rl_core.training.worlds import MakeEnv


class SkillFollower(StatelessPolicy):
    """Collects: follows the skill that the world tells, with noise on the action; it shares the weights."""

    def __init__(self, contract: RobotContract, actor: Actor, std: float) -> None:
        self.contract, self.actor, self.std = contract, actor, std

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        seen = flatten_observation(self.contract, obs).to(next(self.actor.parameters()).device)
        size = self.actor.skill_size
        mean = self.actor(seen[:, :-size], seen[:, -size:])
        values = (mean + self.std * state.normal(mean.shape[1]).to(mean.device)).clamp(-1.0, 1.0).unsqueeze(1)
        return ActionChunk(values=values, period_s=self.contract.action.period_s), state


class SkillDiscoveryLearner:
    """Implements `Learner`; arguments as `rl_core.dvfb.learner.DVFBLearner`.

    Attributes:
        contract: what the policy needs: the world's channels, and z.
        collected: contract of what is collected, the skill among the observations.
        replay: where the bundle's carried states are taken from.
    """

    def __init__(
        self, config: SkillDiscoveryConfig, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self.contract, self.collected = skill_contract(contract, config.z_dim), with_told_skill(contract, config.z_dim)
        self.generator = torch_generator(seed, config.algorithm, "noise", device=device)
        self.replay: ReplayBuffer | None = None
        sizes = (contract.observation_size, contract.action.size)
        weights = torch_generator(seed, config.algorithm, "weights")
        self.actor, self.critic, self.objective = Actor(config, *sizes), Critic(config, *sizes), make_objective(config, sizes[0])
        for part in (self.actor, self.critic, self.objective):
            orthogonal(part, weights).to(device)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.optimizers = {name: PlainAdam(getattr(self, name).parameters(), lr=config.lr) for name in ("actor", "critic", "objective")}

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One step of representation, critic and actor; the skill followed is the last of each `observation`."""
        config, size = self.config, self.contract.observation_size
        seen, action = batch["observation"].to(self.device), batch["action"].to(self.device)
        observation, skill = seen[:, :size], seen[:, size:]
        next_observation = batch["next_observation"].to(self.device)[:, :size]

        # Representation, and the intrinsic reward under it.
        objective = self.objective.loss(observation, next_observation, skill)
        self.optimizers["objective"].minimize(objective)
        reward = self.objective.reward(observation, next_observation, skill)
        # Critic: clipped double TD, the skill goes on.
        with torch.no_grad():
            next_action = self._noisy(self.actor(next_observation, skill))
            discount = config.gamma * (1.0 - batch["terminal"].to(self.device))
            target = td_target(reward, discount, self.critic_target(next_observation, skill, next_action))
        critic = td_loss(self.critic(observation, skill, action), target)
        self.optimizers["critic"].minimize(critic)
        # Actor.
        values = self.critic(observation, skill, self._noisy(self.actor(observation, skill)))
        actor = actor_loss(None, values, 1.0)
        self.optimizers["actor"].minimize(actor)
        ema_update(self.critic_target, self.critic, config.tau)
        losses = {"loss/representation": objective, "loss/critic": critic, "loss/actor": actor}
        return {name: loss.detach() for name, loss in losses.items()} | {"reward/intrinsic": reward.mean()}

    def _noisy(self, mean: Tensor) -> Tensor:
        noise = self.config.action_std * torch.randn(mean.shape, generator=self.generator, device=self.device)
        return noisy_action(mean, noise.clamp(-self.config.action_clip, self.config.action_clip))

    def world(self, make_env: MakeEnv) -> gymnasium.Env:
        """The world that is collected in: it tells the skill to follow."""
        return SkillWorld(make_env(), self.config.z_dim, self.config.draw, self.config.skill_steps)

    def policy(self) -> DVFBPolicy:
        """The policy of the current weights, shared; its condition is z."""
        return DVFBPolicy(self.contract, self.actor)

    def explore(self) -> SkillFollower:
        """The policy that collects."""
        return SkillFollower(self.collected, self.actor, self.config.action_std)

    def inference(self) -> DiscoveredSkills:
        """Inference of skills with states of the replay and the representation of now."""
        if self.replay is None:
            raise ValueError("inference needs states: set `replay` first")
        return DiscoveredSkills(self.config, self.contract, self.objective, self._states(self.replay))

    def _states(self, replay: ReplayBuffer) -> CarriedStates:
        return CarriedStates.from_replay(replay, self.config.carried_states, size=self.contract.observation_size)

    def bundle(self) -> Bundle:
        """Actor and representation, and states of the replay without their rewards."""
        modules: dict[str, nn.Module] = {"actor": self.actor, "objective": self.objective}
        return Bundle(
            kind="policy",
            method="skill_discovery",
            config=self.config.to_dict(),
            contract=self.contract,
            weights={f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()},
            arrays=self._states(self.replay).arrays() if self.replay is not None else {},
        )

    def _modules(self) -> dict[str, nn.Module]:
        return {name: getattr(self, name) for name in ("actor", "critic", "critic_target", "objective")}

    def state_dict(self) -> dict[str, Any]:
        """Networks with their target and running figures, optimisers, generator."""
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
