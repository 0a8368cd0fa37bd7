"""Evaluation: fixed seeds that no data was collected with, success with its Wilson interval, return with a bootstrap one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rl_core.bundle import bundle_sha256
from rl_core.data.episode import Dataset
from rl_core.errors import ArmstackError
from rl_core.policy import Policy
from rl_core.training.intervals import bootstrap_interval, wilson_interval
from rl_core.training.rollout import rollout
from rl_core.training.worlds import MakeEnv

EVALUATION_OFFSET = 1_000_000
_SEEDS_A_SET = 10_000


class SeedOverlap(ArmstackError):
    """Evaluation seeds that data was collected with; lists them."""


def evaluation_seeds(seed: int, episodes: int) -> list[int]:
    """The fixed episode seeds of evaluation set `seed`: all at 1 000 000 and above, where nothing is collected.

    Raises:
        ValueError: more episodes than a set has, or a negative set.
    """
    if seed < 0:
        raise ValueError(f"evaluation set {seed}, valid: 0 or more; below lie the seeds that data are collected with")
    if not 1 <= episodes <= _SEEDS_A_SET:
        raise ValueError(f"{episodes} episodes, valid: 1..{_SEEDS_A_SET}")
    first = EVALUATION_OFFSET + seed * _SEEDS_A_SET
    return list(range(first, first + episodes))


def check_disjoint(seeds: Iterable[int], dataset: Dataset) -> None:
    """Checks that no episode of `dataset` was collected with one of `seeds` (`meta["seed"]`).

    Raises:
        SeedOverlap: lists the seeds that were.
    """
    collected = {int(episode.meta["seed"]) for episode in dataset.episodes if "seed" in episode.meta}
    overlap = sorted(collected & set(seeds))
    if overlap:
        where = dataset.source or "dataset"
        raise SeedOverlap(f"{where}: collected with evaluation seeds {overlap}; collect with seeds below {EVALUATION_OFFSET}")


@dataclass(frozen=True, kw_only=True)
class EpisodeFigures:
    """One evaluated episode; `success` is None in a world that does not report it."""

    seed: int
    episode_return: float
    length: int
    success: bool | None


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """Figures of an evaluation.

    Attributes:
        success_rate: share of episodes with success at any step; None in a world without success.
        success_ci95: Wilson interval; None like `success_rate`.
        return_mean: mean undiscounted return.
        return_ci95: percentile bootstrap interval.
        episodes: how many.
        seed: first of the episode seeds.
        bundle_sha256: hash of what was judged, empty for a policy that was never saved.
        rows: one entry an episode, in the order of the seeds.
    """

    success_rate: float | None
    success_ci95: tuple[float, float] | None
    return_mean: float
    return_ci95: tuple[float, float]
    episodes: int
    seed: int
    bundle_sha256: str
    rows: tuple[EpisodeFigures, ...]

    @classmethod
    def from_rows(cls, rows: Sequence[EpisodeFigures], *, sha256: str = "") -> EvaluationResult:
        """The figures of some episodes."""
        known = [row.success for row in rows if row.success is not None]
        returns = [row.episode_return for row in rows]
        return cls(
            success_rate=sum(known) / len(known) if known else None,
            success_ci95=wilson_interval(sum(known), len(known)) if known else None,
            return_mean=sum(returns) / len(returns),
            return_ci95=bootstrap_interval(returns),
            episodes=len(rows),
            seed=rows[0].seed,
            bundle_sha256=sha256,
            rows=tuple(rows),
        )

    def to_dict(self, *, rows: bool = True) -> dict[str, Any]:
        """JSON-able values."""
        values = json.loads(json.dumps(asdict(self)))
        if not rows:
            del values["rows"]
        return values

    def metrics(self) -> dict[str, float]:
        """Under the names all methods log."""
        figures = {"eval/return_mean": self.return_mean, "eval/episode_length": sum(row.length for row in self.rows) / self.episodes}
        if self.success_rate is not None:
            figures["eval/success_rate"] = self.success_rate
        return figures


def evaluate(
    policy: Policy,
    make_env: MakeEnv,
    seeds: Sequence[int],
    *,
    n_envs: int = 1,
    sha256: str = "",
    condition: Mapping[str, Any] | None = None,
) -> EvaluationResult:
    """One episode a seed, `n_envs` at a time.

    Args:
        policy: what is judged.
        make_env: makes one world (dict of channels, `.contract`, a time limit); called `n_envs` times.
        seeds: see `evaluation_seeds`.
        sha256: hash of the policy's bundle, for the result.
        condition: goal or task of a conditioned policy.

    Raises:
        ValueError: no seeds, one twice, or no world.
        ContractMismatch: the policy needs what the world does not offer.
    """
    if n_envs < 1:
        raise ValueError(f"n_envs {n_envs}, valid: 1 or more")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"{len(seeds)} seeds, {len(set(seeds))} of them different; valid: at least one, each once")
    envs = [make_env() for _ in range(min(n_envs, len(seeds)))]
    figures: dict[int, dict[str, Any]] = {seed: {"return": 0.0, "length": 0, "success": None} for seed in seeds}
    try:
        for step in rollout(policy, envs, seeds, condition=dict(condition or {})):
            row = figures[step.seed]
            row["return"] += step.reward
            row["length"] += 1
            if "success" in step.info:
                row["success"] = bool(row["success"] or step.info["success"])
    finally:
        for env in envs:
            env.close()
    rows = [EpisodeFigures(seed=s, episode_return=f["return"], length=f["length"], success=f["success"]) for s, f in figures.items()]
    return EvaluationResult.from_rows(rows, sha256=sha256)


def evaluate_bundle(folder: str | Path, make_env: MakeEnv, *, episodes: int = 50, seed: int = 0, n_envs: int = 1) -> EvaluationResult:
    """Loads a bundle and judges what was loaded; the result carries the hash of the files."""
    from rl_core.methods import load_policy

    return evaluate(load_policy(folder), make_env, evaluation_seeds(seed, episodes), n_envs=n_envs, sha256=bundle_sha256(folder))


class EnvEvaluator:
    """The Trainer's evaluator: the same seeds at every call. `last` is the newest result."""

    def __init__(self, make_env: MakeEnv, seeds: Sequence[int], *, n_envs: int = 1) -> None:
        self.make_env = make_env
        self.seeds = list(seeds)
        self.n_envs = n_envs
        self.last: EvaluationResult | None = None

    def evaluate(self, policy: Policy, step: int) -> Mapping[str, float]:
        """`eval/return_mean`, `eval/episode_length` and, where the world reports it, `eval/success_rate`."""
        self.last = evaluate(policy, self.make_env, self.seeds, n_envs=self.n_envs)
        return self.last.metrics()
