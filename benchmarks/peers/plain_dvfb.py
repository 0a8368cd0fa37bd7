"""The fair opponent of a DVFB update: the same losses in plain PyTorch, term by term in the order of the authors' code.

Heads are networks of their own, each network has its own forward pass wherever the algorithm asks for it, moving averages go parameter by
parameter over all tensors at once, Adam is PyTorch's fused one. What an attentive author would do is done: targets without gradient, the
batch's covariance once, no gradients of F, B and the critic while the actor learns. Same weights, same noise, same numbers.
"""

from __future__ import annotations

import copy
import math

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torch.nn import functional

from rl_core.dvfb.learner import DVFBLearner
from rl_core.dvfb.networks import Critic, ForwardNet
from rl_core.models import EnsembleMLP


class _Heads(nn.Module):
    """Separate MLPs with the weights of a stacked one."""

    def __init__(self, stacked: EnsembleMLP) -> None:
        super().__init__()
        self.nets = nn.ModuleList()
        for head in range(stacked.heads):
            layers: list[nn.Module] = []
            for weight, bias in zip(stacked.weights, stacked.biases, strict=True):
                layer = nn.Linear(weight.shape[1], weight.shape[2])
                layer.weight.data, layer.bias.data = weight[head].detach().T.clone(), bias[head, 0].detach().clone()
                layers += [layer, nn.ReLU()]
            self.nets.append(nn.Sequential(*layers[:-1]))

    def forward(self, x: Tensor) -> list[Tensor]:
        return [net(x) for net in self.nets]


class _F(nn.Module):
    def __init__(self, ours: ForwardNet) -> None:
        super().__init__()
        self.acted, self.skilled, self.heads = copy.deepcopy(ours.acted), copy.deepcopy(ours.skilled), _Heads(ours.heads)

    def forward(self, s: Tensor, z: Tensor, a: Tensor) -> list[Tensor]:
        return self.heads(torch.cat([self.acted(torch.cat([s, a], 1)), self.skilled(torch.cat([s, z], 1))], 1))


class _Critic(nn.Module):
    def __init__(self, ours: Critic) -> None:
        super().__init__()
        self.trunk, self.heads = copy.deepcopy(ours.trunk), _Heads(ours.heads)

    def forward(self, s: Tensor, z: Tensor, a: Tensor) -> list[Tensor]:
        return [value.squeeze(1) for value in self.heads(self.trunk(torch.cat([s, z, a], 1)))]


