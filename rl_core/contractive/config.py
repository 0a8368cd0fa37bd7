"""Configuration of contractive policies. Sources: [paper] arXiv 2412.07544, [code] github.com/aminabyaneh/scds-contractive-imitation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rl_core.training.config import Config, ConfigError

Dynamics = Literal["discrete", "continuous", "unconstrained"]
Lift = Literal["exact", "linear"]


@dataclass(frozen=True, kw_only=True)
class ContractiveConfig(Config):
    """Hyperparameters; the defaults are this package's (exact lift, clamped bijection, jittered starts), `paper_code` is the authors'."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cpu": {"lr_decay_steps": 3_000},
        "continuous": {"dynamics": "continuous", "c": 6.0, "latent": 16, "lr_decay_steps": 2_000},
        "paper_code": {
            "latent": 64,
            "c": 1.5,
            "blocks": 8,
            "block_width": 8,
            "log_scale": 0.0,
            "lift": "linear",
            "jitter_copies": 0,
            "conditioning": 0.0,
            "end_weight": 0.0,
        },
    }

    batch_size: int = 16
    """Demonstrations in a batch; with fewer demonstrations every batch holds them all [code]."""
    dynamics: Dynamics = "discrete"
    """REN in discrete time, in continuous time, or a recurrent network without any constraint (ablation) [code]."""
    latent: int = 32
    """n_x, size of the latent state [code: 64]."""
    neurons: int = 2
    """n_v, tanh neurons of the REN, evaluated one after the other [code]."""
    c: float = 1.05
    """Guaranteed decay: V falls by 1/c in each step (discrete, 1 or more); V' <= -c V, the motion taking unit time (continuous) [code]."""
    horizon: int = 50
    """Points of a motion, its start and end included; demonstrations are resampled to them [code]."""
    blocks: int = 4
    """Coupling layers of the bijection; 0 leaves it out [code: 4 or 8]."""
    block_width: int = 16
    """Width of a coupling layer's two hidden layers [code: the number of blocks]."""
    log_scale: float = 0.3
    """Largest log-scale of a coupling layer, s -> a tanh(s / a); 0 = no clamp, with which the exact lift can fail out of sample [here]."""
    lift: Lift = "exact"
    """From a measured state to a latent one: exact inverts the decoder; linear ignores the bijection, overwrites y(0) [code: linear]."""
    jitter_copies: int = 6
    """Copies of each start that are trained from jittered starts towards the demonstration [here; code: 0]."""
    push_copies: int = 0
    """Pushes of each motion, anywhere on its way and as far as the jitter, from which it is trained to come back: for an arm that
    may be pushed. The motion itself is then fitted less closely [here; code: 0]."""
    jitter: float = 0.2
    """Half-width of the jitter, in units of the motion's size; also the margin of the certified region around the demonstrations [here]."""
    jitter_skip: int = 8
    """First points after jitter or push that are left out of the loss [here]."""
    loss: Literal["mse", "soft_dtw"] = "mse"
    """mse: demonstrations stretched to equal duration; soft_dtw: each in its own time, by the normalised soft-DTW divergence [code]."""
    soft_dtw_gamma: float = 0.1
    """Smoothing of soft-DTW [code]."""
    conditioning: float = 1e-4
    """Weight of log k^2, k >= |C S^(-1/2)| |S^(1/2) C+| being how much the latent system may amplify a deviation. Without it the bound on
    a motion from elsewhere grows with training until it says nothing [here; code: 0]."""
    end_weight: float = 1.0
    """Weight of the squared distance from the goal at the end of all rollouts, on top of the imitation loss [here; code: 0]."""
    lr: float = 1e-2
    """Adam's learning rate [code]."""
    lr_decay_steps: int = 15_000
    """Updates over which the rate falls to 0 along a cosine; 0 keeps it constant [code: linear to 1e-4]."""
    max_grad_norm: float = 1.0
    """Global norm that gradients are clipped to; 0 = no clipping [here]."""
    goal_channel: str = ""
    """Observation channel that says where a motion ends, e.g. an object's position; read when an episode begins. Empty = where the
    demonstrations end, on average [here]."""
    lag: int = 0
    """Periods from asking for a position until it is measured; the state measured now is compared with what was asked for then [here]."""

    def __post_init__(self) -> None:
        self.require_least(batch_size=1, latent=1, neurons=1, horizon=3, blocks=0, block_width=1, log_scale=0)
        self.require_least(
            jitter_copies=0, push_copies=0, jitter=0, jitter_skip=0, conditioning=0, end_weight=0, lr_decay_steps=0, max_grad_norm=0, lag=0
        )
        self.require_above_zero("lr", "soft_dtw_gamma")
        self.require_least(c=1 if self.dynamics == "discrete" else 0)
        if (self.jitter_copies or self.push_copies) and self.jitter_skip > self.horizon - 2:
            raise ConfigError(f"ContractiveConfig.jitter_skip: {self.jitter_skip}, valid: 0..horizon - 2 ({self.horizon - 2})")
