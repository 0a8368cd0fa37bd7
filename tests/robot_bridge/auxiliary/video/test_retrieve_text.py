"""`armstack retrieve --text`: the corpus is narrowed to what the text says before anything is aligned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rl_core.bundle import Bundle
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.strap.embedding import Embedding
from rl_core.strap.indexing import build_index
from robot_bridge.auxiliary.video.text_scorer import TextScorer, narrow
from tests.robot_bridge.auxiliary.fakes import small_bundle
from tests.robot_bridge.auxiliary.video.colour_clips import film, loaded
from tests.robot_bridge.auxiliary.video.recorded import dataset
from tests.robot_bridge.command_line import Cli
from tests.robot_bridge.conftest import cli

__all__ = ["cli"]

TURNS = [("red", "blue"), ("blue", "red"), ("green", "yellow"), ("yellow", "green")]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    write_dataset(dataset(*TURNS, frames=24), tmp_path / "corpus.hdf5")
    write_dataset(dataset(("red", "yellow"), frames=16, lang="another task"), tmp_path / "target.hdf5")
    return tmp_path


def test_only_what_fits_the_text_is_searched(cli: Cli, given: Path, searcher_bundle: Path, tiny: None) -> None:
    paths = ("--corpus", given / "corpus.hdf5", "--target", given / "target.hdf5", "--index", given / "index", "--json")
    features = ("--embedding.features", "state", "--embedding.channels", "eef_pos", "--k", 4)
    text = ("--text", "a green mug then yellow", "--clips-bundle", searcher_bundle, "--text-share", 0.25)
    outcome = cli("retrieve", *paths, *features, *text, "--out", given / "out.hdf5", "--report", given / "page.html")
    assert outcome.status == 0, outcome.err
    assert (outcome.figures["corpus"], outcome.figures["searched"]) == (4, 1)
    retrieved = [episode for episode in read_dataset(given / "out.hdf5").episodes if "retrieved" in episode.meta]
    assert retrieved and {episode.meta["lang"] for episode in retrieved} == {"a green mug then yellow"}
    assert "a green mug then yellow" in (given / "page.html").read_text()

    for options, says in (
        (("--text", "a green mug"), "valid: a text with a bundle, or neither"),
        (("--clips-bundle", searcher_bundle), "valid: a text with a bundle, or neither"),
        ((*text[:4], "--text-share", 0), "a share above 0, at most 1"),
        ((*text, "--cluster", "local"), "--text with --cluster"),
    ):
        refused = cli("retrieve", *paths, *features, *options, "--out", given / "other.hdf5")
        assert refused.status == 2 and says in refused.err, refused.err

    for words, bundle, says in (
        ("a green mug", small_bundle(given / "other"), "bundle of method 'brightness', valid: tempme"),
        ("a green mug " * 20, searcher_bundle, "tokens with SOS and EOT; valid: at most"),
    ):
        wrong = ("--text", words, "--clips-bundle", bundle)
        refused = cli("retrieve", *paths[:4], "--index", given / "untouched", *features, *wrong, "--out", given / "other.hdf5")
        assert refused.status == 2 and says in refused.err, refused.err
    assert not (given / "untouched").exists()  # known before the corpus is embedded


def test_frames_around_what_happens_score_highest_and_vectors_are_kept(
    searcher_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searcher = loaded(Bundle.load(searcher_bundle))
    generator = np.random.default_rng(2)
    frames = np.concatenate([film(*turn, generator, 8) for turn in (("green", "green"), ("blue", "red"), ("green", "green"))])
    scorer = TextScorer(searcher, "bundle", "a blue mug then red", tmp_path)
    scores = scorer.score(frames, 0.25)
    assert scores.shape == (24,) and 8 <= scores.argmax() < 16 and scores[12] > scores[0]
    monkeypatch.setattr(searcher, "clip_vector", None)  # everything is known
    assert np.array_equal(TextScorer(searcher, "bundle", "a blue mug then red", tmp_path).score(frames, 0.25), scores)


def test_a_narrowed_index_has_the_rows_of_the_whole_one(given: Path) -> None:
    index, _ = build_index((given / "corpus.hdf5",), given / "index", Embedding(features="state", channels=("eef_pos",)))

    class Redness:
        def score(self, frames: np.ndarray, period_s: float) -> np.ndarray:
            assert frames.shape == (24, 24, 24, 3) and period_s == pytest.approx(0.1)
            return frames[:, 8:16, 8:16].mean((1, 2))[:, 0] - frames[:, 8:16, 8:16].mean((1, 2))[:, 1]

    few, scores = narrow(index, Redness(), 0.5)
    assert [trajectory.demo for trajectory in few.trajectories] == ["demo_0", "demo_1"] and len(few) == 2 and len(scores) == 4
    few.verify()
    assert np.array_equal(few.block(0, 2), index.block(0, 2)) and np.array_equal(few.block(1, 2), index.block(1, 2))
    last = narrow(index, Redness(), 0.01)[0]
    assert len(last) == 1 and few.block(1, 1).shape == (0, index.size)
