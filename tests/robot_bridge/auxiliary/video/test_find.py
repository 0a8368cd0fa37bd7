"""`armstack find` over a small folder of recordings."""

from __future__ import annotations

import json
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from rl_core.data.formats import write_dataset
from robot_bridge.auxiliary.video import hit_film
from robot_bridge.auxiliary.video.tempme import ClipSearcher
from tests.robot_bridge.auxiliary.fakes import small_bundle
from tests.robot_bridge.auxiliary.video.colour_clips import film
from tests.robot_bridge.auxiliary.video.recorded import PERIOD_NS, STEP_NS, dataset, write_image_bag
from tests.robot_bridge.command_line import Cli, Outcome
from tests.robot_bridge.conftest import cli

__all__ = ["cli"]

START_NS = 1_700_000_000 * 10**9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "recordings"
    write_dataset(dataset(("red", "blue"), ("blue", "red"), ("green", "yellow")), place / "one.hdf5")
    quiet = film("green", "green", np.random.default_rng(0), 8)
    write_image_bag(place / "bag", np.concatenate([quiet, film("yellow", "red", np.random.default_rng(1), 8), quiet]), START_NS)
    return place


@pytest.fixture
def find(cli: Cli, folder: Path, searcher_bundle: Path, tiny: None):
    def run(text: str, *options: object, where: Path = folder, bundle: Path = searcher_bundle) -> Outcome:
        return cli("find", text, where, "--bundle", bundle, "--index", folder.parent / "index", "--json", *options)

    return run


def test_clips_are_found_with_their_place_and_time(find, folder: Path) -> None:
    outcome = find("a blue mug then red", "--top", 3)
    assert outcome.status == 0, outcome.err
    figures = outcome.figures
    assert (figures["recordings"], figures["clips"], figures["clips_added"]) == (2, 3 + 5, 8)
    best = figures["hits"][0]
    assert (best["file"], best["episode"], best["camera"]) == (str(folder / "one.hdf5"), "demo_1", "front")
    assert 0 <= best["start_ns"] < best["end_ns"] <= 7 * STEP_NS
    assert len(figures["hits"]) == 3 and figures["hits"][0]["score"] >= figures["hits"][1]["score"]
    assert "demo_1" in "".join(outcome.err.split()) and "score" in outcome.err  # a long path goes over several lines

    best = find("a yellow mug then red").figures["hits"][0]
    assert best["file"] == str(folder / "bag") and best["camera"] == "/camera/front/image_raw" and best["episode"] == ""
    assert best["start_ns"] == START_NS + 8 * PERIOD_NS and best["end_ns"] == START_NS + 14 * PERIOD_NS


