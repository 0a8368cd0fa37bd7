"""From a method's name and a dataset to a trained bundle: what `armstack train` and the experiments call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler
from rl_core.data.training_data import require_trainable
from rl_core.data.weights import read_weights
from rl_core.errors import ArmstackError
from rl_core.method_list import import_attribute
from rl_core.methods import get_method, make_learner, make_source, training_data
from rl_core.training.config import Config, ConfigError, TrainerConfig
from rl_core.training.evaluation import EnvEvaluator, check_disjoint, evaluate_bundle, evaluation_seeds
from rl_core.training.seeding import derive_seed
from rl_core.training.sources import OnlineSource, transition_columns
from rl_core.training.trainer import Trainer, TrainingResult
from rl_core.training.worlds import MakeEnv, contract_of, make_world


def train(
    method: str,
    dataset: str | Path | Dataset | None,
    run_dir: str | Path,
    *,
    preset: str = "default",
    config: Config | None = None,
    overrides: Mapping[str, Any] | None = None,
    trainer: Mapping[str, Any] | None = None,
    channels: Sequence[str] = (),
    weights: str | Path | None = None,
    init_from: str | Path | None = None,
    world: str = "",
    world_kwargs: Mapping[str, Any] | None = None,
    eval_episodes: int = 20,
    resume: bool = False,
) -> TrainingResult:
    """Trains `method` and writes `run_dir/bundle`.

    Args:
        method: name in `rl_core.method_list.METHODS`.
        dataset: path of a dataset, or one in memory; None for methods that learn in a world.
        run_dir: see `rl_core.training.trainer`.
        preset: named configuration of the method.
        config: a whole configuration in place of `preset` (which then only decides the number of updates).
        overrides: fields of the method's configuration to change.
        trainer: fields of `TrainerConfig`; `updates` defaults to the preset's.
        channels: observation channels the policy uses, in order; all of the dataset's if empty.
        weights: `weights.json` {episode uuid: weight}.
        init_from: bundle of the same method to start from.
        world: id of a world to evaluate in (or to learn in), see `make_world`; empty = no evaluation.
        world_kwargs: arguments of the world.
        eval_episodes: episodes of an evaluation.
        resume: go on from the newest checkpoint of `run_dir`.

    Raises:
        ArmstackError: unknown method, preset or field; data that cannot be trained on; evaluation seeds that the data were
            collected with; a run folder of another run.
    """
    entry = get_method(method)
    if entry.kind == "reward_free":
        raise ConfigError(f"method {method!r} learns without a task: armstack pretrain {method}")
    settings = (config or entry.config_class.preset(preset)).override(**(overrides or {}))
    trainer_config = TrainerConfig.from_dict({"updates": entry.default_updates(preset), **(trainer or {})})
    _check_device(trainer_config.device)
    make_env = partial(make_world, world, **(world_kwargs or {}))
    seeds = evaluation_seeds(0, eval_episodes)
    description: dict[str, Any] = {"method": method, "config": settings.to_dict(), "world": world, "world_kwargs": dict(world_kwargs or {})}
    if entry.kind == "online":
        if dataset is not None or init_from is not None or weights is not None:
            raise ConfigError(f"method {method!r} learns in a world: it takes no dataset, init_from or weights")
        if not world:
            example = "armstack/Maze-v0" if entry.train else "armstack/Reach-v0"
            raise ConfigError(f"method {method!r} learns in a world; give one, e.g. {example}")
        if entry.train:
            if channels:
                raise ConfigError(f"method {method!r} uses all observation channels of its world, found a choice of {list(channels)}")
            arguments = {"world": world, "world_kwargs": dict(world_kwargs or {}), "seeds": seeds, "description": description}
            return import_attribute(entry.train)(settings, trainer_config, run_dir, resume=resume, **arguments)
        return _train_online(method, settings, trainer_config, run_dir, make_env, seeds, channels, description, resume)
    if dataset is None:
        raise ConfigError(f"method {method!r} learns from a dataset; give its path")
    data = training_data(method, dataset if isinstance(dataset, Dataset) else read_dataset(dataset))
    require_trainable(data)
    contract = data.contract.select(channels) if channels else data.contract
    seed, device = trainer_config.seed, trainer_config.device
    data_fingerprint = fingerprint(data)
    learner = make_learner(method, settings, data, contract=contract, seed=seed, device=device)
    parents: tuple[str, ...] = ()
    if init_from is not None:
        parents = (bundle_sha256(init_from),)
        _initialize(method, learner, Bundle.load(init_from))
    episode_weights = read_weights(weights) if weights is not None else None
    source = make_source(method, settings, data, contract=contract, seed=seed, weights=episode_weights)
    evaluator = None
    if world:
        check_disjoint(seeds, data)
        _check_world(make_env, contract, world)
        evaluator = EnvEvaluator(make_env, seeds)
    description |= {"data": data_fingerprint, "channels": list(channels), "init_from": list(parents), "weights": episode_weights}
    description["eval_episodes"] = eval_episodes
    run = Trainer(
        learner,
        source,
        trainer_config,
        run_dir,
        evaluator=evaluator,
        description=description,
        data_fingerprint=data_fingerprint,
        parents=parents,
    )
    return run.run(resume=resume)


def _train_online(
    method: str,
    settings: Config,
    trainer_config: TrainerConfig,
    run_dir: str | Path,
    make_env: MakeEnv,
    seeds: Sequence[int],
    channels: Sequence[str],
    description: dict[str, Any],
    resume: bool,
) -> TrainingResult:
    probe = make_env()
    contract = contract_of(probe).select(channels) if channels else contract_of(probe)
    probe.close()
    seed, values = trainer_config.seed, settings.to_dict()
    learner: Any = make_learner(method, settings, contract=contract, seed=seed, device=trainer_config.device)
    replay = ReplayBuffer(values["replay_size"], transition_columns(contract))
    source = OnlineSource(
        make_env,
        learner.explore,
        contract,
        UniformSampler(replay, batch_size=values["batch_size"], seed=derive_seed(seed, "sampler")),
        replay,
        Path(run_dir) / "replay",
        seed=seed,
        steps_per_batch=values["steps_per_update"],
        random_steps=values["random_steps"],
    )
    evaluator = EnvEvaluator(make_env, seeds)
    description |= {"channels": list(channels), "eval_episodes": len(seeds)}
    try:
        return Trainer(learner, source, trainer_config, run_dir, evaluator=evaluator, description=description).run(resume=resume)
    finally:
        source.close()


def _check_world(make_env: MakeEnv, contract: RobotContract, name: str) -> None:
    """Raises now what the first evaluation would, perhaps hours later: no such world, or one that the policy does not fit."""
    env = make_env()
    try:
        contract.accepts(contract_of(env), needed_by="the policy", offered_by=name)
    finally:
        env.close()


def _check_device(device: str) -> None:
    """Raises ConfigError where torch has no such device here."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        found = str(error).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used ({found}); valid: cpu, or cuda where torch finds one") from error


