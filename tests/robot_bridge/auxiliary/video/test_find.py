"""`armstack find` over a small folder of recordings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from rl_core.data.formats import write_dataset
from robot_bridge.auxiliary.video import hit_film
from robot_bridge.auxiliary.video.clip_index import Hit
from robot_bridge.auxiliary.video.tempme import ClipSearcher
from tests.robot_bridge.auxiliary.fakes import small_bundle
from tests.robot_bridge.auxiliary.video.colour_clips import film
from tests.robot_bridge.auxiliary.video.recorded import PERIOD_NS, STEP_NS, cut_in_half, dataset, write_bag, write_image_bag
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
        with np.load(file) as arrays:
            older = {name: arrays[name] for name in arrays.files if name not in ("damage", "unsearched")}
        np.savez(file, **older)
    assert find("a red mug").figures["clips_added"] == 10  # entries of an older version are worked out again
    for file in (folder.parent / "index").glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    assert find("a red mug").figures["clips_added"] == 10  # and so are damaged ones
    (folder.parent / "index" / "known.json").write_text("no json")
    assert find("a red mug").figures["clips_added"] == 0  # only the hashes had to be worked out again


def test_hits_become_a_video_and_a_sheet(find, tmp_path: Path) -> None:
    outcome = find("a yellow mug then red", "--top", 1, "--video", tmp_path / "found.mp4", "--sheet", tmp_path / "found.png")
    assert outcome.status == 0, outcome.err
    with av.open(str(tmp_path / "found.mp4")) as video:
        pictures = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(pictures) == 7  # the hit lasts from its first to its last frame
    red, green, _ = pictures[6][42:][70:120, 70:120].mean((0, 1))
    assert red > 150 > green  # it ends red
    assert Image.open(tmp_path / "found.png").size == (8 * 192, 192 + 42)


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
        (find("a red mug", "--index", "/proc/index"), "--index /proc/index: nothing can be written into /proc"),
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


def test_damage_is_said_at_every_question(find, folder: Path) -> None:
    cut_in_half(folder / "bag", folder / "a.mcap")
    whole = (folder / "a.mcap").read_bytes()
    for name, data in {"b.mcap": whole[:300], "c.mcap": np.random.default_rng(0).bytes(5000), "empty.mcap": b"", "empty.hdf5": b""}.items():
        (folder / name).write_bytes(data)
    for turn in range(2):
        outcome = find("a blue mug then red")
        assert outcome.status == 1, turn
        names = ["b.mcap", "c.mcap", "empty.hdf5", "empty.mcap"]
        assert outcome.figures["unreadable"] == [str(folder / name) for name in names], turn
        assert outcome.figures["damaged"] == [str(folder / "a.mcap")], turn
        told = "".join(outcome.err.split())
        assert "a.mcap:itendsinthemiddleorisdamaged:" in told and ";therestissearched" in told, turn
        assert "searchedinpart:" in told and "empty.hdf5:truncated,damagedornotHDF5" in told and "nopictures" not in told, turn


def test_depth_images_are_named_and_are_no_error(find, folder: Path) -> None:
    write_bag(folder / "deep", {"/depth": [("16UC1", np.zeros((24, 24), np.uint16))] * 3}, START_NS)
    for _ in range(2):
        outcome = find("a red mug")
        assert outcome.status == 0 and outcome.figures["unsearched"] == [f"{folder / 'deep'}: topic /depth: encoding 16UC1 is not searched"]
        assert "encoding16UC1isnotsearched" in "".join(outcome.err.split()) and "no pictures" not in outcome.err


def test_a_sentence_that_is_too_long_is_refused_before_anything_is_looked_at(find, folder: Path) -> None:
    outcome = find("a red mug " * 20)
    assert outcome.status == 2 and "tokens with SOS and EOT; valid: at most" in outcome.err
    assert f"text {('a red mug ' * 6)!r}".rstrip("'") in outcome.err and len(outcome.err) < 200
    assert "looking at recordings" not in outcome.err and not (folder.parent / "index").exists()


def test_titles_tell_hits_of_two_cameras_and_times_apart() -> None:
    hit = Hit(source=Path("one.hdf5"), episode="demo_1", camera="front", start_ns=0, end_ns=1, score=0.5)
    assert hit_film.title_of(1, hit) == "1. 0.50  0.00 s\none.hdf5 demo_1\nfront"
    later = replace(hit, camera=f"/{'arm/' * 9}wrist", start_ns=START_NS + 20_000_000)
    assert hit_film.title_of(2, later) == "2. 0.50  2023-11-14 22:13:20.02\none.hdf5 demo_1\n..." + f"/{'arm/' * 9}wrist"[-33:]
    pictures = [np.zeros((24, 24, 3), np.uint8)]
    shown = [np.asarray(hit_film._titled(pictures[0], hit_film.title_of(1, each))) for each in (hit, replace(hit, camera="wrist"))]
    assert (shown[0][:42] != shown[1][:42]).any() and (shown[0][42:] == 0).all()


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
    assert Image.open(tmp_path / "found.png").size == (8 * 192, 8 * (192 + 42))


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
