"""DAC's loss terms as functions of tensors, so that each can be checked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from rl_core.models.diffusion import Schedule

QFunction = Callable[[Tensor, Tensor], Tensor]

# Actions on the border of the box are pulled inside by this much, as the authors' data loader does.
ACTION_BOUND = 1.0 - 1e-5


def next_state_value(values: Tensor, *, rho: float, target: Literal["lcb", "min"], next_value: Literal["mean", "max"]) -> Tensor:
    """The pessimistic value of the next state from head values of N actions: (H, B, N) -> (B,).

    The actions are joined inside each head first; the standard deviation is then over heads (population, ddof 0):
    v = mean_h v_h - rho std_h v_h.
    """
    by_head = values.mean(-1) if next_value == "mean" else values.amax(-1)
    if target == "min":
        return by_head.amin(0)
    deviation, mean = torch.std_mean(by_head, dim=0, correction=0)
    return mean - rho * deviation


def bellman_target(reward: Tensor, terminal: Tensor, value: Tensor, *, gamma: float) -> Tensor:
    """y = r + gamma (1 - terminal) v(s'); a time limit is not terminal and is bootstrapped through."""
    return reward + gamma * (1.0 - terminal) * value


def critic_loss(values: Tensor, target: Tensor) -> Tensor:
    """Mean over heads and batch of (Q_h(s, a) - y)^2: (H, B), (B,) -> ()."""
    return (values - target).square().mean()


def q_gradient(q: QFunction, observation: Tensor, x: Tensor) -> Tensor:
    """g = grad_x mean_h Q_h(s, x), (B, A), detached. `q` maps (B, S), (B, A) to (H, B)."""
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(q(observation, point).mean(0).sum(), point)
    return gradient


def q_scale(q: QFunction, observation: Tensor, action: Tensor) -> Tensor:
    """C = mean over heads and batch of |Q_h(s, a)| at the data's actions, (); makes eta independent of the reward's scale."""
    with torch.no_grad():
        return q(observation, action).abs().mean()


def guidance_weight(schedule: Schedule, t: Tensor, *, guidance: Literal["soft", "hard"]) -> Tensor:
    """Weight of the Q-gradient at step t, (B, 1): sqrt(1 - alpha_bar_t) for soft guidance, 1 for hard."""
    weight = schedule.noise[t].unsqueeze(-1)
    return weight if guidance == "soft" else torch.ones_like(weight)


def bc_loss(predicted: Tensor, noise: Tensor) -> Tensor:
    """Mean over batch and dimensions of (eps_theta - eps)^2."""
    return (predicted - noise).square().mean()


def guidance_loss(predicted: Tensor, gradient: Tensor, weight: Tensor) -> Tensor:
    """Mean over batch and dimensions of weight * g * eps_theta; with eta * bc_loss its minimum is eps - weight g / (2 eta)."""
    return (weight * gradient * predicted).mean()


def dual_step(eta: Tensor, bc: Tensor, *, threshold: float, rate: float, low: float, high: float) -> Tensor:
    """eta <- clip(eta + rate * clip(bc - threshold, -1, 1), low, high)."""
    return (eta + rate * (bc - threshold).clamp(-1.0, 1.0)).clamp(low, high)
