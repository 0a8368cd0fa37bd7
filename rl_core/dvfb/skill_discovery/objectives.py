"""What skill-discovery methods reward: DIAYN (arXiv 1802.06070), CIC (arXiv 2202.00161), APS (arXiv 2108.13956), as in URLB.

Each has a loss of its representation, (), and a reward, (n,) without gradient, of n transitions (n, S), (n, S) under the skills followed
(n, d). `logits` of N transitions under C skills serve zero-shot inference; APS has features instead.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_core.dvfb.contrastive import ContrastiveEncoder, contrastive_loss
from rl_core.dvfb.moments import RunningMoments
from rl_core.dvfb.networks import Sizes
from rl_core.dvfb.skill_discovery.config import SkillDiscoveryConfig
from rl_core.models import MLP


def particle_entropy(features: Tensor, *, neighbours: int, scale: Tensor) -> Tensor:
    """log(1 + mean distance to the k nearest others of the batch / scale), (n, f) -> (n,)."""
    return torch.log1p(nearest_distances(features, neighbours).mean(-1) / scale)


def nearest_distances(features: Tensor, neighbours: int) -> Tensor:
    """Distances to the k nearest other rows, (n, f) -> (n, k); with fewer others, to all of them."""
    count = min(neighbours, len(features) - 1)
    return torch.cdist(features, features).topk(count + 1, dim=-1, largest=False).values[:, 1:]


class DIAYN(nn.Module):
    """A discriminator guesses the skill from s': loss its cross-entropy, reward log q(z | s') - log p(z), p uniform over d skills."""

    def __init__(self, config: Sizes, observation: int) -> None:
        super().__init__()
        self.discriminator = MLP(observation, config.z_dim, (config.hidden, config.hidden), activation="relu")

    def loss(self, observation: Tensor, next_observation: Tensor, skill: Tensor) -> Tensor:
        """Cross-entropy; skills are one-hot up to scale."""
        return functional.cross_entropy(self.discriminator(next_observation), skill.argmax(-1))

    @torch.no_grad()
    def reward(self, observation: Tensor, next_observation: Tensor, skill: Tensor) -> Tensor:
        """log q(z | s') + log d."""
        guessed = functional.log_softmax(self.discriminator(next_observation), dim=-1)
        return guessed.gather(1, skill.argmax(-1, keepdim=True)).squeeze(-1) + math.log(skill.shape[1])

    def logits(self, observation: Tensor, next_observation: Tensor, skills: Tensor) -> Tensor:
        """How much transitions (N, S), (N, S) look like skills (C, d), (N, C)."""
        return self.discriminator(next_observation)[:, skills.argmax(-1)]


class CIC(nn.Module):
    """A contrastive encoder tells which skill a transition shows; the reward is the particle entropy of its states, without the skill."""

    def __init__(self, config: Sizes, observation: int, *, temperature: float, neighbours: int) -> None:
        super().__init__()
        self.encoder, self.distances = ContrastiveEncoder(config, observation), RunningMoments()
        self.temperature, self.neighbours = temperature, neighbours

    def loss(self, observation: Tensor, next_observation: Tensor, skill: Tensor) -> Tensor:
        """The contrastive loss."""
        return contrastive_loss(*self.encoder(observation, next_observation, skill), temperature=self.temperature)

    @torch.no_grad()
    def reward(self, observation: Tensor, next_observation: Tensor, skill: Tensor) -> Tensor:
        """Particle entropy."""
        return _entropy(self.encoder.state(next_observation), self.neighbours, self.distances)

    def logits(self, observation: Tensor, next_observation: Tensor, skills: Tensor) -> Tensor:
        """How much transitions (N, S), (N, S) look like skills (C, d), (N, C)."""
        query = functional.normalize(self.encoder.skill(skills), dim=-1)
        key = self.encoder.transition(torch.cat([self.encoder.state(observation), self.encoder.state(next_observation)], -1))
        return functional.normalize(key, dim=-1) @ query.T / self.temperature


class APS(nn.Module):
    """Features phi(s') of norm 1 that agree with the skill; reward phi . z plus the particle entropy of phi."""

    def __init__(self, config: Sizes, observation: int, *, neighbours: int) -> None:
        super().__init__()
        self.net = MLP(observation, config.z_dim, (config.hidden, config.hidden), activation="relu")
        self.distances, self.neighbours = RunningMoments(), neighbours

    def features(self, next_observation: Tensor) -> Tensor:
        """phi, (n, S) -> (n, d)."""
        return functional.normalize(self.net(next_observation), dim=-1)

    def loss(self, observation: Tensor, next_observation: Tensor, skill: Tensor) -> Tensor:
        """-E phi . z, the likelihood of z under a von Mises-Fisher distribution around phi."""
        return -(self.features(next_observation) * functional.normalize(skill, dim=-1)).sum(-1).mean()

    @torch.no_grad()
    def reward(self, observation: Tensor, next_observation: Tensor, skill: Tensor) -> Tensor:
        """phi . z plus particle entropy."""
        features = self.features(next_observation)
        agreed = (features * functional.normalize(skill, dim=-1)).sum(-1)
        return agreed + _entropy(features, self.neighbours, self.distances)


def _entropy(features: Tensor, neighbours: int, distances: RunningMoments) -> Tensor:
    """The particle entropy in units of the running mean distance, which takes this batch in first."""
    distances.update(nearest_distances(features, neighbours))
    return particle_entropy(features, neighbours=neighbours, scale=(distances.mean + 1e-8).to(features.dtype))


def make_objective(config: SkillDiscoveryConfig, observation: int) -> DIAYN | CIC | APS:
    """The representation of the configured method."""
    if config.algorithm == "diayn":
        return DIAYN(config, observation)
    if config.algorithm == "cic":
        return CIC(config, observation, temperature=config.temperature, neighbours=config.neighbours)
    return APS(config, observation, neighbours=config.neighbours)
