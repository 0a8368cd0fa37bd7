"""The two-dimensional bandit of the paper's toy experiment: a multimodal behaviour, a known reward, and no states.

Three Gaussians (std 0.1, 400 actions each); reward -||a - (0.4, -0.4)|| with noise. The best point lies outside the data, two modes
are equally good and one is bad: a policy that stays in the data keeps both good modes, which no unimodal actor can.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from rl_core.contract import Action, Channel, RobotContract
from rl_core.dac.config import DACConfig
from rl_core.dac.learner import DACLearner
from rl_core.models import MLP
from rl_core.training.seeding import torch_generator

MODES = torch.tensor([[-0.6, 0.6], [0.4, 0.4], [-0.4, -0.4]])
MODE_STD = 0.1
BEST = torch.tensor([0.4, -0.4])
REWARD_NOISE = 0.5
SAMPLES = 10_000

CONTRACT = RobotContract(
    robot="bandit",
    observation=(Channel(name="context", names=("zero",)),),
    action=Action(names=("x", "y"), meaning="absolute", space="end_effector", scale=(1.0, 1.0), units=("1", "1")),
)


def reward(action: Tensor) -> Tensor:
    """Noise-free reward of actions (..., 2)."""
    return -(action - BEST).norm(dim=-1)


def make_data(generator: torch.Generator, *, per_mode: int = 400) -> tuple[Tensor, Tensor]:
    """Actions (N, 2) of the three modes and their noisy rewards (N,)."""
    centres = MODES.repeat_interleave(per_mode, dim=0)
    action = centres + MODE_STD * torch.randn(centres.shape, generator=generator)
    return action, reward(action) + REWARD_NOISE * torch.randn(len(action), generator=generator)


@dataclass(frozen=True, kw_only=True)
class BanditFigures:
    """What a policy does, from `SAMPLES` actions.

    Attributes:
        support: share of samples within 3 std of a mode.
        modes: share of samples in each mode, in the order of `MODES`.
        reward: mean noise-free reward; None where the chain of some samples left all numbers (unclipped denoised guidance can).
        seconds_per_update: wall time of training.
    """

    support: float
    modes: tuple[float, ...]
    reward: float | None
    seconds_per_update: float


def judge(samples: Tensor, seconds_per_update: float) -> BanditFigures:
    """The figures of samples (N, 2)."""
    distance, mode = torch.cdist(samples, MODES).min(dim=1)
    inside = distance <= 3 * MODE_STD
    shares = tuple(float((inside & (mode == k)).float().mean()) for k in range(len(MODES)))
    mean = float(reward(samples).mean())
    return BanditFigures(
        support=float(inside.float().mean()),
        modes=shares,
        reward=mean if math.isfinite(mean) else None,
        seconds_per_update=seconds_per_update,
    )


def train(config: DACConfig, *, updates: int, seed: int) -> BanditFigures:
    """Trains DAC on the bandit and judges single draws of its online actor."""
    generator = torch_generator(seed, "bandit")
    action, rewards = make_data(generator)
    learner = DACLearner(config, CONTRACT, seed=seed)
    batch = TensorDict({"observation": torch.zeros(config.batch_size, 1), "terminal": torch.ones(config.batch_size)}, [config.batch_size])
    batch["next_observation"] = batch["observation"]
    started = time.perf_counter()
    for _ in range(updates):
        rows = torch.randint(len(action), (config.batch_size,), generator=generator)
        batch["action"], batch["reward"] = action[rows], rewards[rows]
        learner.update(batch)
    seconds = (time.perf_counter() - started) / updates
    with torch.no_grad():
        noise = torch.randn(SAMPLES, config.diffusion_steps, 1, 2, generator=generator)
        samples = learner.policy().candidates(torch.zeros(SAMPLES, 1), noise).squeeze(1)
    return judge(samples, seconds)


class GaussianActor(nn.Module):
    """A Gaussian policy for comparison: mean and deviation from an MLP."""

    def __init__(self, hidden: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        self.net = MLP(1, 4, hidden, xavier=True, generator=generator)

    def forward(self, observation: Tensor) -> torch.distributions.Normal:
        """Observations (B, 1) -> distribution over actions (B, 2)."""
        mean, log_std = self.net(observation).chunk(2, dim=-1)
        return torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())


def train_gaussian(config: DACConfig, *, updates: int, seed: int) -> BanditFigures:
    """A Gaussian actor on the same data with the same critic: minimises -eta log pi(a|s) - mean Q(s, a') / C, a' ~ pi."""
    generator = torch_generator(seed, "bandit")
    action, rewards = make_data(generator)
    critic = DACLearner(config.override(guidance="none", diffusion_steps=1), CONTRACT, seed=seed)
    actor = GaussianActor(config.actor_hidden, torch_generator(seed, "gaussian"))
    optimizer = torch.optim.Adam(actor.parameters(), lr=config.actor_lr, fused=True)
    observation = torch.zeros(config.batch_size, 1)
    started = time.perf_counter()
    for _ in range(updates):
        rows = torch.randint(len(action), (config.batch_size,), generator=generator)
        batch = TensorDict({"observation": observation, "action": action[rows], "reward": rewards[rows]}, [config.batch_size])
        batch["next_observation"], batch["terminal"] = observation, torch.ones(config.batch_size)
        critic.update(batch)
        policy = actor(observation)
        drawn = policy.loc + policy.scale * torch.randn(policy.loc.shape, generator=generator)
        scale = critic.critic_target(observation, action[rows]).abs().mean()
        value = critic.critic_target(observation, drawn).mean(0)
        loss = -config.eta * policy.log_prob(action[rows]).mean() - (value / (scale + 1e-6)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = (time.perf_counter() - started) / updates
    with torch.no_grad():
        policy = actor(torch.zeros(SAMPLES, 1))
        samples = policy.loc + policy.scale * torch.randn(SAMPLES, 2, generator=generator)
    return judge(samples, seconds)


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """One run of docs/methods/dac.md's bandit table: `actor` (diffusion, gaussian), `updates`, `dac` (changes to the bandit preset)."""
    torch.set_num_threads(1)
    settings = DACConfig.preset("bandit").override(**config.get("dac", {}))
    function = train_gaussian if config.get("actor", "diffusion") == "gaussian" else train
    figures = function(settings, updates=config["updates"], seed=seed)
    bad, good, also_good = figures.modes
    return {
        "support": figures.support,
        "bad_mode": bad,
        "smaller_good_mode": min(good, also_good),
        "larger_good_mode": max(good, also_good),
        "reward": figures.reward,
        "ms_per_update": figures.seconds_per_update * 1e3,
    }
