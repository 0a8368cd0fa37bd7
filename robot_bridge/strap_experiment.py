"""The runs behind docs/methods/strap.md: what is retrieved, and what a policy learns from it. See experiments/strap.yaml."""

from __future__ import annotations

import dataclasses
import fcntl
from functools import partial
from pathlib import Path
from typing import IO, Any

import gymnasium
import numpy as np

from rl_core.data.annotations import LANG
from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import read_dataset
from rl_core.methods import load_policy
from rl_core.strap.chunk_windows import is_piece
from rl_core.strap.config import BCTransformerConfig
from rl_core.strap.corpus import read_target
from rl_core.strap.embedding import Embedder, Embedding
from rl_core.strap.index import Index
from rl_core.strap.indexing import build_index
from rl_core.strap.pieces import CONTEXT, write_retrieved
from rl_core.strap.pipeline import TargetTraining
from rl_core.strap.retrieval import Retrieval, RetrievalPlan, retrieve
from rl_core.strap.scoring import corpus_tags, random_pieces, shuffled, tag_agreement
from rl_core.training.evaluation import check_disjoint, evaluate, evaluation_seeds
from rl_core.training.run import train
from rl_core.training.seeding import derive_seed
from robot_bridge.corpus import CorpusPlan, demonstration_world, record_corpus

EVALUATION_SET = 0
"""Settings were tuned on other evaluation sets, and with data of other seeds."""
RETRIEVALS: dict[str, dict[str, Any]] = {
    "strap": {},
    "classic": {"steps": "classic"},
    "single_state": {"retriever": "single-state"},
    "full_trajectory": {"retriever": "full-trajectory"},
}
"""Name in the figures -> fields of `RetrievalPlan`."""


