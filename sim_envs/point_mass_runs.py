"""Does a diffusion actor keep both ways round an obstacle? Demonstrations, training and figures for `PointMassFork`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.data.episode import Dataset, Episode
from rl_core.methods import load_policy
from rl_core.training.evaluation import evaluation_seeds
from rl_core.training.rollout import rollout
from rl_core.training.run import train
from rl_core.training.seeding import numpy_generator
from rl_core.training.worlds import make_world
from sim_envs.point_mass import CONTRACT, GOAL, OBSTACLE, OBSTACLE_RADIUS, PERIOD_S, START

WORLD = "armstack/PointMassFork-v0"
CLEARANCE = 0.25
"""Distance at which demonstrations pass the obstacle, metres."""
DRAWS = 2000


def demonstrations(episodes: int, *, seed: int, noise: float = 0.08) -> Dataset:
    """`episodes` demonstrations, every other one to the left; unit steps towards the side of the obstacle, then to the goal, with noise."""
    env, random = make_world(WORLD), numpy_generator(seed, "fork")
    collected = []
    for index in range(episodes):
        side = -1.0 if index % 2 == 0 else 1.0
        collected.append(_demonstration(env, side, 100_000 + index, random, noise))
    env.close()
    return Dataset(contract=CONTRACT, episodes=tuple(collected), source=f"fork demonstrations, seed {seed}")


def _demonstration(env: Any, side: float, seed: int, random: np.random.Generator, noise: float) -> Episode:
    corner = OBSTACLE + np.array([side * (OBSTACLE_RADIUS + CLEARANCE), -0.1])
    observation, _ = env.reset(seed=seed)
    positions: list[NDArray[Any]] = [observation["position"]]
    actions: list[NDArray[Any]] = []
    rewards: list[float] = []
    passed = terminated = truncated = False
    info: dict[str, Any] = {}
    while not (terminated or truncated):
        position = positions[-1].astype(np.float64)
        passed = passed or position[1] > corner[1] - 0.05
        way = (GOAL if passed else corner) - position
        action = np.clip(way / np.linalg.norm(way) + noise * random.normal(size=2), -1.0, 1.0).astype(np.float32)
        observation, reward, terminated, truncated, info = env.step(action)
        positions.append(observation["position"])
        actions.append(action)
        rewards.append(reward)
    return Episode(
        observations={"position": np.stack(positions)},
        actions=np.stack(actions),
        rewards=np.asarray(rewards, np.float32),
        terminal=terminated,
        truncated=truncated,
        stamps_ns=np.arange(len(positions), dtype=np.int64) * int(PERIOD_S * 1e9),
        success=bool(info["success"]),
        uuid=f"{seed:032x}",  # the same in every process, so that a run that was cut knows its data
        meta={"seed": seed, "side": side},
    )


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains `config["method"]` on the demonstrations; shares of draws to each side at the fork, and collisions of whole episodes.

    Args:
        config: `method`, `preset`, `overrides`, `updates`, `demonstrations` (number of episodes).
        seed: of the training; the demonstrations are the same for all.
        run_dir: where it works; a run that was cut goes on from its checkpoint.
    """
    data = demonstrations(config["demonstrations"], seed=0)
    trainer = {"updates": config["updates"], "log_every": 500, "checkpoint_every": 2000, "seed": seed}
    options = {"preset": config["preset"], "overrides": config.get("overrides", {})}
    result = train(config["method"], data, run_dir, trainer=trainer, resume=True, **options)
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    figures = {f"{key}_at_fork": value for key, value in _sides(result.bundle).items()}
    policy = load_policy(result.bundle)
    envs, seeds = [make_world(WORLD) for _ in range(10)], evaluation_seeds(1, 200)
    ends = [step.info for step in rollout(policy, envs, seeds) if step.done]
    figures["collision_rate"] = float(np.mean([info["collision"] for info in ends]))
    figures["success_rate"] = float(np.mean([info["success"] for info in ends]))
    figures["data_return_left"], figures["data_return_right"] = (
        float(np.mean([e.episode_return for e in data.episodes if e.meta["side"] == side])) for side in (-1.0, 1.0)
    )
    return figures


def _sides(folder: Path) -> dict[str, float]:
    """Shares of single draws at the fork that head left, right, or straight into the obstacle (within half its radius of the centre)."""
    bundle = Bundle.load(folder)
    config = {**bundle.config, "action_candidates": 1} if "action_candidates" in bundle.config else bundle.config
    policy = load_policy(dataclasses.replace(bundle, config=config))
    state = policy.reset(range(DRAWS))
    position = torch.tensor(START, dtype=torch.float32).expand(DRAWS, -1)
    chunk, _ = policy.act(TensorDict({"position": position}, [DRAWS]), policy.prepare({}), state)
    action = chunk.values[:, 0].numpy()
    centre, margin = OBSTACLE - START, OBSTACLE_RADIUS / 2
    # Signed distance at which the line of the heading passes the centre; positive on the right.
    across = (action[:, 0] * centre[1] - action[:, 1] * centre[0]) / np.maximum(np.linalg.norm(action, axis=1), 1e-6)
    return {
        "left": float(np.mean(across < -margin)),
        "right": float(np.mean(across > margin)),
        "straight": float(np.mean(np.abs(across) <= margin)),
    }
