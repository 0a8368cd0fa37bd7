"""The forward process and the change between what a network may predict: noise, clean sample or velocity.

In all functions `t` is a step number or a tensor of them (...) whose shape matches the samples (..., D) but for the last dimension.
"""

from __future__ import annotations

from torch import Tensor

from rl_core.models.diffusion.schedule import Schedule


def _levels(schedule: Schedule, t: Tensor | int) -> tuple[Tensor, Tensor]:
    return schedule.signal[t].unsqueeze(-1), schedule.noise[t].unsqueeze(-1)


def q_sample(schedule: Schedule, clean: Tensor, t: Tensor | int, noise: Tensor) -> Tensor:
    """x_t = sqrt(alpha_bar_t) clean + sqrt(1 - alpha_bar_t) noise (DDPM eq. 4, arXiv 2006.11239); not clipped."""
    signal, level = _levels(schedule, t)
    return signal * clean + level * noise


def clean_from_noise(schedule: Schedule, x: Tensor, t: Tensor | int, noise: Tensor) -> Tensor:
    """x_0 = (x_t - sqrt(1 - alpha_bar_t) noise) / sqrt(alpha_bar_t)."""
    signal, level = _levels(schedule, t)
    return (x - level * noise) / signal


def noise_from_clean(schedule: Schedule, x: Tensor, t: Tensor | int, clean: Tensor) -> Tensor:
    """The noise that takes `clean` to x_t at step t >= 1."""
    signal, level = _levels(schedule, t)
    return (x - signal * clean) / level


def noise_from_velocity(schedule: Schedule, x: Tensor, t: Tensor | int, velocity: Tensor) -> Tensor:
    """Noise from v = sqrt(alpha_bar) noise - sqrt(1 - alpha_bar) x_0 (arXiv 2202.00512 appendix D)."""
    signal, level = _levels(schedule, t)
    return signal * velocity + level * x