class UntilSuccess(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Ends an episode at its first success, after which nothing can change its figure."""

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), terminated or info["success"], truncated, info


class _Data:
    """Corpus, index and target of a seed; runs side by side share them, the first one makes them.

    Args:
        config: `corpus` (fields of `CorpusPlan`), `target`, and optionally `embedding` (fields of `Embedding`).
        seed: of all demonstrations.
        folder: where to keep them.
    """

    def __init__(self, config: dict[str, Any], seed: int, folder: Path) -> None:
        self.plan = CorpusPlan(**config["corpus"], seed=seed)
        name = "-".join(f"{key}={value}" for key, value in sorted(config["corpus"].items()))
        self.folder = folder / "data" / f"seed={seed}-{name}"
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.corpus, self.target = self.folder / "prior", self.folder / "targets" / config["target"]
        self.embedding = Embedding(**{"features": "state", **config.get("embedding", {})})
        with self._alone():
            record_corpus(self.plan, self.folder, processes=1)

    def index(self) -> tuple[Index, Embedder]:
        """The corpus' features."""
        with self._alone():
            return build_index((self.corpus,), self.folder / f"index-{self.embedding.features}", self.embedding)

    def _alone(self) -> IO[str]:
        lock = open(self.folder.with_suffix(".lock"), "w")  # held until it is closed
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock


def retrieval(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Retrieves with STRAP, its ablation and the baselines without training, and scores each by the tags of primitives.

    Args:
        config: as `_Data`'s, and `pieces`, how many.
        seed: of demonstrations and draws.
        run_dir: of the run; the data lie beside it.
    """
    data = _Data(config, seed, run_dir.parent)
    index, embedder = data.index()
    target, tags = read_target(data.target), corpus_tags(index)
    rng = np.random.default_rng(derive_seed(seed, "scoring"))
    found = {name: retrieve(target, index, embedder, RetrievalPlan(pieces=config["pieces"], **plan)) for name, plan in RETRIEVALS.items()}
    strap = found["strap"]
    found["random"] = Retrieval(segments=strap.segments, pieces=random_pieces(strap.pieces, index.lengths, rng))
    mixed = shuffled(tags, rng)
    figures: dict[str, Any] = {
        "shuffled_agreement_percent": 100 * tag_agreement(strap, index, target, embedder, mixed),
        "segments": len(strap.segments),
        "primitives": len(set(np.concatenate(tags))),
    }
    for name, each in found.items():
        runs = [piece.stop - piece.start for piece in each.pieces]
        figures |= {
            f"{name}_agreement_percent": 100 * tag_agreement(each, index, target, embedder, tags),
            f"{name}_pieces": len(runs),
            f"{name}_run_mean": float(np.mean(runs)),
            f"{name}_run_deviation": float(np.std(runs)),
        }
    return figures


def policy(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains for a target and judges the saved bundle, on the task itself and with its objects farther from their places.

    Args:
        config: as `_Data`'s; `recipe` (`strap`, `bc`, `mt`, `ft`), `channels`, `updates`, `episodes`, `shifted` (judge that too); of
            `strap`: `plan` (fields of `RetrievalPlan`), `context` (false: pieces without the frames around their cut) and `told` (the
            instruction of all pieces; left out: their own).
        seed: of demonstrations and training.
        run_dir: of the run, which goes on there where it was cut.
    """
    data = _Data(config, seed, run_dir.parent)
    target = read_target(data.target)
    settings = BCTransformerConfig.preset("cpu").override(**config.get("overrides", {}))
    trainer = {"updates": config["updates"], "checkpoint_every": 1000, "seed": seed}
    options: dict[str, Any] = {"config": settings, "trainer": trainer, "channels": config["channels"], "resume": True}
    if config["recipe"] in ("mt", "ft"):
        training = TargetTraining(target=data.target, corpus=(data.corpus,), recipe=config["recipe"])
        result = training.train(run_dir / "train", **options)
    else:
        dataset = target if config["recipe"] == "bc" else _retrieved(config, data, target, seed, run_dir)
        result = train("strap", dataset, run_dir / "train", **options)
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    trained, figures = load_policy(result.bundle), {}  # type: ignore[var-annotated]
    seeds = evaluation_seeds(EVALUATION_SET, config["episodes"])
    check_disjoint(seeds, target)
    tasks = {"": config["target"], **({"shifted_": f"{config['target']}_shifted"} if config.get("shifted") else {})}
    for name, task in tasks.items():
        judged = evaluate(trained, partial(_judging_world, data.plan.world, task), seeds, n_envs=25)
        assert judged.success_rate is not None and judged.success_ci95 is not None
        low, high = judged.success_ci95
        figures |= {
            f"{name}success_percent": 100 * judged.success_rate,
            f"{name}success_percent_low": 100 * low,
            f"{name}success_percent_high": 100 * high,
            f"{name}return_mean": judged.return_mean,
        }
    return {**figures, "episodes": len(seeds)}


def _judging_world(world: Any, task: str) -> gymnasium.Env[Any, Any]:
    return UntilSuccess(demonstration_world(CorpusPlan(world=world), task))


def _retrieved(config: dict[str, Any], data: _Data, target: Dataset, seed: int, run_dir: Path) -> Dataset:
    """Pieces and demonstrations, as `armstack train strap` writes them, with what an ablation changes of the pieces."""
    index, embedder = data.index()
    found = retrieve(target, index, embedder, RetrievalPlan(**{"seed": seed, **config.get("plan", {})}))
    file = run_dir / "retrieved.hdf5"
    write_retrieved(file, found.pieces, index, target, found.segments)
    dataset = read_dataset(file)
    changed = [_changed(episode, config) if is_piece(episode) else episode for episode in dataset.episodes]
    return dataclasses.replace(dataset, episodes=tuple(changed))


def _changed(piece: Episode, config: dict[str, Any]) -> Episode:
    if "told" in config:
        piece = dataclasses.replace(piece, meta={**piece.meta, LANG: config["told"]})
    return piece if config.get("context", True) else _without_context(piece)


def _without_context(piece: Episode) -> Episode:
    """The frames that were matched, alone."""
    steps, seen = slice(CONTEXT, len(piece) - CONTEXT), slice(CONTEXT, len(piece) + 1 - CONTEXT)
    return dataclasses.replace(
        piece,
        observations={name: values[seen] for name, values in piece.observations.items()},
        actions=piece.actions[steps],
        rewards=piece.rewards[steps],
        stamps_ns=piece.stamps_ns[seen],
        action_applied=None if piece.action_applied is None else piece.action_applied[steps],
        observation_age_ns={name: ages[seen] for name, ages in piece.observation_age_ns.items()},
    )
