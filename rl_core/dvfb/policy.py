"""DVFB at run time: the mean action under one z, which is given, inferred from a goal, or part of the bundle."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.conditioned_policy import ConditionError
from rl_core.contract import Channel, RobotContract
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.inference import SkillInference, goal_columns, inference_from_bundle
from rl_core.dvfb.networks import Actor
from rl_core.dvfb.skills import on_sphere
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation, seeded_state
from rl_core.restore import restore_contract, restore_weights

SKILL = "skill"
"""Condition of a policy that is told z; array of a bundle that has one."""
GOAL = "goal_"
"""A policy with the condition `goal_X` is told where the observation channel X is to be."""


def skill_contract(contract: RobotContract, size: int) -> RobotContract:
    """What a policy needs that is told z."""
    channel = Channel(name=SKILL, kind="latent", names=tuple(f"z{i}" for i in range(size)), unit="1")
    return dataclasses.replace(contract, condition=(channel,))


def with_skill(bundle: Bundle, skill: Tensor) -> Bundle:
    """The bundle of one task: z is part of it, and nothing needs to be told."""
    contract = dataclasses.replace(restore_contract(bundle), condition=())
    return dataclasses.replace(bundle, contract=contract, arrays={**bundle.arrays, SKILL: skill})


def with_goal(bundle: Bundle, channel: str) -> Bundle:
    """The bundle that is told a goal of `channel` at run time, in the channel's unit and frame, and infers z from the states it carries.

    Raises:
        InferenceError: no such channel; lists those there are.
        BundleError: it carries no states.
    """
    contract = inference_from_bundle(bundle).contract
    goal_columns(contract, channel)
    goal = dataclasses.replace(contract.channel(channel), name=GOAL + channel, history=1)
    return dataclasses.replace(bundle, contract=dataclasses.replace(contract, condition=(goal,)))


class DVFBPolicy(StatelessPolicy):
    """pi(s, z) without noise.

    Args:
        contract: no condition, or one channel: `skill`, or `goal_X`.
        actor: its weights are shared.
        skill: z (d,) of a policy without condition.
        inference: of a policy that is told a goal.
    """

    def __init__(
        self, contract: RobotContract, actor: Actor, *, skill: Tensor | None = None, inference: SkillInference | None = None
    ) -> None:
        self.contract, self.actor = contract, actor
        self._skill, self._inference = skill, inference
        self.device = next(actor.parameters()).device

    @property
    def example_condition(self) -> Mapping[str, Tensor]:
        """A goal that a carried state is at; empty for a policy that is told none. Whoever has none yet can try the policy with it."""
        if self._inference is None:
            return {}
        (channel,) = self.contract.condition
        columns = goal_columns(self._inference.contract, channel.name.removeprefix(GOAL))
        return {channel.name: self._inference.states.next_observation[0, columns]}

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """`skill` (d,), on the sphere.

        Raises:
            ConditionError: what is needed is missing, or no such channel's value.
            InferenceError: a goal that no carried state is near.
        """
        if self._skill is not None:
            return TensorDict({SKILL: self._skill}, batch_size=[])
        (channel,) = self.contract.condition
        if channel.name not in condition:
            raise ConditionError(f"{channel.name}: missing, found {sorted(condition)}; valid: {channel.size} numbers in {channel.unit}")
        value = torch.as_tensor(condition[channel.name], dtype=torch.float32)
        if value.shape != channel.shape or not torch.isfinite(value).all() or channel.name == SKILL and not value.any():
            raise ConditionError(f"{channel.name}: {value.tolist()}, valid: {channel.size} finite numbers for {channel.names}, not all 0")
        if self._inference is not None:
            return TensorDict({SKILL: self._inference.from_goal(channel.name.removeprefix(GOAL), value)}, batch_size=[])
        return TensorDict({SKILL: on_sphere(value)}, batch_size=[])

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; every row has the same z."""
        observation = flatten_observation(self.contract, obs).to(self.device)
        skill = condition[SKILL].to(self.device).expand(len(observation), -1)
        values = self.actor(observation, skill).unsqueeze(1)
        return ActionChunk(values=values, period_s=self.contract.action.period_s), state


