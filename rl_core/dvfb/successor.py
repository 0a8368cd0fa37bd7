"""F and B with their targets, and what they are trained on: the forward-backward losses, or successor features of Laplacian features."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.goals import GoalInputs
from rl_core.dvfb.losses import (
    effective_rank,
    fb_loss,
    implicit_reward,
    inverse_covariance,
    laplacian_loss,
    measure_target,
    orthonormality_error,
    orthonormality_loss,
    skill_value,
    successor_feature_loss,
    successor_feature_target,
    td_loss,
    td_target,
)
from rl_core.dvfb.networks import BackwardNet, ForwardNet, orthogonal
from rl_core.models import ema_update


@dataclass(frozen=True, kw_only=True)
class Step:
    """A batch as the losses take it: s, a, s' (n, ...), gamma (1 - terminal) (n,), z (n, d), a' = pi(s', z) with noise, B's inputs, and
    `shown` (n, d), B of the goals reached, without gradient."""

    observation: Tensor
    action: Tensor
    next_observation: Tensor
    discount: Tensor
    skill: Tensor
    next_action: Tensor
    goals: GoalInputs
    shown: Tensor


class SuccessorNets(nn.Module):
    """F and B, online and target. With successor features F is psi and B is phi."""

    def __init__(self, f: ForwardNet, b: BackwardNet, *, generator: torch.Generator) -> None:
        super().__init__()
        self.f, self.b = f, b
        orthogonal(self, generator)
        self.f_target = copy.deepcopy(self.f).requires_grad_(False)
        self.b_target = copy.deepcopy(self.b).requires_grad_(False)

    def move_targets(self, rate: float) -> None:
        """Soft update of both targets."""
        ema_update(self.f_target, self.f, rate)
        ema_update(self.b_target, self.b, rate)


def skill_features(config: DVFBConfig, features: Tensor) -> Tensor:
    """z (n, d), up to its norm, of the task to reach states with `features` (n, d): B itself, or (E phi phi^T)^-1 phi."""
    return features @ inverse_covariance(features) if config.variant == "sf_laplacian" else features


def successor_loss(config: DVFBConfig, nets: SuccessorNets, step: Step) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of the configured variant, (), and its figures."""
    return (_sf_laplacian if config.variant == "sf_laplacian" else _forward_backward)(config, nets, step)


def _forward_backward(config: DVFBConfig, nets: SuccessorNets, step: Step) -> tuple[Tensor, dict[str, Tensor]]:
    skill = step.skill
    with torch.no_grad():
        next_forward = nets.f_target(step.next_observation, skill, step.next_action)
        target = measure_target(next_forward, nets.b_target(step.goals.target), step.discount)
    forward, backward = nets.f(step.observation, skill, step.action), nets.b(step.goals.online)

    # Successor measure: off-diagonal Bellman residuals, diagonal pulled up.
    measure = fb_loss(forward, backward, target)
    # Orthonormality: E B B^T = 1 fixes the scale that F and B could trade.
    orthonormality = orthonormality_loss(backward)
    loss = measure + config.ortho_coef * orthonormality
    metrics = {"loss/fb": measure, "loss/orthonormality": orthonormality}
    # Auxiliary: F.z is the value of the reward that z asks for.
    if config.q_loss_coef:
        with torch.no_grad():
            value_target = td_target(implicit_reward(backward, skill), step.discount, skill_value(next_forward, skill))
        auxiliary = td_loss(skill_value(forward, skill), value_target)
        loss = loss + config.q_loss_coef * auxiliary
        metrics["loss/skill_value"] = auxiliary
    return loss, _detached(metrics, backward)


def _sf_laplacian(config: DVFBConfig, nets: SuccessorNets, step: Step) -> tuple[Tensor, dict[str, Tensor]]:
    with torch.no_grad():
        next_forward = nets.f_target(step.next_observation, step.skill, step.next_action)
        target = successor_feature_target(step.shown, step.discount, next_forward, step.skill)
    # Successor features: psi follows phi.
    successor = successor_feature_loss(nets.f(step.observation, step.skill, step.action), target)
    # Features: slow and orthonormal.
    features = nets.b(step.observation)
    laplacian = laplacian_loss(features, nets.b(step.next_observation))
    return successor + laplacian, _detached({"loss/successor_features": successor, "loss/laplacian": laplacian}, features)


def _detached(metrics: dict[str, Tensor], features: Tensor) -> dict[str, Tensor]:
    features = features.detach()
    figures = {"fb/orthonormality_error": orthonormality_error(features), "fb/effective_rank": effective_rank(features)}
    return {name: value.detach() for name, value in metrics.items()} | figures
