"""The runs behind docs/methods/contractive.md: one handwriting shape, one method, judged in and out of sample."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.baselines.velocity_field import VelocityFieldPolicy, euler_rollouts
from rl_core.bundle import Bundle
from rl_core.contractive.bounds import bounds_by_distance, bounds_by_metric
from rl_core.contractive.certificate import Certificate
from rl_core.contractive.demonstrations import DemonstrationReader
from rl_core.contractive.evaluation import RADII, drawn_starts, judge
from rl_core.contractive.policy import ContractivePolicy
from rl_core.data.formats import read_dataset
from rl_core.data.training_data import true_period_s
from rl_core.methods import load_policy
from rl_core.training.metrics import read_metrics
from rl_core.training.run import train

Array = NDArray[np.float64]
_CPU = torch.device("cpu")


def lasa(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains on the first demonstrations of a shape and judges the saved bundle.

    Args:
        config: `method`, `shape`, `demonstrations`, `updates`; optionally `preset` and `overrides`. The rate decays over the updates.
        seed: of the training, and of the starts that are drawn.
        run_dir: where it works; a run that was cut goes on from its checkpoint.
    """
    dataset = read_dataset(f"lasa:{config['shape']}")
    dataset = dataclasses.replace(dataset, episodes=dataset.episodes[: config["demonstrations"]])
    action = dataclasses.replace(dataset.contract.action, period_s=true_period_s(dataset))  # the file's is the mean of all of its strokes
    dataset = dataclasses.replace(dataset, contract=dataclasses.replace(dataset.contract, action=action))
    updates = config["updates"]
    result = train(
        config["method"],
        dataset,
        run_dir,
        preset=config.get("preset", "cpu"),
        overrides={"lr_decay_steps": updates, **config.get("overrides", {})},
        trainer={"updates": updates, "log_every": updates // 20, "checkpoint_every": updates // 5, "seed": seed},
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    bundle = Bundle.load(result.bundle)
    policy: Any = load_policy(bundle)
    reader = DemonstrationReader(policy.frame, policy.contract, horizon=policy.config.horizon, stretched=True, device=_CPU)
    demonstrations = reader.read_dataset(dataset).states.numpy().astype(np.float64)
    rows = [row["time/updates_per_s"] for row in read_metrics(run_dir) if "time/updates_per_s" in row]
    figures: dict[str, Any] = {"ms_per_update": 1e3 / statistics.median(rows)}
    if isinstance(policy, VelocityFieldPolicy):
        return figures | judge(lambda starts: euler_rollouts(policy, starts), demonstrations, seed=seed)
    figures |= judge(lambda starts: policy.model.rollout(starts)[1], demonstrations, seed=seed)
    return figures | certified(policy, Certificate.from_bundle(bundle), demonstrations, seed)


def certified(policy: ContractivePolicy, certificate: Certificate, demonstrations: Array, seed: int) -> dict[str, Any]:
    """What the certificate says, and what was measured against it: bounds violated, bound over measured error, largest V+ / V."""
    figures: dict[str, Any] = {
        "promised_v": certificate.promised**2 if np.isfinite(certificate.promised) else None,
        "certified_v": certificate.factor**2,
        "k_theory": certificate.k_theory,
        "k_empirical": certificate.k_empirical,
        "metric_condition": float(np.linalg.cond(certificate.metric)),
    }
    nominal = policy.model.rollout(demonstrations[:, 0])[0]
    for radius in RADII:
        starts, of = drawn_starts(demonstrations[:, 0], radius, seed)
        latents, motions = policy.model.rollout(starts)
        error = np.linalg.norm(motions[:, None] - demonstrations[None], axis=-1).mean(axis=-1)
        by_metric = bounds_by_metric(certificate, latents[:, 0], starts)
        by_distance = bounds_by_distance(certificate, starts)
        figures |= {
            f"violations_{radius}": int((error > by_metric).sum() + (error > by_distance).sum()),
            f"bound_ratio_{radius}": float(np.median((by_metric / error).min(axis=1))),
            f"distance_bound_ratio_{radius}": float(np.median((by_distance / error).min(axis=1))),
        }
        values = policy.model.energy(latents - nominal[of])
        known = values[:, :-1] > 1e-20
        figures[f"largest_v_{radius}"] = float((values[:, 1:][known] / values[:, :-1][known]).max())
    return figures
