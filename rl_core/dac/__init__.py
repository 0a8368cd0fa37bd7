"""Diffusion Actor-Critic (Fang et al., ICLR 2025, arXiv 2405.20555): offline RL as a noise regression shifted by the Q-gradient."""

from rl_core.dac.config import DACConfig
from rl_core.dac.learner import DACLearner
from rl_core.dac.policy import DACPolicy, policy_from_bundle

__all__ = ["DACConfig", "DACLearner", "DACPolicy", "policy_from_bundle"]
