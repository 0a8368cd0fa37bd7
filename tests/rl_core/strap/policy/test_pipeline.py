"""The whole pipeline of a target task, on state features of a corpus that was made up."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_core.bundle import Bundle
from rl_core.contract import Channel
from rl_core.data.annotations import RETRIEVED
from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.methods import load_policy
from rl_core.strap.chunk_windows import instruction_of, is_piece
from rl_core.strap.config import BCTransformerConfig
from rl_core.strap.embedding import Embedding
from rl_core.strap.pipeline import TargetTraining
from rl_core.training.config import ConfigError
from tests.rl_core.strap.policy.told import CONTRACT

HAND = dataclasses.replace(CONTRACT, observation=(Channel(name="eef_pos", names=("x", "y", "z"), unit="m", frame="base"),))
TINY = BCTransformerConfig.preset("cpu").override(layers=1, width=16, heads=2, batch_size=8)
TARGET = "go along, then up"


def _path(*legs: tuple[float, float, float], uuid: str, lang: str, seed: int) -> Episode:
    """Straight legs of 25 steps of 2 cm each, with a stop of 5 steps after each."""
    rng = np.random.default_rng(seed)
    speeds = np.concatenate([np.concatenate([np.tile(leg, (25, 1)), np.zeros((5, 3))]) for leg in legs]) * 0.02
    positions = np.concatenate([np.zeros((1, 3)), np.cumsum(speeds, 0)]) + rng.normal(0, 1e-4, (len(speeds) + 1, 3))
    return Episode(
        observations={"eef_pos": positions.astype(np.float32)},
        actions=(speeds[:, :2] * 20).astype(np.float32),
        rewards=np.zeros(len(speeds), np.float32),
        terminal=True,
        truncated=False,
        stamps_ns=np.arange(len(positions), dtype=np.int64) * 50_000_000,
        success=True,
        uuid=uuid,
        meta={"lang": lang, "seed": seed},
    )


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(target, corpus): the target goes along x, then up; the corpus holds tasks that begin or end like it, and one that does not."""
    folder = tmp_path_factory.mktemp("strap")
    tasks = {"along, then aside": (X, Y), "along, then down": (X, (0.0, 0.0, -1.0)), "aside, then back": (Y, (0.0, -1.0, 0.0))}
    for number, (lang, legs) in enumerate(tasks.items()):
        episodes = tuple(_path(*legs, uuid=f"p{number}{i}", lang=lang, seed=10 * number + i) for i in range(3))
        write_dataset(Dataset(contract=HAND, episodes=episodes), folder / "corpus" / f"{number}.hdf5")
    target = tuple(_path(X, Z, uuid=f"t{i}", lang=TARGET, seed=100 + i) for i in range(2))
    write_dataset(Dataset(contract=HAND, episodes=target), folder / "target.hdf5")
    return folder / "target.hdf5", folder / "corpus"


def _train(places: tuple[Path, Path], run_dir: Path, updates: int = 4, resume: bool = False, **settings: Any):  # type: ignore[no-untyped-def]
    made = TargetTraining(target=places[0], corpus=(places[1],), embedding=Embedding(features="state"), k=8, **settings)
    told: list[str] = []
    trainer = {"updates": updates, "checkpoint_every": 2}
    result = made.train(run_dir, config=TINY, trainer=trainer, progress=lambda what, *n: told.append(what), resume=resume)
    return result, told


def test_pieces_are_retrieved_kept_with_their_instruction_and_trained_on(places: tuple[Path, Path], tmp_path: Path) -> None:
    result, told = _train(places, tmp_path / "run")
    data = read_dataset(tmp_path / "run" / "retrieved.hdf5")
    pieces = [e for e in data.episodes if is_piece(e)]
    assert 4 <= len(pieces) <= 8 and len(data) == len(pieces) + 2
    assert TARGET not in map(instruction_of, pieces) and {"along, then aside", "along, then down"} & set(map(instruction_of, pieces))
    assert all(len(piece) == piece.meta[RETRIEVED]["stop"] - piece.meta[RETRIEVED]["start"] + 10 for piece in pieces)
    policy = load_policy(result.bundle)
    assert TARGET in policy.instructions and set(map(instruction_of, pieces)) <= set(policy.instructions)
    assert policy.prepare({})["language"].equal(policy.prepare({"task": TARGET})["language"])
    assert Bundle.load(result.bundle).method == "strap" and {"embedding", "writing pieces"} <= set(told)


