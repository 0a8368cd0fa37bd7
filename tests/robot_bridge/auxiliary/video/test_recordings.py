"""Films of bags and datasets, their windows, and clips to train on from one's own recordings."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from PIL import Image

from rl_core.data.episode import DatasetError
from rl_core.data.formats import write_dataset
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.film import Unread
from robot_bridge.auxiliary.video.pictures import pixels
from robot_bridge.auxiliary.video.recorded_clips import FRAMES, read_clips
from robot_bridge.auxiliary.video.recordings import content_hash, films, find_recordings
from robot_bridge.auxiliary.video.windows import windows
from tests.robot_bridge.auxiliary.video.colour_clips import film
from tests.robot_bridge.auxiliary.video.recorded import PERIOD_NS, cut_in_half, dataset, write_bag, write_image_bag

SECOND = 1_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(dataset(("red", "blue"), ("blue", "red")), tmp_path / "one.hdf5")
    write_dataset(dataset(("green", "yellow")), tmp_path / "deep" / "lerobot", "lerobot")
    write_dataset(dataset(("red", "green")), tmp_path / "deep" / "written.mcap", "mcap")
    write_image_bag(tmp_path / "deep" / "bag", film("yellow", "red", np.random.default_rng(0), 8), 1_700_000_000 * SECOND)
    (tmp_path / "notes.txt").write_text("none of these")
    return tmp_path


def test_all_recordings_of_a_folder_are_found_and_give_upright_films(folder: Path) -> None:
    found = find_recordings(folder)
    assert [path.name for path in found] == ["bag", "lerobot", "written.mcap", "one.hdf5"]
    expected = {"bag": ("yellow", "red"), "lerobot": ("green", "yellow"), "written.mcap": ("red", "green")}
    colours = {"red": 0, "green": 1}
    for path in found[:3]:
        (one,) = films(path)
        assert len(one.frames) == len(one.stamps_ns) == 8
        first = expected[path.name][0]
        middle = np.asarray(one.frames[0])[8:16, 8:16].mean((0, 1))
        assert middle.argmax() == colours.get(first, middle.argmax()) and np.asarray(one.frames[0]).shape == (24, 24, 3)
    both = list(films(found[3]))
    assert [one.lang for one in both] == ["a red mug then blue", "a blue mug then red"] and both[0].camera == "front"
    direct = dataset(("red", "blue")).episodes[0].observations["front"][:, ::-1]
    assert np.array_equal(both[0].frames, direct)


def test_a_bag_is_read_at_the_rate_that_is_needed(folder: Path) -> None:
    (one,) = films(folder / "deep" / "bag", 2 * PERIOD_NS)
    assert np.diff(one.stamps_ns).tolist() == [2 * PERIOD_NS] * 3 and one.stamps_ns[0] == 1_700_000_000 * SECOND


def test_a_bag_in_which_time_begins_anew_has_several_episodes(tmp_path: Path) -> None:
    write_dataset(dataset(("red", "blue"), ("blue", "red")), tmp_path / "two.mcap", "mcap")
    first, second = films(tmp_path / "two.mcap")
    assert (first.episode, second.episode) == ("0", "1") and first.camera == second.camera
    assert first.stamps_ns.tolist() == second.stamps_ns.tolist() and len(first.frames) == 8
    assert not np.array_equal(first.frames[0], second.frames[0])


def test_the_hash_follows_every_byte(folder: Path) -> None:
    before = {path: content_hash(path) for path in find_recordings(folder)}
    file = next((folder / "deep" / "bag").glob("*.mcap"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    after = {path: content_hash(path) for path in before}
    assert [path.name for path in before if before[path] != after[path]] == ["bag"]


def test_nothing_to_read_says_what_would_be(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match="no such file or folder"):
        find_recordings(tmp_path / "none")
    with pytest.raises(VideoError, match=r"no recordings; valid: bags or datasets \(.*lerobot"):
        find_recordings(tmp_path)


def test_colours_of_bayer_and_yuv_are_read() -> None:
    for pattern, (red, blue) in {"rggb": (0, 3), "bggr": (3, 0), "gbrg": (2, 1), "grbg": (1, 2)}.items():
        cell = np.full(4, 60, np.uint8)
        cell[[red, blue]] = 200, 10
        mosaic = np.tile(cell.reshape(2, 2), (3, 4))
        found = pixels(SimpleNamespace(encoding=f"bayer_{pattern}8", height=6, width=8, step=8, data=mosaic.ravel()), "here")
        assert found is not None and found.shape == (3, 4, 3) and (found == (200, 60, 10)).all()
    packed = np.random.default_rng(0).integers(30, 220, (4, 6, 2)).astype(np.uint8)
    for encoding, code in {"yuv422": cv2.COLOR_YUV2RGB_UYVY, "yuv422_yuy2": cv2.COLOR_YUV2RGB_YUYV}.items():
        padded = np.pad(packed.reshape(4, 12), ((0, 0), (0, 5)))
        found = pixels(SimpleNamespace(encoding=encoding, height=4, width=6, step=17, data=padded.ravel()), "here")
        assert found is not None and np.abs(found.astype(int) - cv2.cvtColor(packed, code)).max() <= 2


def test_topics_that_are_not_searched_and_pictures_that_are_damaged_are_named(tmp_path: Path) -> None:
    grey = np.full((24, 24), 100, np.uint8)
    jpeg, png = io.BytesIO(), io.BytesIO()
    Image.fromarray(grey).save(jpeg, "JPEG")
    Image.fromarray(grey.astype(np.uint16)).save(png, "PNG")
    topics = {
        "/bayer": [("bayer_rggb8", grey)] * 2,
        "/depth": [("16UC1", grey.astype(np.uint16))] * 2,
        "/metres": [("32FC1", grey.astype(np.float32))] * 2,
        "/small/compressed": [("jpeg", jpeg.getvalue()), ("jpeg", jpeg.getvalue()[:60]), ("jpeg", b"none")],
        "/depth/compressed": [("16UC1; png compressed ", png.getvalue())],
        "/depth/compressedDepth": [("16UC1; compressedDepth png", b"twelve bytes" + png.getvalue())],
        "/short": [("mono8", grey), ("yuv422", grey)],
    }
    unread = Unread()
    found = {film.camera: len(film.frames) for film in films(write_bag(tmp_path / "bag", topics, SECOND), 0, unread)}
    assert found == {"/bayer": 2, "/small/compressed": 1, "/short": 1}
    assert unread.unsearched == [
        "topic /depth: encoding 16UC1 is not searched",
        "topic /metres: encoding 32FC1 is not searched",
        "topic /depth/compressed: format 16UC1; png compressed  is not searched",
        "topic /depth/compressedDepth: format 16UC1; compressedDepth png is not searched",
    ]
    assert unread.damage == [
        "2 of its pictures cannot be read, the last: topic /small/compressed: 4 bytes of format 'jpeg' are no picture that can be read",
        "1 of its pictures cannot be read, the last: topic /short: 576 bytes, step 24, for 24x24 yuv422",
    ]


def test_what_lies_before_the_damage_of_a_bag_is_taken_and_the_damage_is_told(folder: Path) -> None:
    file, unread = folder / "cut.mcap", Unread()
    cut_in_half(folder / "deep" / "bag", file)
    data = file.read_bytes()
    (one,) = films(file, 0, unread)
    assert 0 < len(one.frames) < 8 and len(unread.damage) == 1 and "it ends in the middle or is damaged" in unread.damage[0]
    for nothing in (data[:300], np.random.default_rng(0).bytes(5000), b""):
        file.write_bytes(nothing)
        with pytest.raises(DatasetError, match=r"cut.mcap: it ends in the middle or is damaged"):
            list(films(file))


def test_a_file_is_known_by_its_content(folder: Path) -> None:
    (folder / "one.hdf5").rename(folder / "one.mcap")
    (folder / "deep" / "written.mcap").rename(folder / "deep" / "written.bag")
    assert [path.name for path in find_recordings(folder)] == ["bag", "lerobot", "written.bag", "one.mcap"]
    assert [film.episode for film in films(folder / "one.mcap")] == ["demo_0", "demo_1"]
    assert len(list(films(folder / "deep" / "written.bag"))) == 1


def test_what_cannot_be_read_as_it_lies_there_says_why(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "killed_0.db3").write_bytes(b"SQLite format 3\0")
    (tmp_path / "gone.mcap").symlink_to(tmp_path / "elsewhere.mcap")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    part, gone = sorted(find_recordings(tmp_path), key=lambda path: path.name, reverse=True)
    with pytest.raises(VideoError, match=r"killed_0.db3: part of a bag; valid: its folder, with metadata.yaml, which `ros2 bag reindex`"):
        list(films(part))
    with pytest.raises(VideoError, match=r"gone.mcap: a link to .*elsewhere.mcap, which is not there"):
        list(films(gone))


def test_windows_overlap_by_half_and_reach_the_end() -> None:
    stamps = np.arange(41, dtype=np.int64) * SECOND // 4  # ten seconds
    found = windows(stamps, frames=4, fps=2.0)
    assert found[0].rows == (0, 2, 4, 6) and found[1].rows == (4, 6, 8, 10) and found[-1].rows[-1] == 40
    assert [window.rows for window in windows(stamps[:7], frames=4, fps=2.0)] == [(1, 2, 4, 5)]
    assert [window.rows for window in windows(stamps[:2], frames=4, fps=2.0)] == [(0, 1)]
    assert [window.rows for window in windows(stamps[:1], frames=4, fps=2.0)] == [(0,)]


def test_own_recordings_become_clips_with_their_words(folder: Path) -> None:
    data = read_clips(folder)
    assert sorted(data.meanings) == ["a blue mug then red", "a green mug then yellow", "a red mug then blue"]  # bags have no words
    assert data.frames.shape == (3, FRAMES, 128, 128, 3) and set(data.lengths) == {8} and data.mask.sum() == 24
    assert not data.ordered.any() and len(set(data.groups)) == 3


def test_recordings_without_words_or_pictures_are_refused(tmp_path: Path) -> None:
    write_dataset(dataset(("red", "blue"), lang=""), tmp_path / "wordless" / "a.hdf5")
    with pytest.raises(VideoError, match="1 films without words; valid: episodes with an image channel and meta.lang"):
        read_clips(tmp_path / "wordless")
    write_dataset(dataset(("red", "blue"), camera=False), tmp_path / "blind" / "a.hdf5")
    with pytest.raises(VideoError, match="recordings without pictures"):
        read_clips(tmp_path / "blind")