class ExploringPolicy(StatelessPolicy):
    """Collects: Gaussian noise on the action, cut at the box, and a new z at the start and every `skill_steps` steps.

    State tensors a row: `skill` (d,) and `age` (1,), the steps it has been followed.

    Args:
        contract: of the world.
        actor: its weights are shared.
        std: deviation of the noise.
        skill_steps: steps with one z.
        skill: follow this z (d,) throughout.
    """

    def __init__(self, contract: RobotContract, actor: Actor, *, std: float, skill_steps: int = 1, skill: Tensor | None = None) -> None:
        self.contract = dataclasses.replace(contract, condition=())
        self.actor, self.std, self.skill_steps, self.skill = actor, std, skill_steps, skill
        self.device = next(actor.parameters()).device

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset`."""
        tensors = {SKILL: torch.zeros(len(seeds), self.actor.skill_size), "age": torch.zeros(len(seeds), 1)}
        return dataclasses.replace(seeded_state(seeds), tensors=tensors)

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset_rows`."""
        age = state.tensors["age"].clone()
        age[list(rows)] = 0.0
        return dataclasses.replace(super().reset_rows(state, rows, seeds), tensors={**state.tensors, "age": age})

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        observation = flatten_observation(self.contract, obs)
        draw = state.normal(self.actor.skill_size + self.contract.action.size)
        fresh, noise = draw.split([self.actor.skill_size, self.contract.action.size], dim=-1)
        age = state.tensors["age"]
        skill = torch.where(age % self.skill_steps == 0, on_sphere(fresh), state.tensors[SKILL])
        if self.skill is not None:
            skill = self.skill.expand(len(observation), -1)
        mean = self.actor(observation.to(self.device), skill.to(self.device))
        values = (mean + self.std * noise.to(self.device)).clamp(-1.0, 1.0).unsqueeze(1)
        tensors = {SKILL: skill, "age": age + 1.0}
        chunk = ActionChunk(values=values, period_s=self.contract.action.period_s)
        return chunk, PolicyState(generators=state.generators, tensors=tensors)


def restore_actor(bundle: Bundle, device: str = "cpu") -> Actor:
    """The actor of a bundle.

    Raises:
        BundleError: another method's, or weights that do not fit.
    """
    if bundle.method != "dvfb":
        raise BundleError(f"bundle of method {bundle.method!r}, valid: dvfb")
    contract, config = restore_contract(bundle), DVFBConfig.from_dict(bundle.config)
    return restore_weights(Actor(config, contract.observation_size, contract.action.size), bundle, device, prefix="actor.")


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> DVFBPolicy:
    """The policy of a bundle that the pre-training, `with_skill`, `with_goal` or the fine-tuning made.

    Raises:
        BundleError: another method's, a condition that it cannot have, a skill or states that are missing, weights that do not fit.
    """
    actor, contract = restore_actor(bundle, device), restore_contract(bundle)
    needs = [channel.name for channel in contract.condition]
    if not needs:
        skill = bundle.arrays.get(SKILL)
        if skill is None or skill.shape != (actor.skill_size,) or not torch.isfinite(skill).all():
            found = "none" if skill is None else f"of shape {tuple(skill.shape)}"
            raise BundleError(f"bundle of method 'dvfb' without a condition: array {SKILL!r} {found}, valid: ({actor.skill_size},)")
        return DVFBPolicy(contract, actor, skill=skill)
    if needs == [SKILL] and contract.condition[0].size == actor.skill_size:
        return DVFBPolicy(contract, actor)
    if len(needs) == 1 and needs[0].startswith(GOAL):
        return DVFBPolicy(contract, actor, inference=inference_from_bundle(bundle, device))
    raise BundleError(f"bundle of method 'dvfb': condition {needs}, valid: none, {SKILL} of {actor.skill_size} numbers, or {GOAL}CHANNEL")
