from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rl_core.data.formats import read_dataset, write_dataset
from tests.rl_core.strap.retrieval.demos import corpus, target
from tests.robot_bridge.command_line import Cli

STATE = ("--embedding.features", "state", "--embedding.channels", "eef_pos")


@pytest.fixture
def given(tmp_path: Path) -> Path:
    write_dataset(corpus(), tmp_path / "corpus" / "prior.hdf5")
    write_dataset(target(), tmp_path / "target.hdf5")
    return tmp_path


def call(cli: Cli, given: Path, *options: str, out: str = "retrieved.hdf5"):
    paths = ("--corpus", str(given / "corpus"), "--target", str(given / "target.hdf5"), "--out", str(given / out))
    return cli("retrieve", *paths, "--index", str(given / "index"), "--k", "8", "--json", *STATE, *options)


def test_a_dataset_and_a_page_of_film_strips_come_out(cli: Cli, given: Path) -> None:
    outcome = call(cli, given, "--report", str(given / "report.html"))
    assert outcome.status == 0, outcome.err
    figures = outcome.figures
    assert (figures["corpus"], figures["segments"], figures["pieces"]) == (12, 4, 8)
    read = read_dataset(given / "retrieved.hdf5")
    assert [episode.meta["lang"] for episode in read.episodes].count("go c d a") == 2 and len(read) == 10
    page = (given / "report.html").read_text()
    assert page.count("data:image/png") == 1 + 4 + 8 and "go b c d" in page and "go d a b" in page
    costs = [episode.meta["retrieved"]["cost"] for episode in read.episodes[:8]]
    assert all(f"{cost:.4g}" in page for cost in costs)

    again = call(cli, given, out="again.hdf5")
    assert again.status == 0 and again.figures["frames"] == figures["frames"]


def test_what_cannot_be_done_is_said_before_the_corpus_is_embedded(cli: Cli, given: Path) -> None:
    (given / "retrieved.hdf5").write_bytes(b"mine")
    for options, words in (
        ((), "is there already"),
        (("--out", str(given / "target.hdf5"), "--overwrite"), "is read too"),
        (("--overwrite", "--report", str(given / "page.txt")), "valid: .html"),
        (("--overwrite", "--threads", "0"), "valid: 1 or more"),
        (("--overwrite", "--cluster", "local", "--retriever", "flow"), "--cluster is for --retriever strap"),
    ):
        outcome = call(cli, given, *options)
        assert outcome.status == 2 and words in outcome.err, outcome.err
    assert not (given / "index").exists() and (given / "retrieved.hdf5").read_bytes() == b"mine"


def test_a_damaged_index_is_named(cli: Cli, given: Path) -> None:
    assert call(cli, given).status == 0
    features = given / "index" / "features.f16"
    spoilt = bytearray(features.read_bytes())
    spoilt[100] ^= 255
    features.write_bytes(bytes(spoilt))
    outcome = call(cli, given, out="other.hdf5")
    assert outcome.status == 2 and "damaged: trajectory 0" in outcome.err and not (given / "other.hdf5").exists()


def test_a_baseline_without_cameras_has_a_page_of_curves(cli: Cli, tmp_path: Path) -> None:
    for data, name in ((corpus(), "corpus/prior.hdf5"), (target(), "target.hdf5")):
        blind = dataclasses.replace(data, contract=data.contract.select(("eef_pos", "gripper_pos")))
        write_dataset(blind, tmp_path / name)
    outcome = call(cli, tmp_path, "--report", str(tmp_path / "report.html"), "--retriever", "single-state")
    assert outcome.status == 0, outcome.err
    page = (tmp_path / "report.html").read_text()
    assert "the longest pieces" in page and page.count("data:image/png") == 1 + 1 + min(4, outcome.figures["pieces"])
