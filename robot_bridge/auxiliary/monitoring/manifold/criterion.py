"""The criterion (arXiv 2504.15470): how a diffusion model's log-density is curved around a picture.

On the sphere  x~ = sqrt(1 - alpha) x_0 + sqrt(alpha) u,  ||u|| = sqrt(d),  with h the predicted noise (score = -h / sqrt(alpha)):

    kappa(x_0) = mean_u <h / ||h||, u>                        total-variation curvature, by Gauss' theorem
    D(x_0)     = mean_u ||h||                                 mean size of the gradient
    bias(x_0)  = mean_u sqrt(d_feat) <h / ||h||, x_0>         vanishes for an unbiased denoiser
    C(x_0)     = a kappa - b D + c bias                       higher = generated

A generated picture lies near a maximum of the learned density: high kappa, low D. Signs are those of h as noise prediction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.prior import Prior

TERMS = ("kappa", "gradient", "bias", "reconstruction")
_PIECE = 256


@dataclass(frozen=True, kw_only=True)
class Weights:
    """a, b and c of C, for terms that were standardised on real pictures."""

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    def combine(self, kappa: Tensor, gradient: Tensor, bias: Tensor) -> Tensor:
        """C (n,) of terms (n,)."""
        return self.a * kappa - self.b * gradient + self.c * bias


def spherical_noises(size: int, count: int, seed: int) -> Tensor:
    """`count` directions u (count, size), ||u|| = sqrt(size). All pictures are judged with the same ones, so that they cancel.

    Raises:
        AuthenticityError: none asked for.
    """
    if count < 1:
        raise AuthenticityError(f"{count} noises, valid: 1 or more")
    drawn = torch.randn(count, size, generator=torch_generator(seed, "sphere"))
    return drawn * (math.sqrt(size) / drawn.norm(dim=1, keepdim=True))


def step_of(prior: Prior, alpha: float) -> int:
    """The step, 1 or more, whose share of noise is nearest to `alpha`."""
    return 1 + int((prior.alphas[1:] - alpha).abs().argmin())


def terms(prior: Prior, crops: NDArray[np.uint8], step: int, noises: Tensor) -> dict[str, Tensor]:
    """kappa, D (`gradient`), bias and, at the same step and noises, the reconstruction error, each (n,) float32.

        reconstruction(x_0) = mean_u ||(x~ - sqrt(alpha) h) / sqrt(1 - alpha) - x_0||^2 / d

    Args:
        prior: the model.
        crops: (n, side, side, 3).
        step: of the model's noise schedule.
        noises: of `spherical_noises` (s, d).

    Raises:
        AuthenticityError: noises of another size than the model's samples.
    """
    if noises.shape[1:] != (prior.size,):
        raise AuthenticityError(f"noises of {tuple(noises.shape[1:])} numbers, valid: ({prior.size},), the model's d")
    at_once = max(1, _PIECE // len(noises))
    pieces = [_terms(prior, crops[at : at + at_once], step, noises) for at in range(0, len(crops), at_once)]
    return {name: torch.cat([piece[name] for piece in pieces]) if pieces else torch.empty(0) for name in TERMS}


def _terms(prior: Prior, crops: NDArray[np.uint8], step: int, noises: Tensor) -> Mapping[str, Tensor]:
    alpha, count = float(prior.alphas[step]), len(noises)
    with torch.no_grad():
        clean = prior.encode(crops)
        noisy = math.sqrt(1 - alpha) * clean[:, None] + math.sqrt(alpha) * noises  # (n, s, d)
        found = prior.noise(noisy.flatten(0, 1), step)
        seen, predicted, drawn = prior.embed(clean, found, noises)
        predicted = predicted.unflatten(0, (len(clean), count))
        length = predicted.norm(dim=2)
        direction = predicted / length.clamp_min(torch.finfo(predicted.dtype).tiny)[..., None]
        missed = (found.unflatten(0, (len(clean), count)) - noises).square().mean(dim=2) * (alpha / (1 - alpha))
        return {
            "kappa": (direction * drawn).sum(dim=2).mean(dim=1),
            "gradient": length.mean(dim=1),
            "bias": math.sqrt(prior.d_feat) * (direction * seen[:, None]).sum(dim=2).mean(dim=1),
            "reconstruction": missed.mean(dim=1),
        }
