"""Reverse-chain samplers. Pure: all noise is an argument, so a sample depends on nothing but its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from rl_core.models.diffusion.process import clean_from_noise, noise_from_clean
from rl_core.models.diffusion.schedule import Schedule

PredictNoise = Callable[[Tensor, int], Tensor]


def ancestral_sample(predict: PredictNoise, schedule: Schedule, noise: Tensor, *, clip: float | None = 1.0) -> Tensor:
    """Runs the chain T -> 0 with the larger variance beta_t (DDPM eq. 7 with sigma_t^2 = beta_t); differentiable.

    x_0 = clip((x_t - sqrt(1 - abar_t) eps)/sqrt(abar_t));
    x_{t-1} = [sqrt(abar_{t-1}) (1 - alpha_t) x_0 + sqrt(alpha_t) (1 - abar_{t-1}) x_t] / (1 - abar_t) + sqrt(beta_t) z, no z at t = 1.

    Args:
        predict: (x_t (..., D), t) -> predicted noise (..., D).
        noise: (T, ..., D) standard normal: `noise[0]` starts the chain, `noise[k]` is added after the k-th step.
        clip: bound on the predicted x_0; None for no clipping.
    """
    if len(noise) != schedule.steps:
        raise ValueError(f"noise has {len(noise)} slices, valid: {schedule.steps}, one a step")
    alpha, alpha_bar, beta = (table.tolist() for table in (schedule.alpha, schedule.alpha_bar, schedule.beta))
    x = noise[0]
    for t in range(schedule.steps, 0, -1):
        clean = clean_from_noise(schedule, x, t, predict(x, t))
        if clip is not None:
            clean = clean.clamp(-clip, clip)
        remaining = 1.0 - alpha_bar[t]
        x = (alpha_bar[t - 1] ** 0.5 * beta[t] / remaining) * clean + (alpha[t] ** 0.5 * (1.0 - alpha_bar[t - 1]) / remaining) * x
        if t > 1:
            x = x + beta[t] ** 0.5 * noise[schedule.steps - t + 1]
    return x


def ddim_sample(
    predict: PredictNoise, schedule: Schedule, noise: Tensor, *, steps: Sequence[int] | int, clip: float | None = 1.0
) -> Tensor:
    """Deterministic DDIM (arXiv 2010.02502 eq. 12 with sigma = 0) through any subset of the steps; differentiable.

    From a visited step t to the next visited one s: x_s = sqrt(abar_s) x_0 + sqrt(1 - abar_s) eps. Both levels are cumulative, so
    skipped steps are accounted for; with clipping, eps is recomputed from the clipped x_0.

    Args:
        noise: (..., D) standard normal start of the chain.
        steps: the visited steps, falling, in 1 .. T; or how many, spread evenly from T on.
    """
    total = schedule.steps
    visited = [total - (k * total) // steps for k in range(steps)] if isinstance(steps, int) else list(steps)
    if not visited or visited != sorted(set(visited), reverse=True) or visited[0] > total or visited[-1] < 1:
        raise ValueError(f"DDIM steps {visited}, valid: falling, without repeats, within 1..{total}")
    x = noise
    for t, s in zip(visited, [*visited[1:], 0], strict=True):
        eps = predict(x, t)
        clean = clean_from_noise(schedule, x, t, eps)
        if clip is not None:
            clean = clean.clamp(-clip, clip)
            eps = noise_from_clean(schedule, x, t, clean)
        x = schedule.signal[s] * clean + schedule.noise[s] * eps
    return x
