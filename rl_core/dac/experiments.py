"""The control runs behind docs/methods/dac.md: offline learning from logged data, judged in the world the data are from."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rl_core.bundle import Bundle
from rl_core.dac.logged_data import LoggedData, logged_data
from rl_core.data.episode import Dataset
from rl_core.methods import load_policy
from rl_core.training.evaluation import evaluate, evaluation_seeds
from rl_core.training.metrics import read_metrics
from rl_core.training.run import train
from rl_core.training.worlds import make_world

LAST_EVALUATIONS = 5


def control(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains on one level of a world's logged data.

    The score is D4RL's: 100 (R - R_random) / (R_expert - R_random), averaged over the last five evaluations of ten episodes each,
    never the best one.

    Args:
        config: `world`, `data` (see `logged_data`, its seed included), `level`, `method`, `preset`, `overrides`, `updates`.
        seed: of the training.
        run_dir: where it works; a run that was cut goes on from its checkpoint. The data lie beside it, for all runs alike.
    """
    data = _data(config, run_dir)
    dataset = data.dataset(config["level"])
    interval = config["updates"] // 20
    result = train(
        config["method"],
        dataset,
        run_dir,
        preset=config["preset"],
        overrides=config.get("overrides", {}),
        trainer={"updates": config["updates"], "log_every": interval, "eval_every": interval, "checkpoint_every": interval, "seed": seed},
        world=config["world"],
        eval_episodes=10,
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    rows = read_metrics(run_dir)
    returns = [row["eval/return_mean"] for row in rows if "eval/return_mean" in row][-LAST_EVALUATIONS:]
    figures = {
        "score": data.score(statistics.fmean(returns)),
        "data_score": data.score(statistics.fmean(episode.episode_return for episode in dataset.episodes)),
    }
    if config["method"] == "dac":
        figures |= _critic_figures(rows, dataset, result.bundle)
        figures["score_one_candidate"] = data.score(_return_of_one_candidate(config["world"], result.bundle))
    return figures


def _data(config: dict[str, Any], run_dir: Path) -> LoggedData:
    facts = json.dumps({"world": config["world"], **config["data"]}, sort_keys=True)
    name = f"data-{config['world']}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"
    return logged_data(config["world"], run_dir.parent / name, **config["data"])


def _critic_figures(rows: list[dict[str, float]], dataset: Dataset, folder: Path) -> dict[str, float]:
    """Mean Q of the data over the last rows, in the data's reward units, and the range of discounted returns it should lie in."""
    settings = Bundle.load(folder).config
    returns = [discounted_returns(episode.rewards, settings["gamma"]) for episode in dataset.episodes]
    first = [float(values[0]) for values in returns]
    scale = 1.0
    if settings["reward_scaling"] == "return_range":
        totals = [episode.episode_return for episode in dataset.episodes]
        scale = 1000.0 / (max(totals) - min(totals))
    values = [row["q/data_mean"] for row in rows if "q/data_mean" in row][-LAST_EVALUATIONS:]
    return {
        "q_mean": statistics.fmean(values) / scale,
        "discounted_return_lowest": min(first),
        "discounted_return_highest": max(first),
        "eta": [row["dual/eta"] for row in rows if "dual/eta" in row][-1],
        "bc_loss": statistics.fmean([row["loss/bc"] for row in rows if "loss/bc" in row][-LAST_EVALUATIONS:]),
    }


def discounted_returns(rewards: Any, gamma: float) -> Any:
    """(T,) discounted sum of the rewards from each step to the end of the episode."""
    result = np.zeros(len(rewards))
    following = 0.0
    for step in range(len(rewards) - 1, -1, -1):
        following = float(rewards[step]) + gamma * following
        result[step] = following
    return result


def _return_of_one_candidate(world: str, folder: Path) -> float:
    """Mean return of single draws of the actor, without the choice by Q; the same episodes as the last evaluation."""
    bundle = Bundle.load(folder)
    policy = load_policy(dataclasses.replace(bundle, config={**bundle.config, "action_candidates": 1}))
    return evaluate(policy, partial(make_world, world), evaluation_seeds(0, 10), n_envs=10).return_mean
