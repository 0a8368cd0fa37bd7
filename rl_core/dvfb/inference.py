"""Zero-shot inference: the skill z of a task, from rewards of states that were seen without them.

FB: z is the mean of r B over the samples with the highest rewards. Successor features: z are the least-squares weights of the rewards
on the features, over all samples. Both are put on the sphere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import RobotContract
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.goals import goal_size, reached_goal
from rl_core.dvfb.networks import BackwardNet
from rl_core.dvfb.skills import on_sphere
from rl_core.dvfb.states import CarriedStates
from rl_core.errors import ArmstackError
from rl_core.restore import restore_contract, restore_weights

RewardFunction = Callable[[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]], NDArray[Any]]
"""reward(observation (n, S), action (n, A), next_observation (n, S)) -> (n,), on flat observations."""
PERCENTILE = 0.99
LEAST = 32
GOAL_RADIUS = 0.02
"""Metres around a goal position within which a state counts as at the goal."""


class InferenceError(ArmstackError):
    """Rewards or a goal from which no skill follows; says what was found."""


def rewarded(rewards: Tensor, *, percentile: float = PERCENTILE, least: int = LEAST) -> Tensor:
    """Indices of the samples with rewards (N,) at or above the percentile, but at least the `least` highest of them.

    All, where the percentile is the minimum [code]. A reward that few states give would otherwise leave too few to average over.
    """
    kept = torch.nonzero(rewards >= torch.quantile(rewards, percentile)).squeeze(-1)
    if len(kept) >= min(least, len(rewards)):
        return kept
    return rewards.sort(descending=True, stable=True).indices[:least]


def weighted_skill(features: Tensor, rewards: Tensor, *, percentile: float = PERCENTILE, least: int = LEAST) -> Tensor:
    """z = sqrt(d) normalised mean of r B over `rewarded` samples: (N, d), (N,) -> (d,).

    Where a reward is negative, the smallest of all is subtracted first: a constant changes no task, but the best of negative rewards would
    weigh the best states negatively.

    Raises:
        InferenceError: rewards that are not finite, or are the same nothing everywhere.
    """
    _require_finite(rewards)
    weights = rewards - rewards.min().clamp(max=0.0)
    if not bool((weights > 0).any()):
        raise InferenceError(f"the reward is {float(rewards[0]):g} at all {len(rewards)} states, valid: one that is above that at some")
    kept = rewarded(weights, percentile=percentile, least=least)
    scaled = weights[kept] / weights[kept].max()  # so that very small rewards do not vanish; z does not depend on their scale
    return on_sphere((scaled.unsqueeze(-1) * features[kept]).mean(0))


def regressed_skill(features: Tensor, rewards: Tensor) -> Tensor:
    """z = sqrt(d) normalised least-squares weights of the rewards on the features: (N, d), (N,) -> (d,).

    Raises:
        InferenceError: rewards that are not finite, or 0 everywhere.
    """
    _require_finite(rewards)
    if not bool(rewards.any()):
        raise InferenceError(f"the reward is 0 at all {len(rewards)} states, valid: one that is not at some")
    solution = torch.linalg.lstsq(features, (rewards / rewards.abs().max()).unsqueeze(-1)).solution
    return on_sphere(solution.squeeze(-1))


def labels(reward: RewardFunction, states: CarriedStates) -> Tensor:
    """Rewards of the carried states, (N,) float32.

    Raises:
        InferenceError: the function gives something else.
    """
    values = np.asarray(reward(states.observation.numpy(), states.action.numpy(), states.next_observation.numpy()))
    if values.shape != (len(states),) or values.dtype.kind not in "fiub":
        raise InferenceError(f"the reward gives {values.dtype} of shape {values.shape}, valid: numbers of shape ({len(states)},)")
    return torch.from_numpy(values.astype(np.float32))


def _require_finite(rewards: Tensor) -> None:
    wrong = torch.nonzero(~torch.isfinite(rewards)).squeeze(-1)
    if not len(rewards) or len(wrong):
        found = f"{float(rewards[wrong[0]])} at state {int(wrong[0])}" if len(wrong) else "none"
        raise InferenceError(f"rewards: {found}, valid: one finite number for each state")


class SkillInference:
    """Infers skills from carried states; their features are computed once, so that one inference costs milliseconds.

    Args:
        config: of the pre-training.
        contract: names the numbers of an observation.
        b: the backward network.
        states: N transitions without rewards.
    """

    def __init__(self, config: DVFBConfig, contract: RobotContract, b: BackwardNet, states: CarriedStates) -> None:
        self.config, self.contract, self.b, self.states = config, contract, b, states
        device = next(b.parameters()).device
        with torch.no_grad():
            reached = reached_goal(config.goal, states.observation, states.next_observation)
            self.features = torch.cat([b(part.to(device)).cpu() for part in reached.split(1024)])

    def from_rewards(self, rewards: Tensor, *, percentile: float = PERCENTILE) -> Tensor:
        """z (d,) from a reward for each carried state (N,).

        Args:
            rewards: any scale.
            percentile: 0.99 keeps the best 1 % of the states (FB only); 0 keeps all.
        """
        if self.config.variant == "sf_laplacian":
            return regressed_skill(self.features, rewards)
        return weighted_skill(self.features, rewards, percentile=percentile)

    def from_function(self, reward: RewardFunction, *, percentile: float = PERCENTILE) -> Tensor:
        """z (d,) from a reward function.

        Raises:
            InferenceError: it gives something else than a finite number for each state.
        """
        return self.from_rewards(labels(reward, self.states), percentile=percentile)

    def from_goal(self, channel: str, goal: Tensor, *, radius: float = GOAL_RADIUS) -> Tensor:
        """z (d,) from the reward 1[|x' - goal| < radius] on an observation channel x, e.g. the end effector's position in metres.

        Raises:
            InferenceError: a goal of another size, or no carried state that near; tells the nearest.
        """
        return self.from_rewards(goal_rewards(self.contract, self.states, channel, goal, radius=radius))


def goal_rewards(contract: RobotContract, states: CarriedStates, channel: str, goal: Tensor, *, radius: float) -> Tensor:
    """1[|x' - goal| < radius] of an observation channel x for each carried state, (N,).

    Raises:
        InferenceError: see `SkillInference.from_goal`.
    """
    columns = goal_columns(contract, channel)
    if goal.shape != (len(columns),) or not torch.isfinite(goal).all():
        names = contract.channel(channel).names
        raise InferenceError(f"goal of {channel}: {goal.tolist()}, valid: {len(columns)} finite numbers for {names}")
    distance = (states.next_observation[:, columns] - goal).norm(dim=-1)
    if not bool((distance < radius).any()):
        unit = contract.channel(channel).unit
        nearest = states.next_observation[int(distance.argmin()), columns].tolist()
        raise InferenceError(
            f"goal of {channel}: {goal.tolist()} is {float(distance.min()):.3f} {unit} from the nearest carried state {nearest}, "
            f"valid: within {radius} {unit}"
        )
    return (distance < radius).float()


def goal_columns(contract: RobotContract, channel: str) -> list[int]:
    """Places of a channel's numbers in the flat observation, of its newest sample.

    Raises:
        InferenceError: no such channel among the vectors; lists those there are.
    """
    start = 0
    for other in contract.low_dimensional:
        end = start + other.size * other.history
        if other.name == channel and other.kind == "vector":
            return list(range(end - other.size, end))
        start = end
    valid = [other.name for other in contract.low_dimensional if other.kind == "vector"]
    raise InferenceError(f"goal of channel {channel!r}, valid: {', '.join(valid)}")


def backward_net(config: DVFBConfig, contract: RobotContract) -> BackwardNet:
    """B, untrained, for the observations of a contract.

    Raises:
        InferenceError: `goal_channels` that are not among them; lists those there are.
    """
    size = contract.observation_size
    columns = [column for channel in config.goal_channels for column in goal_columns(contract, channel)]
    pair = [] if config.goal == "canonical" else [size + column for column in columns]
    return BackwardNet(goal_size(config.goal, size), config.backward_hidden, config.z_dim, columns + pair)


def inference_from_bundle(bundle: Bundle, device: str = "cpu") -> SkillInference:
    """Inference with the states that a bundle carries.

    Raises:
        BundleError: another method's bundle, one without states, or weights or states that do not fit.
    """
    if bundle.method != "dvfb":
        raise BundleError(f"bundle of method {bundle.method!r}, valid: dvfb")
    config, contract, states = DVFBConfig.from_dict(bundle.config), restore_contract(bundle), CarriedStates.from_bundle(bundle)
    if states.observation.shape[1] != contract.observation_size:
        found = states.observation.shape[1]
        raise BundleError(f"bundle of method 'dvfb': states of {found} numbers, the contract has {contract.observation_size}")
    b = restore_weights(backward_net(config, contract), bundle, device, prefix="b.")
    return SkillInference(config, contract, b, states)
