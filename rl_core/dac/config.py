"""DAC's configuration. The defaults are the paper's; sources: [paper] arXiv 2405.20555, [code] github.com/Fang-Lin93/DAC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rl_core.training.config import Config, ConfigError

Guidance = Literal["soft", "hard", "denoised", "none"]


@dataclass(frozen=True, kw_only=True)
class DACConfig(Config):
    """Hyperparameters of DAC; `DACConfig()` is the paper's setting for D4RL locomotion."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cpu": {
            "batch_size": 128,
            "heads": 5,
            "next_actions": 4,
            "actor_hidden": (128, 128),
            "critic_hidden": (128, 128),
            "actor_lr": 1e-3,
            "critic_lr": 1e-3,
            "lr_decay_steps": 0,
            "ema_start": 200,
            "normalize_observations": True,
        },
        # Lift at 20 Hz: a shorter horizon, since one step of 50 ms changes the value little.
        "demo": {
            "batch_size": 128,
            "heads": 4,
            "next_actions": 2,
            "actor_hidden": (128, 128),
            "critic_hidden": (128, 128),
            "eta": 0.5,
            "eta_lr": 0.0,
            "gamma": 0.97,
            "actor_lr": 1e-3,
            "critic_lr": 1e-3,
            "lr_decay_steps": 20_000,
            "critic_ema_rate": 0.01,
            "ema_start": 200,
            "normalize_observations": True,
            "scale_actions": True,
        },
        "bandit": {
            "batch_size": 128,
            "heads": 5,
            "next_actions": 1,
            "action_candidates": 1,
            "diffusion_steps": 50,
            "clip_denoised": False,
            "actor_hidden": (64, 64, 64),
            "critic_hidden": (64, 64, 64),
            "actor_lr": 1e-3,
            "critic_lr": 1e-3,
            "lr_decay_steps": 0,
            "gamma": 0.0,
            "eta_lr": 1e-2,
            "bc_threshold": 1.3,
            "ema_start": 10,
            "reward_scaling": "none",
        },
    }

    batch_size: int = 256
    """Transitions in a batch [code]."""
    actor_hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the noise network's hidden layers [code]."""
    critic_hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of each critic head's hidden layers [code]."""
    heads: int = 10
    """H, critics in the ensemble; 5 or more are stable [paper]."""
    diffusion_steps: int = 5
    """T; 5 for control, 20 or more where several narrow modes matter [code]."""
    beta_min: float = 0.1
    """Lower end of the variance-preserving schedule [code]."""
    beta_max: float = 10.0
    """Upper end of the variance-preserving schedule [code]."""
    clip_denoised: bool = True
    """Clip the predicted clean action to [-1, 1] at every reverse step [code]."""
    next_actions: int = 10
    """N_q, actions drawn at the next state for the critic's target [code]."""
    action_candidates: int = 10
    """N_a, actions drawn at run time, of which the best by mean target Q is taken [code]."""
    guidance: Guidance = "soft"
    """How Q enters: soft (gradient scaled by the noise level), hard (not scaled), denoised (value of a full chain), none (BC) [paper]."""
    eta: float = 1.0
    """Initial weight of behaviour cloning against Q; half the temperature of the KL constraint [code]."""
    eta_lr: float = 1e-3
    """Step size of the dual ascent on eta; 0 keeps eta fixed [code]."""
    eta_min: float = 1e-3
    """Lower bound on eta [code]."""
    eta_max: float = 100.0
    """Upper bound on eta [code]."""
    bc_threshold: float = 1.0
    """b, the noise-prediction error per dimension allowed before eta rises; 1 is a weak constraint, 0.05-0.1 a strong one [code]."""
    rho: float = 1.0
    """Standard deviations over heads that are subtracted in the lower confidence bound; 0 is the ensemble mean [code]."""
    target: Literal["lcb", "min"] = "lcb"
    """How heads are joined in the target: lower confidence bound, or the minimum (ablation) [paper]."""
    next_value: Literal["mean", "max"] = "mean"
    """How the N_q actions are joined inside each head: mean, or max (AntMaze) [code]."""
    gamma: float = 0.99
    """Discount; 0 makes a bandit of it [code]."""
    actor_lr: float = 3e-4
    """Adam's learning rate for the noise network [code]."""
    critic_lr: float = 3e-4
    """Adam's learning rate for the critics [code]."""
    lr_decay_steps: int = 2_000_000
    """Updates over which both rates fall to 0 along a cosine; 0 keeps them constant [code]."""
    max_grad_norm: float = 1.0
    """Global norm that gradients are clipped to, over all heads jointly; 0 = no clipping [code]."""
    critic_ema_rate: float = 0.005
    """Rate of the target critic's moving average, every update [code]."""
    actor_ema_rate: float = 0.005
    """Rate of the target actor's moving average [code]."""
    actor_ema_every: int = 5
    """Updates between two steps of the target actor's average [code]."""
    ema_start: int = 1000
    """Updates before the target actor starts to move; until then it is the initial network [code]."""
    reward_scaling: Literal["none", "return_range"] = "return_range"
    """return_range: rewards times 1000 / (largest - smallest episode return), the flag iql_locomotion [code]."""
    normalize_observations: bool = False
    """Standardise observations with the dataset's statistics; the paper does not [code]."""
    scale_actions: bool = False
    """Map each action dimension's range in the dataset onto [-1, 1] for the networks. D4RL's actions fill that range; where a dataset's
    fill a tenth of it, the chain's noise is ten times too coarse and Q is asked far outside the data [here]."""
    runtime: Literal["torch", "numpy"] = "torch"
    """What computes the actions of a loaded bundle; `rl_core.dac.export` sets numpy, which is faster for one robot."""

    def __post_init__(self) -> None:
        self.require_least(batch_size=1, actor_hidden=1, critic_hidden=1, heads=1, diffusion_steps=1)
        self.require_least(next_actions=1, action_candidates=1, actor_ema_every=1)
        self.require_least(rho=0, eta_lr=0, lr_decay_steps=0, max_grad_norm=0, ema_start=0)
        self.require_above_zero("actor_lr", "critic_lr")
        if not 0 < self.eta_min <= self.eta <= self.eta_max:
            raise ConfigError(f"DACConfig.eta: {self.eta}, valid: eta_min ({self.eta_min}) .. eta_max ({self.eta_max})")
        if not 0 <= self.gamma < 1:
            raise ConfigError(f"DACConfig.gamma: {self.gamma}, valid: 0 <= gamma < 1")
