"""A policy trained under robosuite's control law, judged there and behind the command filter. See experiments/exchange.yaml."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from rl_core.data.formats import read_dataset
from rl_core.methods import load_policy
from rl_core.training.evaluation import evaluate, evaluation_seeds
from rl_core.training.run import train
from robot_bridge.collection import CollectionPlan, collect, make_world
from robot_bridge.demo import POLICY_CHANNELS


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Clones expert demonstrations of one world and judges the clone in both.

    Args:
        config: world, episodes and horizon of the demonstrations, updates, episodes of each evaluation.
        seed: of demonstrations and training.
        run_dir: folder of the run.
    """
    plan = CollectionPlan(
        task="lift", episodes=config["demonstrations"], skills=("expert",), world=config["world"], horizon=config["horizon"], seed=seed
    )
    collect(plan, run_dir / "data", processes=1)
    trainer = {"updates": config["updates"], "seed": seed}
    data = read_dataset(run_dir / "data")
    result = train("bc", data, run_dir / "train", preset="demo", trainer=trainer, channels=POLICY_CHANNELS, resume=True)
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    policy, figures = load_policy(result.bundle), {}
    for world in ("osc_pose", "filtered"):
        make_env = partial(make_world, plan.task, world, plan.horizon)
        judged = evaluate(policy, make_env, evaluation_seeds(0, config["episodes"]))
        assert judged.success_rate is not None
        figures[f"success_percent_{world}"] = 100.0 * judged.success_rate
    return figures
