"""Configuration of fine-tuning after DVFB's pre-training. Source: [code] github.com/bofusun/DVFB, [here] this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rl_core.training.config import Config, ConfigError


@dataclass(frozen=True, kw_only=True)
class FineTuneConfig(Config):
    """Hyperparameters; networks have the pre-training's sizes."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "cpu": {"batch_size": 256, "lr": 3e-4, "task_weight": 32.0, "still_steps": 1_000},
    }
    UPDATES: ClassVar[Mapping[str, int]] = {"default": 50_000, "paper": 50_000, "cpu": 10_000}

    skill_value: bool = True
    """The actor also follows the frozen skill value F.z; False is an ablation [code]."""
    reward_mapping: bool = True
    """The task's rewards are brought to the scale of the reward that z asks for; False is an ablation [code]."""
    reward_scale: float = 1.0
    """Factor on the task's rewards, as a task in other units has it; reward mapping undoes it [here]."""
    task_weight: float = 50.0
    """Weight of the task's value in the actor's objective, against the skill value [code]."""
    batch_size: int = 1024
    """Transitions in a batch [code]."""
    lr: float = 1e-4
    """Adam's learning rate of actor and critic [code]."""
    gamma: float = 0.99
    """Discount [code]."""
    tau: float = 0.01
    """Rate of the target critic's moving average [code]."""
    action_std: float = 0.2
    """Standard deviation of the noise on actions, collected and inside the updates [code]."""
    action_clip: float = 0.3
    """Bound on that noise inside the updates [code]."""
    still_steps: int = 4_000
    """World steps at the start under the zero-shot policy and its noise, without updates [code]."""
    steps_per_update: int = 2
    """World steps before each update [code]."""
    replay_size: int = 100_000
    """Transitions kept [here: all of the authors' 100 000 steps]."""
    n_envs: int = 1
    """Worlds stepped in turn."""

    def __post_init__(self) -> None:
        self.require_least(batch_size=2, task_weight=0, action_std=0, action_clip=0, still_steps=0)
        self.require_least(steps_per_update=1, replay_size=1, n_envs=1)
        self.require_above_zero("lr", "reward_scale")
        if not 0 <= self.gamma < 1:
            raise ConfigError(f"FineTuneConfig.gamma: {self.gamma}, valid: 0 <= gamma < 1")
        if not 0 < self.tau <= 1:
            raise ConfigError(f"FineTuneConfig.tau: {self.tau}, valid: 0 < tau <= 1")