class PlainDVFB:
    """Starts with the weights, the running variance and the noise of `learner` (variant full, canonical goals), which it copies."""

    def __init__(self, learner: DVFBLearner) -> None:
        self.config = learner.config
        self.actor, self.b = copy.deepcopy(learner.actor), copy.deepcopy(learner.nets.b)
        self.f, self.critic = _F(learner.nets.f), _Critic(learner.critic)
        self.predictor, self.random = copy.deepcopy(learner.novelty.predictor), copy.deepcopy(learner.novelty.random)
        self.moments, self.contrastive = copy.deepcopy(learner.novelty.moments), copy.deepcopy(learner.contrastive)
        self.f_target, self.b_target, self.critic_target = (copy.deepcopy(net) for net in (self.f, self.b, self.critic))
        self.noise = torch.Generator()
        self.noise.set_state(learner.generator.get_state())
        lr = self.config.lr
        self.fb_adam = torch.optim.Adam([*self.f.parameters(), *self.b.parameters()], lr=lr, fused=True)
        self.actor_adam, self.critic_adam, self.rnd_adam, self.contrastive_adam = (
            torch.optim.Adam(net.parameters(), lr=lr, fused=True) for net in (self.actor, self.critic, self.predictor, self.contrastive)
        )

    def update(self, batch: TensorDict) -> dict[str, Tensor]:
        """One update; its losses."""
        config, n, d = self.config, len(batch), self.config.z_dim
        s, a, s2 = batch["observation"], batch["action"], batch["next_observation"]
        gamma = config.gamma * (1.0 - batch["terminal"])

        with torch.no_grad():
            order = torch.randperm(n, generator=self.noise)
            z = math.sqrt(d) * functional.normalize(torch.randn(n, d, generator=self.noise), dim=1)
            shuffled = math.sqrt(d) * functional.normalize(self.b(s2[order]), dim=1)
            z = torch.where(torch.rand(n, 1, generator=self.noise) < config.mix_ratio, shuffled, z)
            a2 = self._noisy(self.actor(s2, z)).clamp(-1, 1)

        # Random network distillation.
        rnd = self._novelty(s).mean()
        self._step(self.rnd_adam, rnd)
        with torch.no_grad():
            error = self._novelty(s)
            self.moments.update(error)
            reward = error / (self.moments.variance.sqrt() + 1e-8).to(error.dtype)

        # Contrastive skill entropy.
        with torch.no_grad():
            shown = self.b(s2)
        q, k = self._encode(s, s2, shown)
        similar = q @ k.T / config.temperature
        contrast = ((similar.exp().sum(1) - math.exp(1.0 / config.temperature)).clamp(min=1e-6).log() - similar.diagonal()).mean()
        self._step(self.contrastive_adam, contrast)
        with torch.no_grad():
            q, k = self._encode(s, s2, shown)
            nearest = (k @ q.T).topk(config.neighbours, dim=1).values
            reward = reward + config.contrastive_weight * torch.log1p((1.0 - nearest).mean(1).clamp(0, 2))

        # Exploration critic.
        with torch.no_grad():
            y = reward + gamma * torch.minimum(*self.critic_target(s2, z, a2))
        critic = torch.stack([functional.mse_loss(value, y) for value in self.critic(s, z, a)]).sum()
        self._step(self.critic_adam, critic)

        # Forward-backward.
        with torch.no_grad():
            f2, b2 = self.f_target(s2, z, a2), self.b_target(s2)
            m2 = gamma[:, None] * torch.minimum(*(f @ b2.T for f in f2))
        f1, b1 = self.f(s, z, a), self.b(s2)
        beside, pairs = ~torch.eye(n, dtype=torch.bool), n * (n - 1)
        measures = [f @ b1.T for f in f1]
        fb = sum(0.5 * ((m - m2).square() * beside).sum() / pairs - m.diagonal().mean() for m in measures)
        gram = b1 @ b1.T
        ortho = (gram.square() * beside).sum() / pairs - 2.0 * gram.diagonal().mean()
        with torch.no_grad():
            covariance = b1.T @ b1 / n
            implicit = (b1 @ torch.linalg.inv(covariance) * z).sum(1)
            value = implicit + gamma * torch.minimum(*((f * z).sum(1) for f in f2))
        auxiliary = sum(functional.mse_loss((f * z).sum(1), value) for f in f1)
        self._step(self.fb_adam, fb + config.ortho_coef * ortho + config.q_loss_coef * auxiliary)

        # Actor.
        self.f.requires_grad_(False)
        self.critic.requires_grad_(False)
        action = self._noisy(self.actor(s, z))
        action = action + (action.clamp(-1, 1) - action).detach()
        known = torch.minimum(*((f * z).sum(1) for f in self.f(s, z, action)))
        explored = torch.minimum(*self.critic(s, z, action))
        actor = -(config.exploration_weight * explored.mean() + known.mean())
        self._step(self.actor_adam, actor)
        self.f.requires_grad_(True)
        self.critic.requires_grad_(True)

        with torch.no_grad():
            targets: list[Tensor] = [*self.f_target.parameters(), *self.b_target.parameters(), *self.critic_target.parameters()]
            online: list[Tensor] = [*self.f.parameters(), *self.b.parameters(), *self.critic.parameters()]
            torch._foreach_lerp_(targets, online, config.tau)
        losses = {"novelty": rnd, "contrastive": contrast, "critic": critic, "fb": fb, "orthonormality": ortho, "actor": actor}
        return {f"loss/{name}": loss.detach() for name, loss in losses.items()}

    def _novelty(self, s: Tensor) -> Tensor:
        seen = functional.batch_norm(s, None, None, training=True).clamp(-5, 5)
        with torch.no_grad():
            wanted = self.random(seen)
        return (self.predictor(seen) - wanted).square().mean(1)

    def _encode(self, s: Tensor, s2: Tensor, skill: Tensor) -> tuple[Tensor, Tensor]:
        net = self.contrastive
        key = net.transition(torch.cat([net.state(s), net.state(s2)], 1))
        return functional.normalize(net.skill(skill), dim=1), functional.normalize(key, dim=1)

    def _noisy(self, mean: Tensor) -> Tensor:
        noise = self.config.action_std * torch.randn(mean.shape, generator=self.noise)
        return mean + noise.clamp(-self.config.action_clip, self.config.action_clip)

    @staticmethod
    def _step(adam: torch.optim.Adam, loss: Tensor) -> None:
        adam.zero_grad()
        loss.backward()
        adam.step()
