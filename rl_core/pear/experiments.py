"""The runs behind docs/methods/pear.md: one variant in one goal world, judged on seeds of its own."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from rl_core.bundle import Bundle
from rl_core.pear.config import PEARConfig
from rl_core.pear.evaluation import evaluate_goals
from rl_core.pear.policy import policy_from_bundle
from rl_core.pear.training import train_in_goal_world
from rl_core.pear.worlds import make_goal_worlds
from rl_core.training.config import TrainerConfig
from rl_core.training.evaluation import evaluation_seeds
from rl_core.training.metrics import read_metrics

EVALUATIONS = 10
"""Evaluations along a run."""


def goals(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains a variant for a number of episodes and judges the saved bundle.

    Args:
        config: `world`, `episodes` to train for; optionally `world_kwargs`, `preset`, `overrides` (the variant among them),
            `judged` (50) episodes.
        seed: of the training.
        run_dir: where it works; a run that was cut goes on from its checkpoint.
    """
    settings = PEARConfig.preset(config.get("preset", "cpu")).override(**config.get("overrides", {}))
    world, kwargs, judged = config["world"], config.get("world_kwargs", {}), config.get("judged", 50)
    episodes = -(-config["episodes"] // settings.rows) * settings.rows
    updates = episodes * settings.updates_per_episode
    trainer = TrainerConfig(
        updates=updates,
        log_every=settings.updates_per_episode * settings.rows,
        eval_every=updates // EVALUATIONS,
        checkpoint_every=max(updates // 20, 1),
        seed=seed,
    )
    result = train_in_goal_world(
        settings,
        trainer,
        run_dir,
        world=world,
        world_kwargs=kwargs,
        seeds=evaluation_seeds(0, judged),
        description={"method": "pear", "config": settings.to_dict(), "world": world, "world_kwargs": kwargs},
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    worlds = make_goal_worlds(world, judged, **kwargs)
    policy = policy_from_bundle(Bundle.load(result.bundle), primitives=worlds.primitives)
    figures = evaluate_goals(policy, worlds, evaluation_seeds(1, judged))
    worlds.close()
    rows = read_metrics(run_dir)
    return {
        "success_rate": figures.success_rate,
        "hit_rate": figures.hit_rate,
        "final_distance": figures.final_distance,
        **success_along(rows),
        "last_100_episodes": rows[-1].get("collect/success_rate"),
        "exploring_hit_rate": rows[-1].get("curriculum/hit_rate"),
        "ms_per_update": 1e3 / statistics.median(row["time/updates_per_s"] for row in rows if "time/updates_per_s" in row),
        **segment_lengths(rows, settings.rebuild_every),
    }


def success_along(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Success at each evaluation along the run, by the number of episodes trained for."""
    return {f"success_after_{row['collect/episodes']:.0f}": row["eval/success_rate"] for row in rows if "eval/success_rate" in row}


def segment_lengths(rows: list[dict[str, Any]], rebuild_every: int) -> dict[str, float | None]:
    """Mean length of the demonstrations' segments at the first relabelling by a critic that had learned, and at the last one."""
    name = "curriculum/segment_length"
    lengths = [row[name] for row in rows if name in row and row["collect/episodes"] > rebuild_every > 0]
    return {"first_segments": lengths[0] if lengths else None, "last_segments": lengths[-1] if lengths else None}
