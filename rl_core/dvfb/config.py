"""Configuration of DVFB. Sources: [code] github.com/bofusun/DVFB, [FB] facebookresearch/controllable_agent, [here] this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rl_core.training.config import Config, ConfigError

Variant = Literal["full", "fb_rnd", "fb_only", "sf_laplacian"]
Goal = Literal["canonical", "pair", "pair_compat"]
Neighbours = Literal["nearest", "farthest"]


@dataclass(frozen=True, kw_only=True)
class DVFBConfig(Config):
    """Hyperparameters of reward-free pre-training; the defaults are the authors' (`paper`), `cpu` fits two cores."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "cpu": {
            "z_dim": 32,
            "hidden": 256,
            "feature": 128,
            "backward_hidden": 128,
            "novelty_features": 128,
            "novelty_window": 1_000,
            "exploration_weight": 32.0,
            "batch_size": 256,
            "lr": 3e-4,
            "random_steps": 1_000,
            "skill_steps": 75,
            "replay_size": 200_000,
        },
    }

    variant: Variant = "full"
    """full: skill value, novelty and contrastive entropy; fb_rnd: without contrastive entropy; fb_only: without any exploration value;
    sf_laplacian: successor features over Laplacian features in place of FB, without exploration value [code: agents of their own]."""
    goal: Goal = "canonical"
    """What B sees: canonical (s'), pair (s, s'), pair_compat (online (s, s''), target (s', s''), as the authors' code) [FB; code]."""
    goal_channels: tuple[str, ...] = ()
    """Observation channels of them that B sees, such as eef_pos where all tasks are about the hand's place; all if empty. The fewer
    numbers it sees, the finer d tells them apart, and rewards on others cannot be inferred [FB: goal space]."""
    z_dim: int = 50
    """d, size of z, F and B [code]."""
    hidden: int = 1024
    """Width of the hidden layers of actor, F, exploration critic, novelty and contrastive networks [code]."""
    feature: int = 512
    """Width of the trunks' outputs in actor and F [code]."""
    backward_hidden: int = 526
    """Width of B's hidden layers [code]."""
    novelty_features: int = 512
    """Outputs of the random network and of its predictor [code]."""
    novelty_window: int = 0
    """Batches over which the novelty's error gets its deviation; 0 = all. Where the predictor learns fast, as small ones do, the first
    errors else rule the deviation, and the novelty vanishes beside the skill value [code: all; here]."""
    batch_size: int = 1024
    """Transitions in a batch, and goals; below about 256 the estimate over pairs is noisy [code]."""
    lr: float = 1e-4
    """Adam's learning rate of all networks [code]."""
    gamma: float = 0.99
    """Discount [code]."""
    tau: float = 0.01
    """Rate of the target networks' moving average [code]."""
    mix_ratio: float = 0.5
    """Share of a batch's z that are B of another of its rows instead of drawn from the sphere [code]."""
    ortho_coef: float = 1.0
    """Weight of the orthonormality loss [code]."""
    q_loss_coef: float = 0.01
    """Weight of the auxiliary loss on F.z; 0 leaves it out, as FB does [code]."""
    exploration_weight: float = 50.0
    """alpha, weight of the exploration value in the actor's objective; about z_dim balances both values [code]."""
    contrastive_weight: float = 0.5
    """Weight of the contrastive entropy against the novelty in the intrinsic reward [code]."""
    temperature: float = 1.0
    """Temperature of the contrastive loss [code]."""
    neighbours: int = 12
    """Skills of the batch over which the contrastive entropy averages [code]."""
    neighbour_kind: Neighbours = "nearest"
    """nearest: a particle estimate of entropy; farthest: what the authors' code picks [here; code]."""
    action_std: float = 0.2
    """Standard deviation of the noise on actions, collected and inside the updates [code]."""
    action_clip: float = 0.3
    """Bound on that noise inside the updates [code]."""
    skill_steps: int = 300
    """World steps with one z while collecting; a new episode begins with a new one [code]."""
    replay_size: int = 1_000_000
    """Transitions kept [code]."""
    random_steps: int = 4_000
    """World steps with random actions before the first update [code]."""
    steps_per_update: int = 2
    """World steps before each update [code]."""
    n_envs: int = 1
    """Worlds stepped in turn; `pair_compat` knows the second next state only while all of their episodes last equally long [here]."""
    carried_states: int = 10_000
    """Transitions without rewards that the bundle carries, for inference [code: 10 000 inference steps]."""

    def __post_init__(self) -> None:
        self.require_least(z_dim=2, hidden=1, feature=1, backward_hidden=1, novelty_features=1, batch_size=2, neighbours=1, n_envs=1)
        self.require_least(
            novelty_window=0, ortho_coef=0, q_loss_coef=0, exploration_weight=0, contrastive_weight=0, action_std=0, action_clip=0
        )
        self.require_least(skill_steps=1, replay_size=1, random_steps=1, steps_per_update=1, carried_states=1)
        self.require_above_zero("lr", "temperature")
        for name in ("gamma", "mix_ratio"):
            if not 0 <= getattr(self, name) <= 1 or name == "gamma" and self.gamma == 1:
                raise ConfigError(f"DVFBConfig.{name}: {getattr(self, name)}, valid: 0 <= {name} {'<' if name == 'gamma' else '<='} 1")
        if self.variant == "sf_laplacian" and self.goal != "canonical":
            raise ConfigError(f"DVFBConfig.goal: {self.goal!r} with variant 'sf_laplacian', valid: canonical")
        if not 0 < self.tau <= 1:
            raise ConfigError(f"DVFBConfig.tau: {self.tau}, valid: 0 < tau <= 1")

    @property
    def explores(self) -> bool:
        """There is an exploration value."""
        return self.variant in ("full", "fb_rnd")

    @property
    def contrasts(self) -> bool:
        """The intrinsic reward has the contrastive entropy."""
        return self.variant == "full"
