"""`armstack train strap`: with a target and a corpus, or on a dataset like any other method."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rl_core.bundle import Bundle
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.methods import load_policy
from rl_core.strap import policy_instructions
from tests.rl_core.strap.policy.told import Hashed
from tests.robot_bridge.command_line import Cli

TINY = (
    "--preset",
    "cpu",
    "--config.layers",
    "1",
    "--config.width",
    "16",
    "--config.heads",
    "2",
    "--config.batch-size",
    "8",
    "--updates",
    "4",
)


@pytest.fixture(autouse=True)
def _hashed_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_instructions, "sentence_encoder", Hashed)


@pytest.fixture
def places(data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """(target, corpus): the first demonstration, and the others under another instruction."""
    recorded = read_dataset(data)
    said = [dataclasses.replace(e, meta={**e.meta, "lang": "lift it" if i else "raise the cube"}) for i, e in enumerate(recorded.episodes)]
    target, corpus = tmp_path / "target.hdf5", tmp_path / "corpus.hdf5"
    write_dataset(dataclasses.replace(recorded, episodes=tuple(said[:1])), target)
    write_dataset(dataclasses.replace(recorded, episodes=tuple(said[1:])), corpus)
    return target, corpus


def test_a_target_and_a_corpus_become_a_bundle(cli: Cli, places: tuple[Path, Path], tmp_path: Path) -> None:
    target, corpus = places
    retrieval = ("--target", target, "--corpus", corpus, "--k", "3", "--embedding.features", "state", "--stops.min-length", "4")
    outcome = cli("train", "strap", *retrieval, "--run-dir", tmp_path / "run", *TINY, "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.figures["finished"] and Bundle.load(outcome.figures["bundle"]).method == "strap"
    policy = load_policy(outcome.figures["bundle"])
    assert set(policy.instructions) == {"raise the cube", "lift it"}  # type: ignore[attr-defined]
    assert read_dataset(tmp_path / "run" / "retrieved.hdf5").episodes[-1].meta["lang"] == "raise the cube"
    # what it wrote is a dataset like any other
    again = cli(
        "train", "bc_transformer", "--dataset", tmp_path / "run" / "retrieved.hdf5", "--run-dir", tmp_path / "again", *TINY, "--json"
    )
    assert again.status == 0 and Bundle.load(again.figures["bundle"]).method == "bc_transformer"


def test_what_is_missing_or_too_much_is_said(cli: Cli, places: tuple[Path, Path], tmp_path: Path) -> None:
    target, corpus = places
    for given, says in (
        (("--target", target), "corpus []; valid: both, or a dataset alone"),
        (("--corpus", corpus), "target None"),
        (("--target", target, "--corpus", corpus, "--dataset", target), "--dataset and --target: both given"),
        ((), "learns from a dataset; give its path"),
        (("--target", target, "--corpus", target, "--embedding.features", "state"), "target demonstrations are in the corpus too"),
    ):
        outcome = cli("train", "strap", *given, "--run-dir", tmp_path / "run", *TINY)
        assert outcome.status == 2 and says in " ".join(outcome.err.split()), outcome.err


def test_its_help_names_the_recipes(cli: Cli) -> None:
    outcome = cli("train", "strap", "--help")
    assert outcome.status == 0
    options = ("--target", "--corpus", "--recipe", "--k", "--index", "--config.context", "--embedding.features")
    assert [option for option in options if option not in outcome.out] == []
    assert "--target" not in cli("train", "bc_transformer", "--help").out
