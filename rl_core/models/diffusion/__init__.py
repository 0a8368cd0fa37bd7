"""Denoising diffusion: schedule (noise levels), process (adding and reading noise), samplers, and a noise network, each apart."""

from rl_core.models.diffusion.noise_mlp import Denoiser, NoiseMLP
from rl_core.models.diffusion.process import clean_from_noise, noise_from_clean, noise_from_velocity, q_sample
from rl_core.models.diffusion.samplers import ancestral_sample, ddim_sample
from rl_core.models.diffusion.schedule import Schedule, cosine_schedule, vp_schedule

__all__ = [
    "Denoiser",
    "NoiseMLP",
    "Schedule",
    "ancestral_sample",
    "clean_from_noise",
    "cosine_schedule",
    "ddim_sample",
    "noise_from_clean",
    "noise_from_velocity",
    "q_sample",
    "vp_schedule",
]
