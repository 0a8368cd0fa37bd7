"""Training PEAR, or one of its baselines, in a goal world: what `armstack train pear` and the experiments call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rl_core.pear.config import PEARConfig
from rl_core.pear.evaluation import GoalEvaluator
from rl_core.pear.learner import PEARLearner
from rl_core.pear.source import PEARSource
from rl_core.pear.worlds import GoalWorlds, make_goal_worlds
from rl_core.training.config import TrainerConfig
from rl_core.training.trainer import Trainer, TrainingResult


def train_in_goal_world(
    config: PEARConfig,
    trainer: TrainerConfig,
    run_dir: str | Path,
    *,
    world: str,
    world_kwargs: dict[str, Any],
    seeds: Sequence[int],
    description: dict[str, Any],
    resume: bool = False,
) -> TrainingResult:
    """Trains in `config.rows` rows of a goal world and writes `run_dir/bundle`.

    An update is one gradient step of each level: an episode gives `config.updates_per_episode` of them.

    Args:
        config: hyperparameters and variant.
        trainer: length, intervals, seed, device.
        run_dir: see `rl_core.training.trainer`.
        world: id of a goal world, see `make_goal_worlds`.
        world_kwargs: its arguments.
        seeds: of the evaluation's episodes.
        description: what the run's `config.json` says besides.
        resume: go on from the newest checkpoint of `run_dir`.

    Raises:
        ArmstackError: no such world, one without goals, or a variant that the world does not offer what it needs.
    """

    def make_worlds(rows: int) -> GoalWorlds:
        return make_goal_worlds(world, rows, **world_kwargs)

    worlds, evaluator = make_worlds(config.rows), GoalEvaluator(make_worlds, seeds)
    try:
        primitives = worlds.primitives
        learner = PEARLearner(config, worlds.contract, worlds.goal, device=trainer.device, seed=trainer.seed, primitives=primitives)
        demonstrations = worlds.demonstrations(range(config.demonstrations)) if config.uses_demonstrations else []
        source = PEARSource(learner, worlds, demonstrations, Path(run_dir) / "replay", seed=trainer.seed)
        return Trainer(learner, source, trainer, run_dir, evaluator=evaluator, description=description).run(resume=resume)
    finally:
        worlds.close()
        evaluator.close()