def test_what_was_looked_at_is_not_looked_at_again(find, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("a red mug").figures["clips_added"] == 8
    worked: list[int] = []
    real = ClipSearcher.clip_vector
    monkeypatch.setattr(ClipSearcher, "clip_vector", lambda self, frames: worked.append(len(frames)) or real(self, frames))
    again = find("a blue mug then red").figures
    assert again["clips_added"] == 0 and again["clips"] == 8 and not worked

    write_dataset(dataset(("yellow", "green")), folder / "two.hdf5")
    assert find("a red mug").figures["clips_added"] == 1 and len(worked) == 1
    write_dataset(dataset(("yellow", "green"), ("red", "green")), folder / "two.hdf5")  # another content at the same place
    assert find("a red mug").figures["clips_added"] == 2
    for file in (folder.parent / "index").glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    assert find("a red mug").figures["clips_added"] == 10  # damaged entries are worked out again
    (folder.parent / "index" / "known.json").write_text("no json")
    assert find("a red mug").figures["clips_added"] == 0  # only the hashes had to be worked out again


def test_hits_become_a_video_and_a_sheet(find, tmp_path: Path) -> None:
    outcome = find("a yellow mug then red", "--top", 1, "--video", tmp_path / "found.mp4", "--sheet", tmp_path / "found.png")
    assert outcome.status == 0, outcome.err
    with av.open(str(tmp_path / "found.mp4")) as video:
        pictures = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(pictures) == 7  # the hit lasts from its first to its last frame
    red, green, _ = pictures[6][18:][70:120, 70:120].mean((0, 1))
    assert red > 150 > green  # it ends red
    assert Image.open(tmp_path / "found.png").size == (8 * 192, 192 + 18)


def test_what_cannot_be_done_is_said(find, folder: Path, tmp_path: Path) -> None:
    empty, blind = tmp_path / "empty", tmp_path / "blind"
    empty.mkdir()
    write_dataset(dataset(("red", "blue"), camera=False), blind / "a.hdf5")
    other = small_bundle(tmp_path / "other")
    for outcome, says in (
        (find("  "), "text is empty, valid: what happens, in words"),
        (find("a red mug", where=empty), "no recordings; valid: bags or datasets"),
        (find("a red mug", where=tmp_path / "none"), "no such file or folder"),
        (find("a red mug", where=blind), "none of the recordings has pictures"),
        (find("a red mug", bundle=other), "bundle of method 'brightness', valid: tempme, video-lora"),
        (find("a red mug", "--top", 0), "--top 0"),
        (find("a red mug", "--video", tmp_path / "a.gif"), "the ending is '.gif', valid: .mp4"),
        (find("a red mug " * 20), "tokens with SOS and EOT"),
        *((find("a red mug", "--fps", fps), "valid: 1 or more, 1 or more, 0 to 1000") for fps in ("nan", "inf", "1e9", "-1")),
    ):
        assert outcome.status == 2 and says in outcome.err, outcome.err
    assert "words that the model does not know: elephant" in find("a red elephant").err
    assert "the model does not know" not in find("a red elephant", where=tmp_path / "none").err  # its words would hide the error


def test_a_damaged_recording_is_named_and_the_others_are_searched(find, folder: Path) -> None:
    damaged = folder / "deep" / "damaged.hdf5"
    damaged.parent.mkdir()
    damaged.write_bytes((folder / "one.hdf5").read_bytes()[:3000])
    outcome = find("a blue mug then red", "--top", 1)
    assert outcome.status == 1 and outcome.figures["hits"][0]["episode"] == "demo_1", outcome.err
    assert outcome.figures["unreadable"] == [str(damaged)] and outcome.figures["clips"] == 8
    assert "truncated, damaged or not HDF5" in outcome.err and "not searched, as they cannot be read" in outcome.err
    alone = find("a red mug", where=damaged.parent)
    assert alone.status == 2 and "no clips: 1 of 1 recordings cannot be read" in alone.err


def test_links_back_into_the_folder_find_nothing_twice(find, folder: Path) -> None:
    (folder / "again").symlink_to(folder)
    (folder / "a_link.hdf5").symlink_to(folder / "one.hdf5")
    (folder / "loop").symlink_to(folder / "loop")
    figures = find("a blue mug then red").figures
    assert (figures["recordings"], figures["clips"]) == (2, 8)
    assert {hit["file"] for hit in figures["hits"]} == {str(folder / "one.hdf5"), str(folder / "bag")}


def test_each_recording_is_read_once_for_all_its_hits(find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find("a red mug")
    read: list[str] = []
    real = hit_film.films
    monkeypatch.setattr(hit_film, "films", lambda source, period_ns: read.append(source.name) or real(source, period_ns))
    outcome = find("a red mug", "--top", 8, "--video", tmp_path / "found.mp4", "--sheet", tmp_path / "found.png")
    assert outcome.status == 0 and sorted(read) == ["bag", "one.hdf5"]
    assert Image.open(tmp_path / "found.png").size == (8 * 192, 8 * (192 + 18))


def test_an_absent_package_names_the_extra(find, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(self: ClipSearcher, frames: np.ndarray) -> np.ndarray:
        raise ImportError("libcudart.so: cannot open shared object file")

    monkeypatch.setattr(ClipSearcher, "clip_vector", absent)
    outcome = find("a red mug")
    assert outcome.status == 2 and "pip install 'armstack[vlm]'" in outcome.err and "libcudart.so" in outcome.err


def test_nothing_in_the_index_is_pickled(find, folder: Path) -> None:
    find("a red mug")
    for file in (folder.parent / "index").glob("*.npz"):
        with np.load(file, allow_pickle=False) as arrays:
            assert {arrays[name].dtype.kind for name in arrays.files} <= {"f", "i", "U"}
    assert json.loads((folder.parent / "index" / "known.json").read_text())