def test_what_was_retrieved_is_not_retrieved_again_and_the_run_goes_on(places: tuple[Path, Path], tmp_path: Path) -> None:
    whole, _ = _train(places, tmp_path / "whole", updates=6)
    _train(places, tmp_path / "cut", updates=4)
    file = tmp_path / "cut" / "retrieved.hdf5"
    stamp = file.stat().st_mtime_ns
    result, told = _train(places, tmp_path / "cut", updates=6, resume=True)
    assert file.stat().st_mtime_ns == stamp and "writing pieces" not in told
    a, b = Bundle.load(whole.bundle), Bundle.load(result.bundle)
    assert all(a.weights[name].equal(b.weights[name]) for name in a.weights)
    note = tmp_path / "cut" / "retrieval.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "target": "another"}))
    assert "writing pieces" in _train(places, tmp_path / "cut", updates=6, resume=True)[1]


def test_an_index_serves_several_targets(places: tuple[Path, Path], tmp_path: Path) -> None:
    _train(places, tmp_path / "a", index=tmp_path / "index")
    before = (tmp_path / "index" / "trajectories.txt").read_bytes()
    _train(places, tmp_path / "b", index=tmp_path / "index")
    assert (tmp_path / "index" / "trajectories.txt").read_bytes() == before and before.count(b"\n") == 9
    assert not (tmp_path / "a" / "index").exists() and not (tmp_path / "b" / "index").exists()


def test_multi_task_trains_on_all_and_acts_on_the_target(places: tuple[Path, Path], tmp_path: Path) -> None:
    result, told = _train(places, tmp_path / "run", recipe="mt")
    policy = load_policy(result.bundle)
    assert policy.instructions == ("along, then aside", "along, then down", "aside, then back", TARGET)
    assert policy.prepare({})["language"].equal(policy.prepare({"task": TARGET})["language"])
    assert set(told) == {"reading"} and not (tmp_path / "run" / "retrieved.hdf5").exists()


def test_fine_tuning_halves_the_updates_and_names_its_parent(places: tuple[Path, Path], tmp_path: Path) -> None:
    result, _ = _train(places, tmp_path / "run", updates=5, recipe="ft")
    before, after = Bundle.load(tmp_path / "run" / "pretraining" / "bundle"), Bundle.load(result.bundle)
    steps = [json.loads((tmp_path / "run" / part / "config.json").read_text())["trainer"]["updates"] for part in ("pretraining", "")]
    assert steps == [2, 3] and len(after.parents) == 1 and not before.parents
    assert load_policy(result.bundle).instructions == (TARGET,) and before.normalizer == after.normalizer
    again, _ = _train(places, tmp_path / "run", updates=5, recipe="ft", resume=True)
    assert Bundle.load(again.bundle).weights.keys() == after.weights.keys() and again.finished


def test_what_does_not_fit_is_said_before_anything_is_trained(places: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"corpus \[\]; valid: both"):
        TargetTraining(target=places[0]).train(tmp_path, config=TINY, trainer={"updates": 1})
    with pytest.raises(ConfigError, match="init_from: given together with a target"):
        TargetTraining(target=places[0], corpus=(places[1],)).train(tmp_path, config=TINY, trainer={"updates": 1}, init_from="x")
    two = read_dataset(places[0])
    other = dataclasses.replace(two.episodes[0], uuid="other", meta={"lang": "something else"})
    write_dataset(dataclasses.replace(two, episodes=(*two.episodes, other)), tmp_path / "two.hdf5")
    with pytest.raises(ConfigError, match="demonstrations of several tasks .*'something else': 1"):
        _train((tmp_path / "two.hdf5", places[1]), tmp_path / "run")
