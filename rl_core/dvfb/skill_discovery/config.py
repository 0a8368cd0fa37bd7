"""Configuration of skill discovery. Source: [URLB] github.com/rll-research/url_benchmark, [here] this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rl_core.training.config import Config


@dataclass(frozen=True, kw_only=True)
class SkillDiscoveryConfig(Config):
    """Hyperparameters; defaults of URLB."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cpu": {
            "hidden": 256,
            "feature": 128,
            "batch_size": 256,
            "lr": 3e-4,
            "random_steps": 1_000,
            "skill_steps": 75,
            "replay_size": 200_000,
        },
    }

    algorithm: Literal["diayn", "cic", "aps"] = "diayn"
    """Which method."""
    z_dim: int = 16
    """Size of a skill: number of DIAYN's skills [URLB: DIAYN 16, CIC 64, APS 10]."""
    hidden: int = 1024
    """Width of hidden layers [URLB]."""
    feature: int = 512
    """Width of the trunks' outputs in the actor [here: as DVFB's]."""
    batch_size: int = 1024
    """Transitions in a batch [URLB]."""
    lr: float = 1e-4
    """Adam's learning rate of all networks [URLB]."""
    gamma: float = 0.99
    """Discount [URLB]."""
    tau: float = 0.01
    """Rate of the target critic's moving average [URLB]."""
    temperature: float = 0.5
    """Temperature of CIC's contrastive loss [URLB]."""
    neighbours: int = 12
    """Neighbours of the particle entropy of CIC and APS [URLB: CIC 16, APS 12]."""
    action_std: float = 0.2
    """Standard deviation of the noise on actions [URLB]."""
    action_clip: float = 0.3
    """Bound on that noise inside the updates [URLB]."""
    skill_steps: int = 50
    """World steps with one skill [URLB]."""
    replay_size: int = 1_000_000
    """Transitions kept [URLB]."""
    random_steps: int = 4_000
    """World steps with random actions before the first update [URLB]."""
    steps_per_update: int = 2
    """World steps before each update [URLB]."""
    n_envs: int = 1
    """Worlds stepped in turn."""
    carried_states: int = 10_000
    """Transitions without rewards that the bundle carries, for inference."""

    def __post_init__(self) -> None:
        self.require_least(z_dim=2, hidden=1, feature=1, batch_size=2, neighbours=1, n_envs=1, skill_steps=1, replay_size=1)
        self.require_least(random_steps=1, steps_per_update=1, carried_states=1, action_std=0, action_clip=0)
        self.require_above_zero("lr", "temperature", "tau", "gamma")

    def draw(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """A skill (d,) of norm sqrt(d): one of d directions for DIAYN, any direction for the others."""
        direction = np.eye(self.z_dim)[rng.integers(self.z_dim)] if self.algorithm == "diayn" else rng.normal(size=self.z_dim)
        return (np.sqrt(self.z_dim) * direction / np.linalg.norm(direction)).astype(np.float32)
