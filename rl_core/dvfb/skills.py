"""Skills z: vectors of norm sqrt(d), drawn from the sphere, from B of states, or both mixed."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def on_sphere(vectors: Tensor) -> Tensor:
    """sqrt(d) v / |v|, (..., d) -> (..., d)."""
    return math.sqrt(vectors.shape[-1]) * functional.normalize(vectors, dim=-1)


def mixed_skills(skills: Tensor, features: Tensor, ratio: float, *, uniform: Tensor) -> Tensor:
    """Rows of `skills` (n, d), each with probability `ratio` replaced by the row of `features` (n, d), put on the sphere.

    Args:
        skills: drawn from the prior.
        features: of shuffled rows of the batch.
        ratio: in [0, 1].
        uniform: (n,) uniform draws in [0, 1).
    """
    return torch.where((uniform < ratio).unsqueeze(-1), on_sphere(features), skills)


def noisy_action(mean: Tensor, noise: Tensor) -> Tensor:
    """mean + noise, cut at the box; the gradient passes the cut unchanged, so that actions at the border can come back."""
    action = mean + noise
    return action + (action.clamp(-1.0, 1.0) - action).detach()