def _initialize(method: str, learner: Any, bundle: Bundle) -> None:
    """`learner.init_from(bundle)`, for bundles of the same method and learners that can."""
    if bundle.method != method:
        raise ArmstackError(f"init_from: a bundle of method {bundle.method!r}, valid: {method!r}")
    if not hasattr(learner, "init_from"):
        raise ArmstackError(f"method {method!r} cannot start from a bundle (no init_from)")
    learner.init_from(bundle)


def online_run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """A run of the experiments: trains an online method in a world and judges the saved bundle on seeds of its own.

    Args:
        config: `method`, `world` and optionally `preset`, `overrides`, `trainer`, `world_kwargs`, `episodes`.
        seed: of the training.
        run_dir: where it works; a run that was cut goes on from its checkpoint.
    """
    episodes = config.pop("episodes", 20)
    trainer = {**config.pop("trainer", {}), "seed": seed}
    result = train(config.pop("method"), None, run_dir, trainer=trainer, resume=True, eval_episodes=5, **config)
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    make_env = partial(make_world, config["world"], **config.get("world_kwargs", {}))
    judged = evaluate_bundle(result.bundle, make_env, episodes=episodes, seed=1)
    return {"return_mean": judged.return_mean, "success_rate": judged.success_rate, "episodes": judged.episodes}
