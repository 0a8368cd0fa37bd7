"""The demo's comparison with several seeds: what stands behind its claim. See experiments/demo.yaml."""

from __future__ import annotations

import fcntl
from functools import partial
from pathlib import Path
from typing import Any

from rl_core.bundle import bundle_sha256
from rl_core.data.formats import read_dataset
from rl_core.methods import load_policy
from rl_core.training.evaluation import check_disjoint, evaluate, evaluation_seeds
from rl_core.training.run import train
from robot_bridge.collection import CollectionPlan, collect, make_world
from robot_bridge.demo import POLICY_CHANNELS


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains `config["method"]` on the demo's data and judges it, in-process, behind the command filter.

    Args:
        config: method, preset, updates, plan (fields of `CollectionPlan`), episodes of the evaluation.
        seed: of the training; the data and the evaluation seeds are the same for all.
        run_dir: folder of the run; the data lie beside it, recorded once.
    """
    plan = CollectionPlan(**{**config["plan"], "skills": tuple(config["plan"]["skills"])})
    data = run_dir.parent / "data"
    data.parent.mkdir(parents=True, exist_ok=True)
    with open(data.with_suffix(".lock"), "w") as lock:  # runs side by side share the data; the first one records
        fcntl.flock(lock, fcntl.LOCK_EX)
        collect(plan, data)
    dataset = read_dataset(data)
    result = train(
        config["method"],
        dataset,
        run_dir / "train",
        preset=config["preset"],
        trainer={"updates": config["updates"], "seed": seed, "checkpoint_every": 2000},
        channels=POLICY_CHANNELS,
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    seeds = evaluation_seeds(0, config["episodes"])
    check_disjoint(seeds, dataset)
    make_env = partial(make_world, plan.task, "filtered", plan.horizon)
    judged = evaluate(load_policy(result.bundle), make_env, seeds, sha256=bundle_sha256(result.bundle))
    assert judged.success_rate is not None and judged.success_ci95 is not None
    low, high = judged.success_ci95
    return {
        "success_percent": 100.0 * judged.success_rate,
        "success_percent_low": 100.0 * low,
        "success_percent_high": 100.0 * high,
        "return_mean": judged.return_mean,
        "episodes": judged.episodes,
        "data_success_percent": 100.0 * sum(bool(episode.success) for episode in dataset.episodes) / len(dataset),
    }
