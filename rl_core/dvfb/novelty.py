"""Random network distillation: how badly a predictor knows a random network's outputs at a state (Burda et al., arXiv 1810.12894)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.moments import RunningMoments
from rl_core.models import MLP

CLIP = 5.0


class Novelty(nn.Module):
    """Predictor, frozen random network, and the running variance of the error.

    Observations are standardised by their batch, in training and for the reward alike: what counts is which states of a batch are
    strange, so the error of a state depends on the others of its batch.
    """

    def __init__(self, config: DVFBConfig, observation: int) -> None:
        super().__init__()
        hidden = (config.hidden, config.hidden)
        self.predictor = MLP(observation, config.novelty_features, hidden, activation="relu")
        self.random = MLP(observation, config.novelty_features, hidden, activation="relu").requires_grad_(False)
        self.moments = RunningMoments(config.novelty_window)

    def look(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Observations as both networks see them, and the random one's outputs, (n, S) -> (n, S), (n, outputs); neither is trained."""
        seen = functional.batch_norm(observation, None, None, training=True).clamp(-CLIP, CLIP)
        return seen, self.random(seen)

    def error(self, seen: Tensor, wanted: Tensor) -> Tensor:
        """Mean over outputs of (predictor - random network)^2, (n,), of what `look` gives."""
        return (self.predictor(seen) - wanted).square().mean(-1)

    @torch.no_grad()
    def reward(self, seen: Tensor, wanted: Tensor) -> Tensor:
        """r_rnd (n,) = error / running deviation of the error. The mean is not subtracted; the batch is taken into the deviation first."""
        error = self.error(seen, wanted)
        self.moments.update(error)
        return error / (self.moments.variance.sqrt() + 1e-8).to(error.dtype)
