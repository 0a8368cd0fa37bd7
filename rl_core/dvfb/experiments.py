"""The runs behind docs/methods/dvfb.md: reward-free pre-training judged zero-shot, the data swap, and fine-tuning.

A task is one of a world's rewards by name; it is told to the method only after the pre-training.
"""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.finetuning import finetune
from rl_core.dvfb.inference import InferenceError
from rl_core.dvfb.learner import DVFBLearner
from rl_core.dvfb.policy import DVFBPolicy
from rl_core.dvfb.pretraining import named_reward, pretrain
from rl_core.dvfb.solving import blind_skill, solve, solve_blindly
from rl_core.dvfb.states import CarriedStates
from rl_core.methods import load_policy
from rl_core.training.config import TrainerConfig
from rl_core.training.evaluation import EvaluationResult, evaluate, evaluation_seeds
from rl_core.training.metrics import read_metrics
from rl_core.training.seeding import derive_seed
from rl_core.training.trainer import Trainer
from rl_core.training.worlds import contract_of, make_world

PARTICLES, NEIGHBOUR = 2000, 12
"""States of the particle entropy, and which neighbour's distance is taken."""
SKILLS = 16
"""Skills over which the spread of actions is taken."""


def zero_shot(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Pre-trains without rewards and judges each task under the z inferred for it, and under a blind one.

    Args:
        config: `method`, `world`, `rewards` (names) and optionally `preset`, `overrides`, `trainer`, `world_kwargs`, `episodes`.
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
    entropy = particle_entropy(result.bundle, ReplayBuffer.load(run_dir / "replay"))
    return judge(config, result.bundle, run_dir, seed) | {"particle_entropy": entropy}


def data_swap(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains FB offline on the replay of another run's folder beside this one, and judges it as `zero_shot` does.

    Args:
        config: of `zero_shot`, and `replay_of`, the name of the other run; `overrides` are of DVFBConfig.
        seed: of the training.
        run_dir: where it works.
    """
    settings = DVFBConfig.preset(config.get("preset", "cpu")).override(**{"variant": "fb_only", **config.get("overrides", {})})
    replay = ReplayBuffer.load(run_dir.parent / config["replay_of"] / "replay")
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
    return judge(config, result.bundle, run_dir, seed)


def fine_tuning(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Fine-tunes the pre-trained bundle of another run's folder beside this one on one task.

    Args:
        config: `bundle_of` (name of the other run), `world`, `reward`, and optionally `preset`, `overrides` (of FineTuneConfig), `trainer`,
            `world_kwargs`.
        seed: of the fine-tuning.
        run_dir: where it works.
    """
    kwargs = {**config.get("world_kwargs", {}), "reward": config["reward"]}
    probe = make_world(config["world"], **kwargs)
    reward = named_reward(probe, config["reward"])
    probe.close()
    solution = solve(run_dir.parent / config["bundle_of"] / "bundle", run_dir / "solved", reward=reward)
    preset = config.get("preset", "cpu")
    trainer = {**config.get("trainer", {}), "seed": seed}
    folder = run_dir / "finetuning"
    result = finetune(
        solution.bundle, config["world"], folder, preset=preset, overrides=config.get("overrides"), trainer=trainer, world_kwargs=kwargs,
        resume=True,
    )  # fmt: skip
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    start = evaluate(load_policy(solution.bundle), partial(make_world, config["world"], **kwargs), evaluation_seeds(0, 20))
    returns = [row["eval/return_mean"] for row in read_metrics(folder) if "eval/return_mean" in row]
    return {"return_start": start.return_mean, "return_end": returns[-1], "return_mean_of_run": statistics.fmean(returns)}


def judge(config: dict[str, Any], pretrained: Path, run_dir: Path, seed: int) -> dict[str, Any]:
    """Returns of each task and their mean, under the inferred z and a blind one; success where the world reports it.

    A task whose reward no carried state has is judged under the blind z: nothing is known of it.
    """
    figures: dict[str, Any] = {"unseen_tasks": 0}
    returns: dict[str, list[EvaluationResult]] = {"inferred": [], "blind": []}
    blind = solve_blindly(pretrained, run_dir / "blind", seed=seed).bundle
    for name in config["rewards"]:
        kwargs = {**config.get("world_kwargs", {}), "reward": name}
        make_env = partial(make_world, config["world"], **kwargs)
        probe = make_env()
        try:
            solved = solve(pretrained, run_dir / f"solved-{name}", reward=named_reward(probe, name)).bundle
        except InferenceError:
            solved, figures["unseen_tasks"] = blind, figures["unseen_tasks"] + 1
        finally:
            probe.close()
        for kind, bundle in (("inferred", solved), ("blind", blind)):
            judged = evaluate(load_policy(bundle), make_env, evaluation_seeds(1, config.get("episodes", 20)), n_envs=4)
            returns[kind].append(judged)
        figures[f"return_{name}"] = returns["inferred"][-1].return_mean
    for kind, results in returns.items():
        suffix = "" if kind == "inferred" else "_blind"
        figures[f"return_mean{suffix}"] = statistics.fmean(result.return_mean for result in results)
        successes = [result.success_rate for result in results if result.success_rate is not None]
        if successes:
            figures[f"success_rate{suffix}"] = statistics.fmean(successes)
    return figures | {"action_spread": action_spread(pretrained, seed)}


def action_spread(pretrained: Path, seed: int) -> float:
    """Mean deviation of an action's numbers over skills, at carried states: 0 where the policy ignores z."""
    bundle = Bundle.load(pretrained)
    policy = load_policy(bundle)
    assert isinstance(policy, DVFBPolicy)
    states: Tensor = CarriedStates.from_bundle(bundle).observation[:256]
    skills = [blind_skill(bundle, derive_seed(seed, "spread", k)) for k in range(SKILLS)]
    with torch.no_grad():
        actions = torch.stack([policy.actor(states, skill.expand(len(states), -1)) for skill in skills])
    return float(actions.std(0).mean())


def particle_entropy(pretrained: Path, replay: ReplayBuffer) -> float:
    """Mean log distance of 2000 states of the replay to their 12th neighbour: larger where they are spread more widely."""
    contract = Bundle.load(pretrained).contract
    assert contract is not None
    states = CarriedStates.from_replay(replay, PARTICLES, size=contract.observation_size).next_observation
    distances = torch.cdist(states, states).topk(min(NEIGHBOUR, len(states) - 1) + 1, largest=False).values[:, -1]
    return float(distances.clamp(min=1e-6).log().mean())
