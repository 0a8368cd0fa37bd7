"""Samplers: small seeded objects that turn stored data into batches. Each is a `Source` (see `rl_core.training.protocols`)."""

from rl_core.data.samplers.base import Sampler
from rl_core.data.samplers.hindsight import HindsightSampler
from rl_core.data.samplers.mixture import WeightedMixture
from rl_core.data.samplers.transitions import EpochSampler, UniformSampler
from rl_core.data.samplers.windows import RolloutSampler, WindowSampler

__all__ = ["EpochSampler", "HindsightSampler", "RolloutSampler", "Sampler", "UniformSampler", "WeightedMixture", "WindowSampler"]
