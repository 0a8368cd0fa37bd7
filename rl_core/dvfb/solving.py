"""Solving a task without training: what `armstack solve` calls. A pre-trained bundle in, a bundle for one task (or kind of goal) out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.inference import GOAL_RADIUS, InferenceError, RewardFunction, SkillInference, goal_rewards, inference_from_bundle
from rl_core.dvfb.policy import ExploringPolicy, restore_actor, with_goal, with_skill
from rl_core.dvfb.skill_discovery.config import SkillDiscoveryConfig
from rl_core.dvfb.skill_discovery.inference import DiscoveredSkills, discovered_from_bundle
from rl_core.dvfb.skills import on_sphere
from rl_core.dvfb.states import CarriedStates
from rl_core.restore import restore_contract
from rl_core.training.rollout import ChannelHistory, rollout
from rl_core.training.seeding import derive_seed, numpy_generator, torch_generator
from rl_core.training.sources import RandomPolicy
from rl_core.training.worlds import MakeEnv


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A solved task.

    Attributes:
        bundle: where it was written.
        skill: z (d,).
        states: how many states it was inferred from.
        seconds: what the inference took, loading excluded.
    """

    bundle: Path
    skill: Tensor
    states: int
    seconds: float


def solve(
    pretrained: str | Path,
    out: str | Path,
    *,
    reward: RewardFunction | None = None,
    goal: Mapping[str, Any] | None = None,
    device: str = "cpu",
) -> Solution:
    """Infers z of one task from the states that a pre-trained bundle carries, and writes a bundle that acts for it.

    Args:
        pretrained: bundle of `rl_core.dvfb.pretraining.pretrain`.
        out: folder of the new bundle.
        reward: the task's reward, e.g. one of a world's `rewards`.
        goal: or a goal, as `goal_skill` takes it.
        device: torch device.

    Raises:
        InferenceError: neither or both of reward and goal, a reward that is the same everywhere, a goal far from all states.
        BundleError: no bundle that carries states.
    """
    if (reward is None) == (goal is None):
        raise InferenceError("give either a reward or a goal")
    bundle = Bundle.load(pretrained)
    inference = load_inference(bundle, device)
    started = time.perf_counter()
    skill = inference.from_function(reward) if reward is not None else goal_skill(inference, goal or {})
    seconds = time.perf_counter() - started
    return Solution(bundle=_write(bundle, pretrained, out, skill), skill=skill, states=len(inference.states), seconds=seconds)


def solve_by_interaction(
    pretrained: str | Path, out: str | Path, make_env: MakeEnv, *, steps: int = 10_000, random_steps: int = 4_000, seed: int = 0
) -> Solution:
    """Infers z from rewards that a world gives, as the authors do, and writes a bundle that acts for it.

    `random_steps` uniform random actions, then the pre-trained policy with a new random z at every step [code].

    Args:
        pretrained: see `solve`.
        out: folder of the new bundle.
        make_env: makes the task's world.
        steps: rewarded steps in all.
        random_steps: of these, with random actions.
        seed: of resets and actions.
    """
    bundle = Bundle.load(pretrained)
    inference, contract = inference_from_bundle(bundle), replace(restore_contract(bundle), condition=())
    follow = ExploringPolicy(contract, restore_actor(bundle), std=0.0, skill_steps=1)
    rows: list[tuple[Any, Any, Any, float]] = []
    env, history, episode = make_env(), ChannelHistory(contract), 0
    try:
        while len(rows) < steps:
            policy = RandomPolicy(contract) if len(rows) < random_steps else follow
            end = min(random_steps, steps) if len(rows) < random_steps else steps
            fresh = True
            for step in rollout(policy, [env], [derive_seed(seed, "interaction", episode)]):
                if fresh:
                    history.start(step.before)
                before, fresh = history.flat(), False
                history.push(step.observation)
                rows.append((before, step.info.get("action_applied", step.action), history.flat(), step.reward))
                if len(rows) == end:
                    break
            episode += 1
    finally:
        env.close()
    observation, action, next_observation, rewards = (
        torch.from_numpy(np.asarray(column, np.float32)) for column in zip(*rows, strict=True)
    )
    states = CarriedStates(observation=observation, action=action, next_observation=next_observation)
    started = time.perf_counter()
    seen = SkillInference(inference.config, inference.contract, inference.b, states)
    skill = seen.from_rewards(rewards)
    seconds = time.perf_counter() - started
    return Solution(bundle=_write(bundle, pretrained, out, skill), skill=skill, states=len(states), seconds=seconds)


