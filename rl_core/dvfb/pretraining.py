"""Reward-free pre-training in a world: what `armstack pretrain` and the experiments call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import Sampler, UniformSampler
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.inference import InferenceError, RewardFunction
from rl_core.dvfb.sampler import LaterSampler
from rl_core.methods import get_method, make_learner
from rl_core.policy import Policy
from rl_core.training.config import Config, ConfigError, TrainerConfig
from rl_core.training.evaluation import evaluate, evaluation_seeds
from rl_core.training.seeding import derive_seed
from rl_core.training.sources import OnlineSource, transition_columns
from rl_core.training.trainer import Trainer, TrainingResult
from rl_core.training.worlds import contract_of, make_world


def named_reward(env: gymnasium.Env, name: str) -> RewardFunction:
    """The reward `name` of a world's mapping `rewards`, under any wrappers.

    Raises:
        ConfigError: it has none of that name; lists those it has.
    """
    offered = env.get_wrapper_attr("rewards") if env.has_wrapper_attr("rewards") else {}
    if name not in offered:
        raise ConfigError(f"reward {name!r}, valid: {', '.join(offered) or 'none, the world offers no rewards by name'}")
    return offered[name]


class ZeroShotEvaluator:
    """Returns of the tasks that a world tells by name, each under the z inferred for it from states seen so far.

    Args:
        make_env: makes one world; takes the name of one of its rewards as `reward`.
        rewards: those names.
        inference: gives `learner.inference()`.
        seeds: episode seeds, the same at every call.
    """

    def __init__(
        self, make_env: Callable[..., gymnasium.Env], rewards: Sequence[str], inference: Callable[[], Any], seeds: Sequence[int]
    ) -> None:
        self.make_env, self.inference, self.seeds = make_env, inference, list(seeds)
        probe = make_env()
        self.rewards = {name: named_reward(probe, name) for name in rewards}
        probe.close()

    def evaluate(self, policy: Policy, step: int) -> Mapping[str, float]:
        """`eval/NAME_return` and, where the world reports it, `eval/NAME_success_rate`; `eval/return_mean` over the tasks.

        A task is left out while no state is known that has its reward; `eval/unseen_tasks` counts them.
        """
        inference, unseen = self.inference(), 0
        figures: dict[str, float] = {}
        for name, reward in self.rewards.items():
            try:
                condition = {"skill": inference.from_function(reward)}
            except InferenceError:
                unseen += 1
                continue
            result = evaluate(policy, partial(self.make_env, reward=name), self.seeds, condition=condition)
            figures[f"eval/{name}_return"] = result.return_mean
            if result.success_rate is not None:
                figures[f"eval/{name}_success_rate"] = result.success_rate
        returns = [value for name, value in figures.items() if name.endswith("_return")]
        if returns:
            figures["eval/return_mean"] = sum(returns) / len(returns)
        return {**figures, "eval/unseen_tasks": float(unseen)}


def pretrain(
    method: str,
    world: str,
    run_dir: str | Path,
    *,
    preset: str = "default",
    config: Config | None = None,
    overrides: Mapping[str, Any] | None = None,
    trainer: Mapping[str, Any] | None = None,
    channels: Sequence[str] = (),
    world_kwargs: Mapping[str, Any] | None = None,
    rewards: Sequence[str] = (),
    eval_episodes: int = 5,
    resume: bool = False,
) -> TrainingResult:
    """Trains `method` in `world` without rewards and writes `run_dir/bundle`, which carries states for inference.

    Args:
        method: name in `rl_core.methods.METHODS`, of a method that learns without rewards.
        world: id of a world, see `make_world`.
        run_dir: see `rl_core.training.trainer`; the replay lies in `run_dir/replay`.
        preset: named configuration of the method.
        config: a whole configuration in place of `preset` (which then only decides the number of updates).
        overrides: fields of the method's configuration to change.
        trainer: fields of `TrainerConfig`; `updates` defaults to the preset's.
        channels: observation channels the policy uses, in order; all of the world's if empty.
        world_kwargs: arguments of the world.
        rewards: names of the world's rewards to evaluate zero-shot; training never sees them.
        eval_episodes: episodes a reward.
        resume: go on from the newest checkpoint of `run_dir`.

    Raises:
        ArmstackError: unknown method, preset, field, world or reward; a run folder of another run.
    """
    entry = get_method(method)
    settings = (config or entry.config_class.preset(preset)).override(**(overrides or {}))
    if not hasattr(settings, "carried_states"):
        raise ConfigError(f"method {method!r} learns from rewards or data, see `armstack train`; valid: dvfb, skill_discovery")
    values = settings.to_dict()
    trainer_config = TrainerConfig.from_dict({"updates": entry.default_updates(preset), **(trainer or {})})
    seed = trainer_config.seed
    make_env = partial(make_world, world, **(world_kwargs or {}))
    probe = make_env()
    contract = contract_of(probe).select(channels) if channels else contract_of(probe)
    probe.close()
    if rewards and channels:
        raise ConfigError(
            f"rewards {list(rewards)} read all of the world's channels, found a choice of {list(channels)}; valid: one of the two"
        )
    learner: Any = make_learner(method, settings, contract=contract, seed=seed, device=trainer_config.device)
    make_collected = partial(learner.world, make_env)
    collected = learner.collected
    replay = learner.replay = ReplayBuffer(values["replay_size"], transition_columns(collected))
    source = OnlineSource(
        make_collected,
        learner.explore,
        collected,
        _sampler(settings, replay, values["batch_size"], derive_seed(seed, "sampler")),
        replay,
        Path(run_dir) / "replay",
        seed=seed,
        n_envs=values["n_envs"],
        steps_per_batch=values["steps_per_update"],
        random_steps=values["random_steps"],
        rewards=False,
    )
    evaluator = ZeroShotEvaluator(make_env, rewards, learner.inference, evaluation_seeds(0, eval_episodes)) if rewards else None
    description = {
        "method": method,
        "config": values,
        "world": world,
        "world_kwargs": dict(world_kwargs or {}),
        "channels": list(channels),
        "rewards": list(rewards),
        "eval_episodes": eval_episodes,
    }
    try:
        result = Trainer(learner, source, trainer_config, run_dir, evaluator=evaluator, description=description).run(resume=resume)
        if result.finished:
            replay.save(source.replay_dir)  # whole: the last checkpoint may be from before the last episodes
        return result
    finally:
        source.close()


def _sampler(settings: Config, replay: ReplayBuffer, batch_size: int, seed: int) -> Sampler:
    if isinstance(settings, DVFBConfig) and settings.goal == "pair_compat":
        return LaterSampler(replay, stride=settings.n_envs, batch_size=batch_size, seed=seed)
    return UniformSampler(replay, batch_size=batch_size, seed=seed)
