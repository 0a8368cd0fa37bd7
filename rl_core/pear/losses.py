"""PEAR's loss terms as functions of tensors, so that each can be checked by hand."""

from __future__ import annotations

from torch import Tensor


def critic_target(reward: Tensor, terminal: Tensor, value: Tensor, *, gamma: float, bounds: tuple[float, float]) -> Tensor:
    """y = clip(r + gamma (1 - terminal) v(s'), low, high), (B,). With rewards in {-1, 0} no true value lies outside [-1 / (1 - gamma), 0];
    without the clip hindsight targets drift, and relabelling with them."""
    return (reward + gamma * (1.0 - terminal) * value).clamp(*bounds)


def critic_loss(values: Tensor, target: Tensor) -> Tensor:
    """Half the mean squared error of each critic, summed over them: (H, B), (B,) -> ()."""
    return 0.5 * (values - target).square().mean(dim=1).sum()


def margin_loss(replay_values: Tensor, expert_values: Tensor) -> Tensor:
    """(sum over replay rows of Q(s, g, pi(s, g)) - sum over expert rows of Q(s, g, a_e)) / 2, averaged over critics: (H, R), (H, E) -> ().

    It lowers Q at goals that only the policy has been asked for, which relabelling would otherwise take for reachable.
    """
    return 0.5 * (replay_values.sum(dim=1) - expert_values.sum(dim=1)).mean()


def sac_loss(value: Tensor, log_prob: Tensor, action: Tensor, *, entropy: float, action_l2: float) -> Tensor:
    """E[alpha log pi - min Q] + eta E[a^2], the square averaged over dimensions too: (B,), (B,), (B, A) -> ()."""
    return (entropy * log_prob - value).mean() + action_l2 * action.square().mean()


def q_filter(expert_value: Tensor, own_value: Tensor) -> Tensor:
    """(E,) 1 where the demonstrated action has the higher value, else 0; no gradient."""
    return (expert_value.detach() > own_value.detach()).to(expert_value.dtype)


def cloning_loss(action: Tensor, expert_action: Tensor, kept: Tensor) -> Tensor:
    """Sum over the rows kept of |pi(s, g) - a_e|^2: (E, A), (E, A), (E,) -> ()."""
    return (kept * (action - expert_action).square().sum(dim=-1)).sum()


def discriminator_loss(expert: Tensor, policy: Tensor) -> Tensor:
    """E_expert (D - 1)^2 + E_policy (D + 1)^2: (E,), (P,) -> (); D is linear, so that it can meet both targets."""
    return (expert - 1.0).square().mean() + (policy + 1.0).square().mean()


def adversarial_loss(policy: Tensor) -> Tensor:
    """The actor's side: E (D(s, g, pi(s, g)) - 1)^2: (E,) -> ()."""
    return (policy - 1.0).square().mean()
