"""The runs behind docs/methods/dvfb.md: reward-free pre-training judged zero-shot, the data swap, and fine-tuning.

Tasks are a world's rewards by name, and goals: places of an observation channel. Both are told to the method only after pre-training.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.figures import action_spread, coverage, particle_entropy, visited
from rl_core.dvfb.finetuning import finetune
from rl_core.dvfb.inference import InferenceError, RewardFunction, goal_columns, labels
from rl_core.dvfb.learner import DVFBLearner
from rl_core.dvfb.pretraining import named_reward, pretrain
from rl_core.dvfb.solving import blind_skill, load_inference, solve
from rl_core.dvfb.states import CarriedStates
from rl_core.errors import ArmstackError
from rl_core.methods import load_policy
from rl_core.training.config import TrainerConfig
from rl_core.training.evaluation import EvaluationResult, evaluate, evaluation_seeds
from rl_core.training.metrics import read_metrics
from rl_core.training.rollout import ChannelHistory, rollout
from rl_core.training.run import train
from rl_core.training.seeding import derive_seed
from rl_core.training.sources import RandomPolicy
from rl_core.training.trainer import Trainer
from rl_core.training.worlds import contract_of, make_world


def zero_shot(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Pre-trains without rewards and judges each task under the z inferred for it, and under a blind one.

    Args:
        config: `method`, `world`; `rewards` (names), `goals` (`channel`, `radius`, `positions`) or both; optionally `preset`, `overrides`,
            `trainer`, `world_kwargs`, `episodes` (5) a task, `cells` (`channel`, `low`, `high`, `each`) for the coverage.
        seed: of the training.
        run_dir: where it works; a run that was cut goes on from its checkpoint.
    """
    result = pretrain(
        config["method"],
        config["world"],
        run_dir,
        preset=config.get("preset", "cpu"),
        overrides=config.get("overrides", {}),
        trainer={**config.get("trainer", {}), "seed": seed},
        world_kwargs=config.get("world_kwargs"),
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    bundle, replay, rows = Bundle.load(result.bundle), ReplayBuffer.load(run_dir / "replay"), read_metrics(run_dir)
    figures = {
        "action_spread": action_spread(bundle, seed),
        "particle_entropy": particle_entropy(bundle, replay),
        "effective_rank": rows[-1].get("fb/effective_rank"),
        "ms_per_update": 1e3 / statistics.median(row["time/updates_per_s"] for row in rows if "time/updates_per_s" in row),
    }
    if "cells" in config:
        figures["coverage"] = _coverage(visited(bundle, replay, config["cells"]["channel"]), config["cells"])
    return figures | judge(config, bundle, seed)


def random_actions(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Coverage of uniformly random actions.

    Args:
        config: `world`, `cells` and optionally `world_kwargs` of `zero_shot`, and `steps`.
        seed: of resets and actions.
        run_dir: not used.
    """
    env = make_world(config["world"], **config.get("world_kwargs", {}))
    contract, episode = contract_of(env), 0
    points: list[NDArray[np.float32]] = []
    history, columns = ChannelHistory(contract), goal_columns(contract, config["cells"]["channel"])
    while len(points) < config["steps"]:
        for step in rollout(RandomPolicy(contract), [env], [derive_seed(seed, "episode", episode)]):
            history.start(step.observation)
            points.append(history.flat()[columns])
        episode += 1
    env.close()
    return {"coverage": _coverage(torch.from_numpy(np.array(points[: config["steps"]])), config["cells"])}


def data_swap(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains FB offline on the replay of another run beside this one, and judges it as `zero_shot` does.

    Args:
        config: of `zero_shot`, and `replay_of`, the other run's name without its seed, which is this one's; `overrides` are of DVFBConfig.
        seed: of the training.
        run_dir: where it works.
    """
    settings = DVFBConfig.preset(config.get("preset", "cpu")).override(**{**config.get("overrides", {}), "variant": "fb_only"})
    replay = ReplayBuffer.load(_other_run(run_dir, config["replay_of"], seed) / "replay")
    probe = make_world(config["world"], **config.get("world_kwargs", {}))
    learner: Any = DVFBLearner(settings, contract_of(probe), seed=seed)
    probe.close()
    learner.replay = replay
    sampler = UniformSampler(replay, batch_size=settings.batch_size, seed=derive_seed(seed, "sampler"))
    trainer_config = TrainerConfig.from_dict({**config.get("trainer", {}), "seed": seed})
    run = Trainer(learner, sampler, trainer_config, run_dir, description={"config": settings.to_dict(), "replay_of": config["replay_of"]})
    result = run.run(resume=True)
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    return judge(config, Bundle.load(result.bundle), seed)


def judged_again(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Judges the bundle of another run beside this one with another inference of z.

    Args:
        config: of `zero_shot`, `bundle_of` as `data_swap`'s `replay_of`, and `inference`: `percentile` of the rewards from which on samples
            count, `samples`, how many there are, `sign`, -1 for the reward's opposite.
        seed: of the other run.
        run_dir: where it works.
    """
    return judge(config, Bundle.load(_other_run(run_dir, config["bundle_of"], seed) / "bundle"), seed)


def fine_tuning(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Fine-tunes the pre-trained bundle of another run beside this one on one task.

    Args:
        config: `bundle_of` as `data_swap`'s `replay_of`, `world`, `reward` (a name), `trainer` with `eval_every`; optionally `preset`,
            `overrides` (of FineTuneConfig), `world_kwargs`.
        seed: of the fine-tuning.
        run_dir: where it works.
    """
    kwargs = {**config.get("world_kwargs", {}), "reward": config["reward"]}
    probe = make_world(config["world"], **kwargs)
    reward = named_reward(probe, config["reward"])
    probe.close()
    solution = solve(_other_run(run_dir, config["bundle_of"], seed) / "bundle", run_dir / "solved", reward=reward)
    preset = config.get("preset", "cpu")
    trainer = {**config.get("trainer", {}), "seed": seed}
    folder = run_dir / "finetuning"
    result = finetune(
        solution.bundle,
        config["world"],
        folder,
        preset=preset,
        overrides=config.get("overrides"),
        trainer=trainer,
        world_kwargs=kwargs,
        eval_episodes=10,
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    start = evaluate(load_policy(solution.bundle), partial(make_world, config["world"], **kwargs), evaluation_seeds(0, 10))
    return {"return_start": start.return_mean, **_curve(folder)}


def from_scratch(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Learns the task of `fine_tuning` without pre-training, by a method that learns from rewards.

    Args:
        config: `method`, `world`, `reward`, `trainer` with `eval_every`; optionally `overrides` (of the method), `world_kwargs`.
        seed: of the training.
        run_dir: where it works.
    """
    kwargs = {**config.get("world_kwargs", {}), "reward": config["reward"]}
    result = train(
        config["method"],
        None,
        run_dir,
        overrides=config.get("overrides"),
        trainer={**config["trainer"], "seed": seed},
        world=config["world"],
        world_kwargs=kwargs,
        eval_episodes=10,
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    return _curve(run_dir)


def _curve(folder: Path) -> dict[str, float]:
    """Returns along a run: at the quarters, the lowest, and the mean, which is the area under the curve in units of its length."""
    returns = [row["eval/return_mean"] for row in read_metrics(folder) if "eval/return_mean" in row]
    quarters = {f"return_{25 * k}": returns[round(k / 4 * (len(returns) - 1))] for k in range(1, 4)}
    return {**quarters, "return_end": returns[-1], "return_lowest": min(returns), "return_mean_of_run": statistics.fmean(returns)}


def judge(config: Mapping[str, Any], bundle: Bundle, seed: int) -> dict[str, Any]:
    """Returns of each named task, and the mean over tasks of return and success, under the z inferred and under a blind one.

    A task whose reward no carried state has is judged under the blind z: nothing is known of it.
    """
    make_env = partial(make_world, config["world"], **config.get("world_kwargs", {}))
    options = dict(config.get("inference", {}))
    inference = load_inference(_with_states(bundle, options.pop("samples")) if "samples" in options else bundle)
    policy = load_policy(bundle)
    figures: dict[str, Any] = {"unseen_tasks": 0}
    results: dict[str, list[EvaluationResult]] = {"": [], "_blind": []}
    for index, (name, reward) in enumerate(_tasks(config, make_env).items()):
        blind = blind_skill(bundle, derive_seed(seed, "blind", index))
        try:
            skill = _inferred(inference, reward, **options)
        except InferenceError:
            skill, figures["unseen_tasks"] = blind, figures["unseen_tasks"] + 1
        for suffix, z in (("", skill), ("_blind", blind)):
            seeds = evaluation_seeds(1, config.get("episodes", 5))
            results[suffix].append(evaluate(policy, partial(make_env, reward=reward), seeds, n_envs=5, condition={"skill": z}))
        if name in config.get("rewards", ()):
            figures[f"return_{name}"] = results[""][-1].return_mean
    for suffix, judged in results.items():
        figures[f"return_mean{suffix}"] = statistics.fmean(result.return_mean for result in judged)
        successes = [result.success_rate for result in judged if result.success_rate is not None]
        if successes:
            figures[f"success_rate{suffix}"] = statistics.fmean(successes)
    return figures


def _tasks(config: Mapping[str, Any], make_env: Callable[[], gymnasium.Env]) -> dict[str, RewardFunction]:
    probe = make_env()
    named = {name: named_reward(probe, name) for name in config.get("rewards", ())}
    goals = config.get("goals", {"positions": ()})
    at = {str(position): _reaches(contract_of(probe), goals["channel"], position, goals["radius"]) for position in goals["positions"]}
    probe.close()
    return named | at


def _reaches(contract: RobotContract, channel: str, position: list[float], radius: float) -> RewardFunction:
    columns = goal_columns(contract, channel)

    def reward(observation: Any, action: Any, next_observation: Any) -> Any:
        return (np.linalg.norm(next_observation[..., columns] - np.asarray(position), axis=-1) < radius).astype(np.float64)

    return reward


def _inferred(inference: Any, reward: RewardFunction, *, sign: int = 1, **options: float) -> Tensor:
    return inference.from_rewards(sign * labels(reward, inference.states), **options)


def _with_states(bundle: Bundle, count: int) -> Bundle:
    """The bundle with `count` of its carried states, spread evenly."""
    rows = torch.linspace(0, len(CarriedStates.from_bundle(bundle)) - 1, count).round().long()
    kept = {name: value[rows] if name.startswith("states.") else value for name, value in bundle.arrays.items()}
    return replace(bundle, arrays=kept)


def _coverage(points: Tensor, cells: Mapping[str, Any]) -> float:
    return coverage(points, cells["low"], cells["high"], cells["each"])


def _other_run(run_dir: Path, name: str, seed: int) -> Path:
    """The newest finished run `name` of the same seed beside `run_dir`; a run's folder ends in its hash."""
    found = [path for path in run_dir.parent.glob(f"{name}-s{seed}*") if path.name.removeprefix(f"{name}-s{seed}")[:1] in ("", "-")]
    finished = [path for path in found if (path / "bundle").is_dir()]
    if not finished:
        raise ArmstackError(
            f"{run_dir.parent}: no finished run {name}-s{seed}, which this one builds on; do that one first, then this again"
        )
    return max(finished, key=lambda path: (path / "bundle").stat().st_mtime)