def solve_blindly(pretrained: str | Path, out: str | Path, *, seed: int) -> Solution:
    """Writes a bundle that follows a skill drawn at random: what any inference has to beat.

    Args:
        pretrained: see `solve`.
        out: folder of the new bundle.
        seed: of the draw.
    """
    bundle = Bundle.load(pretrained)
    skill = blind_skill(bundle, seed)
    return Solution(bundle=_write(bundle, pretrained, out, skill), skill=skill, states=0, seconds=0.0)


def blind_skill(bundle: Bundle, seed: int) -> Tensor:
    """A z (d,) from the prior that a bundle's policy was trained under."""
    if bundle.method == "skill_discovery":
        return torch.from_numpy(SkillDiscoveryConfig.from_dict(bundle.config).draw(numpy_generator(seed, "blind")))
    size = DVFBConfig.from_dict(bundle.config).z_dim
    return on_sphere(torch.randn(size, generator=torch_generator(seed, "blind")))


def make_goal_policy(pretrained: str | Path, out: str | Path, channel: str) -> Path:
    """Writes a bundle that is told at run time where `channel` is to be, as its condition `goal_CHANNEL`.

    Raises:
        InferenceError: no such channel; lists those there are.
        BundleError: no bundle that carries states.
    """
    bundle = with_goal(Bundle.load(pretrained), channel)
    return replace(bundle, parents=(bundle_sha256(pretrained),)).save(out)


def goal_skill(inference: SkillInference | DiscoveredSkills, goal: Mapping[str, Any]) -> Tensor:
    """z (d,) of a goal as a pose file tells it: `{"channel": "eef_pos", "position": [x, y, z], "radius": 0.02}`.

    The position is in the channel's unit and frame; the radius is 0.02 if left out.

    Raises:
        InferenceError: another form, an unknown channel, a position of another size, or one far from all states.
    """
    unknown, missing = set(goal) - {"channel", "position", "radius"}, {"channel", "position"} - set(goal)
    if unknown or missing:
        raise InferenceError(f"goal with {sorted(goal)}, valid: channel, position and perhaps radius")
    try:
        position, radius = torch.tensor(goal["position"], dtype=torch.float32), float(goal.get("radius", GOAL_RADIUS))
    except (TypeError, ValueError) as error:
        raise InferenceError(f"goal: {error}; valid: a list of numbers as position, a number as radius") from error
    if not position.isfinite().all():
        raise InferenceError(f"goal: position {position.tolist()}, valid: finite numbers")
    if not 0 < radius < float("inf"):
        raise InferenceError(f"goal: radius {radius}, valid: above 0")
    return inference.from_rewards(goal_rewards(inference.contract, inference.states, str(goal["channel"]), position, radius=radius))


def load_inference(bundle: Bundle, device: str = "cpu") -> SkillInference | DiscoveredSkills:
    """Inference of skills from the states that a pre-trained bundle of either method carries.

    Raises:
        BundleError: no bundle that carries states.
    """
    return (discovered_from_bundle if bundle.method == "skill_discovery" else inference_from_bundle)(bundle, device)


def _write(bundle: Bundle, pretrained: str | Path, out: str | Path, skill: Tensor) -> Path:
    return replace(with_skill(bundle, skill), parents=(bundle_sha256(pretrained),)).save(out)
