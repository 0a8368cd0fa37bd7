"""Dual-value fine-tuning of a zero-shot policy on one task: a fresh critic beside the frozen skill value. `armstack finetune` calls it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from rl_core.bundle import Bundle, BundleError, bundle_sha256
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.finetune_config import FineTuneConfig
from rl_core.dvfb.goals import reached_goal
from rl_core.dvfb.inference import backward_net
from rl_core.dvfb.losses import actor_loss, implicit_reward, skill_value, td_loss, td_target
from rl_core.dvfb.networks import Critic, ForwardNet, orthogonal
from rl_core.dvfb.optimizer import PlainAdam
from rl_core.dvfb.policy import SKILL, DVFBPolicy, ExploringPolicy, policy_from_bundle
from rl_core.dvfb.reward_mapping import RewardMapping
from rl_core.dvfb.skills import noisy_action
from rl_core.models import ema_update
from rl_core.restore import restore_contract, restore_weights
from rl_core.training.config import TrainerConfig
from rl_core.training.evaluation import EnvEvaluator, evaluation_seeds
from rl_core.training.seeding import derive_seed, torch_generator
from rl_core.training.sources import OnlineSource, transition_columns
from rl_core.training.trainer import Trainer, TrainingResult
from rl_core.training.worlds import contract_of, make_world


class FineTuneLearner:
    """Implements `Learner`. Actor, F and B come from a solved bundle, which also fixes z; F and B stay frozen, and the intrinsic reward's
    networks are not there at all. Critic and optimisers are new.

    Args:
        config: hyperparameters.
        solved: bundle of `rl_core.dvfb.solving.solve`.
        device: torch device.
        seed: seed of the critic's weights and of all noise.

    Raises:
        BundleError: a bundle without a skill.
    """

    def __init__(self, config: FineTuneConfig, solved: Bundle, *, device: str = "cpu", seed: int = 0) -> None:
        contract = restore_contract(solved)
        if contract.condition or SKILL not in solved.arrays:
            raise BundleError("fine-tuning starts from the bundle of one task, with its skill; `armstack solve` writes it")
        self.config, self.solved, self.contract = config, solved, contract
        self.device = torch.device(device)
        self.pretrained = DVFBConfig.from_dict(solved.config)
        self.generator = torch_generator(seed, "dvfb", "finetuning", device=device)
        sizes = (contract.observation_size, contract.action.size)
        self.skill = solved.arrays[SKILL].to(device)
        self.actor = policy_from_bundle(solved, device).actor.requires_grad_(True)
        self.f = restore_weights(ForwardNet(self.pretrained, *sizes), solved, device, prefix="f.")
        self.b = restore_weights(backward_net(self.pretrained, self.contract), solved, device, prefix="b.")
        self.critic = Critic(self.pretrained, *sizes)
        orthogonal(self.critic, torch_generator(seed, "dvfb", "task critic")).to(device)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.mapping = RewardMapping().to(device)
        self.optimizers = {name: PlainAdam(module.parameters(), lr=config.lr) for name, module in self._trained().items()}
        self.batches = 0

    def update(self, batch: TensorDict) -> Mapping[str, float | Tensor]:
        """One step of critic and actor; none while the first `still_steps` are collected."""
        self.batches += 1
        if self.batches * self.config.steps_per_update <= self.config.still_steps:
            return {}
        observation, action, next_observation = (batch[name].to(self.device) for name in ("observation", "action", "next_observation"))
        skill = self.skill.expand(len(observation), -1)
        told = self.config.reward_scale * batch["reward"].to(self.device)
        reward, metrics = self._reward(told, observation, next_observation, skill)

        # Task critic: clipped double TD on the mapped reward.
        with torch.no_grad():
            next_action = self._noisy(self.actor(next_observation, skill))
            discount = self.config.gamma * (1.0 - batch["terminal"].to(self.device))
            target = td_target(reward, discount, self.critic_target(next_observation, skill, next_action))
        loss = td_loss(self.critic(observation, skill, action), target)
        self.optimizers["critic"].minimize(loss)

        # Actor: the task's value beside the frozen skill value.
        chosen = self._noisy(self.actor(observation, skill))
        task = self.critic(observation, skill, chosen)
        known = skill_value(self.f(observation, skill, chosen), skill) if self.config.skill_value else None
        objective = actor_loss(known, task, self.config.task_weight)
        self.optimizers["actor"].minimize(objective)

        ema_update(self.critic_target, self.critic, self.config.tau)
        metrics |= {"loss/critic": loss.detach(), "loss/actor": objective.detach(), "q/task_mean": task.detach().amin(0).mean()}
        return metrics if known is None else metrics | {"q/skill_mean": known.detach().amin(0).mean()}

    def _reward(self, reward: Tensor, observation: Tensor, next_observation: Tensor, skill: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        if not self.config.reward_mapping:
            return reward, {}
        with torch.no_grad():
            implicit = implicit_reward(self.b(reached_goal(self.pretrained.goal, observation, next_observation)), skill)
        return self.mapping(reward, implicit), {"reward/mapping_ratio": self.mapping.ratio}

    def _noisy(self, mean: Tensor) -> Tensor:
        noise = self.config.action_std * torch.randn(mean.shape, generator=self.generator, device=self.device)
        return noisy_action(mean, noise.clamp(-self.config.action_clip, self.config.action_clip))

    def policy(self) -> DVFBPolicy:
        """The policy of the current weights, shared."""
        return DVFBPolicy(self.contract, self.actor, skill=self.skill.cpu())

    def explore(self) -> ExploringPolicy:
        """The policy that collects: the task's z, noise on the action."""
        return ExploringPolicy(self.contract, self.actor, std=self.config.action_std, skill=self.skill.cpu())

    def bundle(self) -> Bundle:
        """The solved bundle with the new actor."""
        actor = {f"actor.{name}": value for name, value in self.actor.state_dict().items()}
        return replace(self.solved, weights={**self.solved.weights, **actor})

    def _trained(self) -> dict[str, nn.Module]:
        return {"actor": self.actor, "critic": self.critic}

    def state_dict(self) -> dict[str, Any]:
        """Actor, critic with its target, running means, optimisers, generator, and batches seen; F and B are the bundle's."""
        modules = {**self._trained(), "critic_target": self.critic_target, "mapping": self.mapping}
        return {
            **{name: module.state_dict() for name, module in modules.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "generator": self.generator.get_state(),
            "batches": self.batches,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        for name, module in {**self._trained(), "critic_target": self.critic_target, "mapping": self.mapping}.items():
            module.load_state_dict(state[name])
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.generator.set_state(state["generator"])
        self.batches = int(state["batches"])


def finetune(
    solved: str | Path,
    world: str,
    run_dir: str | Path,
    *,
    preset: str = "default",
    overrides: Mapping[str, Any] | None = None,
    trainer: Mapping[str, Any] | None = None,
    world_kwargs: Mapping[str, Any] | None = None,
    eval_episodes: int = 20,
    resume: bool = False,
) -> TrainingResult:
    """Fine-tunes a solved bundle on the rewards of a world and writes `run_dir/bundle`.

    Args:
        solved: bundle of `rl_core.dvfb.solving.solve`.
        world: id of the task's world, see `make_world`; its rewards are the task's.
        run_dir: see `rl_core.training.trainer`.
        preset: named configuration of `FineTuneConfig`.
        overrides: fields of it to change.
        trainer: fields of `TrainerConfig`; `updates` defaults to the preset's.
        world_kwargs: arguments of the world, e.g. `reward`.
        eval_episodes: episodes of an evaluation.
        resume: go on from the newest checkpoint of `run_dir`.

    Raises:
        ArmstackError: no bundle of one task, unknown preset, field or world, a world it does not fit; a run folder of another run.
    """
    settings = FineTuneConfig.preset(preset).override(**(overrides or {}))
    trainer_config = TrainerConfig.from_dict({"updates": FineTuneConfig.UPDATES[preset], **(trainer or {})})
    seed, parent = trainer_config.seed, bundle_sha256(solved)
    learner: Any = FineTuneLearner(settings, Bundle.load(solved), device=trainer_config.device, seed=seed)
    make_env = partial(make_world, world, **(world_kwargs or {}))
    probe = make_env()
    learner.contract.accepts(contract_of(probe), needed_by="the policy", offered_by=world)
    probe.close()
    replay = ReplayBuffer(settings.replay_size, transition_columns(learner.contract))
    source = OnlineSource(
        make_env,
        learner.explore,
        learner.contract,
        UniformSampler(replay, batch_size=settings.batch_size, seed=derive_seed(seed, "sampler")),
        replay,
        Path(run_dir) / "replay",
        seed=seed,
        n_envs=settings.n_envs,
        steps_per_batch=settings.steps_per_update,
        random_steps=0,
    )
    description = {
        "method": "dvfb",
        "finetuning": settings.to_dict(),
        "solved": parent,
        "world": world,
        "world_kwargs": dict(world_kwargs or {}),
        "eval_episodes": eval_episodes,
    }
    evaluator = EnvEvaluator(make_env, evaluation_seeds(0, eval_episodes))
    run = Trainer(learner, source, trainer_config, run_dir, evaluator=evaluator, description=description, parents=(parent,))
    try:
        return run.run(resume=resume)
    finally:
        source.close()
