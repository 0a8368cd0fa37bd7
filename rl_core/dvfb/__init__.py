"""Dual-Value Forward-Backward representation (Sun et al., ICLR 2025): reward-free pre-training, zero-shot inference, fine-tuning."""

from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.learner import DVFBLearner
from rl_core.dvfb.policy import DVFBPolicy, policy_from_bundle

__all__ = ["DVFBConfig", "DVFBLearner", "DVFBPolicy", "policy_from_bundle"]
