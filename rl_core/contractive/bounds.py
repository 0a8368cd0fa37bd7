"""How far a motion from any start can be from the demonstrations: by the triangle inequality and contraction,

    (1/T) sum_t |y(t) - y*_i(t)|  <=  l_i + (1/T) sum_t |y(t) - y^_i(t)|
                                  <=  l_i + gain sqrt(V_i(0)) (1/T) sum_t s_t rho^t      by the metric, for one start
                                  <=  l_i + K |y(0) - y*_i(0)| (1/T) sum_t s_t rho^t     by the distance, for a region

y^_i is the rollout from demonstration i's start, l_i its mean error, V_i(0) the start's latent distance from it. The smallest over i holds.

    gain = Lip(phi) |C S^(-1/2)|        K = gain |S^(1/2) C+| Lip(phi^-1)  <=  cond(S)^(1/2) |C| |C+| Lip(phi) Lip(phi^-1)

The bijection stretches distances by s_t Lip(phi) at time t, s_t <= 1. The Lipschitz constants are singular values of the Jacobian where
they matter: for phi along the lines between the read-outs of motions from the region and those from the demonstrated starts at the
same time, for phi^-1 between the starts. Dense samples of a smooth map, no proof.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.contractive.certificate import Certificate
from rl_core.contractive.metric import tightened
from rl_core.contractive.model import ContractiveModel
from rl_core.contractive.numpy_model import NumpyModel
from rl_core.training.seeding import numpy_generator

Array = NDArray[np.float64]
SAMPLES = 120
"""Starts drawn around the demonstrated ones."""
SHARES = np.linspace(0.0, 1.2, 5)
"""Points on a line between two read-outs at which the bijection's Jacobian is looked at; a fifth beyond what was sampled."""


def discount(factor: float, stretch: Array) -> float:
    """(1/T) sum_{t < T} s_t factor^t, of stretches s (T,)."""
    return float(np.mean(stretch * factor ** np.arange(len(stretch))))


def bounds_by_metric(certificate: Certificate, latents: Array, starts: Array) -> Array:
    """(M, N) bound on the mean error of M motions to each of the N demonstrations.

    Args:
        certificate: of the model.
        latents: (M, n_x) latent states that the motions start from.
        starts: (M, n_y) states they start from; the first point's distance is known exactly.
    """
    apart = latents[:, None] - certificate.latents[None]
    metric_distance = np.sqrt(np.maximum(np.einsum("mnx,xy,mny->mn", apart, certificate.metric, apart), 0.0))
    later = discount(certificate.factor, np.concatenate([[0.0], certificate.stretch[1:]]))
    first = np.linalg.norm(starts[:, None] - certificate.starts[None], axis=-1)
    bound: Array = certificate.errors + first / certificate.horizon + certificate.gain * metric_distance * later
    return bound


def bounds_by_distance(certificate: Certificate, starts: Array) -> Array:
    """(M, N) bound on the mean error of the motions from `starts` (M, n_y) to each demonstration."""
    first = np.linalg.norm(starts[:, None] - certificate.starts[None], axis=-1)
    bound: Array = certificate.errors + certificate.k_theory * first * discount(certificate.factor, certificate.stretch)
    return bound


def certify(model: ContractiveModel, demonstrations: Tensor, *, margin: float, seed: int = 0) -> Certificate:
    """The certificate of a model.

    Args:
        model: any precision; it is copied.
        demonstrations: (N, T, n_y).
        margin: half-width of the boxes around the demonstrated starts, and of the certified region around the demonstrations.
        seed: of the samples.
    """
    model = copy.deepcopy(model).cpu().double().requires_grad_(False)
    numpy_model = NumpyModel(model)
    demos = demonstrations.detach().cpu().numpy().astype(np.float64)
    generator = numpy_generator(seed, "certificate")
    starts, horizon = demos[:, 0], demos.shape[1]
    nominal_latents, nominal = numpy_model.rollout(starts)
    errors = np.linalg.norm(nominal - demos, axis=-1).mean(axis=1)

    around = np.repeat(starts, -(-SAMPLES // len(starts)), axis=0)
    around = around + generator.uniform(-margin, margin, around.shape)
    latents, states = numpy_model.rollout(around)
    low, high = demos.min(axis=(0, 1)) - margin, demos.max(axis=(0, 1)) + margin
    readout = model.readout.numpy()
    read, nominal_read = latents @ readout.T, nominal_latents @ readout.T
    apart = read[:, None] - nominal_read
    lines = nominal_read + SHARES[:, None, None, None, None] * apart
    stretch = np.array([jacobian_range(model, lines[..., t, :].reshape(-1, lines.shape[-1]))[1] for t in range(horizon)])
    smallest = jacobian_range(model, lines[..., 0, :].reshape(-1, lines.shape[-1]))[0]
    largest = float(stretch.max())
    stretch = stretch / largest

    deviations = (latents[:, None, 0] - nominal_latents[:, 0]).reshape(-1, latents.shape[-1])
    found, factor = tightened(model, torch.from_numpy(deviations), torch.from_numpy(stretch))
    metric: Array = found.numpy()
    upper = np.linalg.cholesky(metric).T
    gain = largest * float(np.linalg.norm(np.linalg.solve(upper.T, readout.T), ord=2))
    back = 1.0 if model.config.lift == "linear" else 1.0 / smallest
    k_theory = gain * float(np.linalg.norm(upper @ numpy_model.right_inverse, ord=2)) * back
    reach = discount(factor, stretch) * k_theory
    return Certificate(
        metric=metric,
        promised=model.ren.promised,
        factor=factor,
        gain=gain,
        stretch=stretch,
        k_theory=k_theory,
        k_empirical=empirical_k(np.concatenate([nominal, states]), factor),
        errors=errors,
        starts=starts,
        latents=nominal_latents[:, 0],
        horizon=horizon,
        low=low,
        high=high,
        bound_worst=float(errors.max() + reach * margin * np.sqrt(len(low))),
        bound_expected=float(errors.mean() + reach * np.linalg.norm(generator.uniform(-margin, margin, (1000, len(low))), axis=1).mean()),
    )


def jacobian_range(model: ContractiveModel, points: Array) -> tuple[float, float]:
    """Smallest and largest singular value of the bijection's Jacobian at `points` (M, n_y)."""
    z = torch.from_numpy(points).requires_grad_()
    with torch.enable_grad():
        mapped = model.bijection(z)
        rows = [torch.autograd.grad(mapped[:, i].sum(), z, retain_graph=True, allow_unused=True)[0] for i in range(z.shape[1])]
    values = torch.linalg.svdvals(torch.stack([row for row in rows if row is not None], dim=1))
    return float(values.min()), float(values.max())


def empirical_k(states: Array, factor: float) -> float:
    """max over pairs and t of |y_a(t) - y_b(t)| / (factor^t |y_a(0) - y_b(0)|) of motions (M, T, n_y)."""
    scaled = states / (factor ** np.arange(states.shape[1]))[None, :, None]
    largest = 0.0
    for index in range(len(states) - 1):
        apart = np.linalg.norm(scaled[index + 1 :] - scaled[index], axis=-1)
        distinct = apart[:, 0] > 1e-9
        if distinct.any():
            largest = max(largest, float((apart[distinct] / apart[distinct, :1]).max()))
    return largest
