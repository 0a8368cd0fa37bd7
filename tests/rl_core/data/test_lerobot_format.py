"""LeRobot v3: what we write comes back, and is what LeRobot expects."""

import json
from dataclasses import replace

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_core.data.episode import Dataset
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import lerobot_tables, lerobot_video
from rl_core.data.formats.lerobot import LeRobotFormat
from tests.rl_core.data.rich_dataset import rich_dataset

FORMAT = LeRobotFormat()
CAMERAS = {"observation.images.front": "front", "observation.images.wrist": "wrist", "observation.images.thumb": "thumb"}


@pytest.fixture
def rich() -> Dataset:
    return rich_dataset()


def load(folder):
    """info.json, the episode rows, the frames: as anybody reads them who knows LeRobot's layout."""
    info = json.loads((folder / "meta/info.json").read_text())
    episodes = [row for path in sorted(folder.glob("meta/episodes/*/*.parquet")) for row in pq.read_table(path).to_pylist()]
    frames = pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("data/*/*.parquet")))
    return info, episodes, frames


def numbers(frames, key):
    return np.array(frames.column(key).to_pylist())


def test_everything_comes_back(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift")
    assert FORMAT.matches(tmp_path / "lift")
    read = FORMAT.read(tmp_path / "lift")
    assert FORMAT.cannot_hold == {} and read.contract == rich.contract and read.source == str(tmp_path / "lift")
    assert fingerprint(read) == fingerprint(rich)


def test_everything_comes_back_from_many_files(tmp_path, rich, monkeypatch):
    monkeypatch.setattr(lerobot_tables, "DATA_FILE_MB", 1e-3)
    monkeypatch.setattr(lerobot_video, "VIDEO_FILE_MB", 4e-2)
    monkeypatch.setattr(lerobot_tables, "CHUNK_FILES", 2)
    monkeypatch.setattr(lerobot_video, "CHUNK_FILES", 2)
    many = replace(rich, episodes=tuple(replace(episode, uuid=f"{k}-{episode.uuid}") for k in range(2) for episode in rich.episodes))
    FORMAT.write(many, tmp_path / "lift")
    assert fingerprint(FORMAT.read(tmp_path / "lift")) == fingerprint(many)
    data = [str(path.relative_to(tmp_path / "lift/data")) for path in sorted(tmp_path.glob("lift/data/*/*"))]
    assert len(data) > 2 and data[:3] == ["chunk-000/file-000.parquet", "chunk-000/file-001.parquet", "chunk-001/file-000.parquet"]
    _, episodes, frames = load(tmp_path / "lift")
    places = {(row["data/chunk_index"], row["data/file_index"]) for row in episodes}
    assert len(places) == len(data) and len(list(tmp_path.glob("lift/videos/observation.images.front/*/*.mp4"))) > 2
    np.testing.assert_array_equal(numbers(frames, "index"), np.arange(many.steps))


def test_the_tables_are_what_lerobot_expects(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift")
    info, episodes, frames = load(tmp_path / "lift")
    assert (info["codebase_version"], info["robot_type"], info["total_episodes"], info["total_frames"]) == ("v3.0", "panda", 4, 15)
    assert info["fps"] == pytest.approx(1 / 0.03, rel=1e-6) and info["splits"] == {"train": "0:4"}
    # LeRobot casts the table to the features: the two must name the same columns
    assert set(frames.column_names) == {key for key, feature in info["features"].items() if feature["dtype"] != "video"}
    assert not [key for key in info["features"] if "/" in key or key.startswith("action") and key != "action"]
    for key, feature in info["features"].items():
        if feature["dtype"] == "video":
            continue
        kind = frames.schema.field(key).type
        size = kind.list_size if pa.types.is_fixed_size_list(kind) else 1
        value = kind.value_type if pa.types.is_fixed_size_list(kind) else kind
        assert ([size], str(value)) == (feature["shape"], {"float32": "float", "float64": "double"}.get(feature["dtype"], feature["dtype"]))
        assert feature["names"] is None or len(feature["names"]) == size
    assert info["features"]["observation.state"]["names"] == ["joint_pos.b", "joint_pos.a"]

    np.testing.assert_array_equal(numbers(frames, "index"), np.arange(15))
    first = 0
    for index, (row, episode) in enumerate(zip(episodes, rich.episodes, strict=True)):
        assert (row["episode_index"], row["length"]) == (index, len(episode))
        assert (row["dataset_from_index"], row["dataset_to_index"]) == (first, first + len(episode))
        part = frames.slice(first, len(episode))
        assert set(numbers(part, "episode_index")) == {index}
        np.testing.assert_array_equal(numbers(part, "frame_index"), np.arange(len(episode)))
        assert np.abs(np.diff(numbers(part, "timestamp")) - 1 / info["fps"]).max(initial=0) < 1e-4  # LeRobot's tolerance
        np.testing.assert_array_equal(numbers(part, "stamp_ns"), episode.stamps_ns[:-1])
        np.testing.assert_array_equal(numbers(part, "action").astype(np.float32), episode.actions)
        np.testing.assert_array_equal(numbers(part, "observation.channels.clock"), episode.observations["clock"][:-1, 0])
        np.testing.assert_array_equal(numbers(part, "next.done"), [False] * (len(episode) - 1) + [episode.terminal])
        first += len(episode)
    tasks = pq.read_table(tmp_path / "lift/meta/tasks.parquet")
    texts = dict(zip(tasks.column("task_index").to_pylist(), tasks.column("task").to_pylist(), strict=True))
    assert [row["tasks"] for row in episodes] == [["Würfel heben 立方体"], ["panda"], ["Würfel heben 立方体"], ["Würfel heben 立方体"]]
    assert [texts[task] for task in numbers(frames, "task_index")[[0, 7, 8]]] == ["Würfel heben 立方体", "panda", "Würfel heben 立方体"]
    assert json.loads(tasks.schema.metadata[b"pandas"])["index_columns"] == ["task"]


def test_videos_are_what_lerobot_expects(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift")
    info, episodes, _ = load(tmp_path / "lift")
    for key, name in CAMERAS.items():
        assert info["features"][key]["dtype"] == "video" and info["features"][key]["names"] == ["height", "width", "channels"]
        path = tmp_path / "lift" / info["video_path"].format(video_key=key, chunk_index=0, file_index=0)
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            assert (stream.codec_context.name, float(stream.average_rate)) == ("h264", pytest.approx(info["fps"]))
            frames = list(container.decode(stream))
        assert len(frames) == info["total_frames"] and [stream.height, stream.width, 3] == info["features"][key]["shape"]
        seconds = np.array([float(frame.pts * stream.time_base) for frame in frames])
        for row, episode in zip(episodes, rich.episodes, strict=True):
            begin, end = row[f"videos/{key}/from_timestamp"], row[f"videos/{key}/to_timestamp"]
            assert end - begin == pytest.approx(row["length"] / info["fps"])
            pictures = episode.observations[name]
            for k in range(row["length"]):
                wanted = begin + np.float32(k / info["fps"])
                nearest = np.abs(seconds - wanted).argmin()
                assert abs(seconds[nearest] - wanted) < 1e-4
                upright = pictures[k][::-1] if name == "front" else pictures[k]
                np.testing.assert_array_equal(frames[nearest].to_ndarray(format="rgb24"), np.broadcast_to(upright, (*upright.shape[:2], 3)))
            assert frames[np.abs(seconds - begin).argmin()].key_frame


def test_statistics_are_those_of_the_frames(tmp_path, rich):
    observed = [{**e.observations, "joint_pos": np.nan_to_num(e.observations["joint_pos"])} for e in rich.episodes]
    plain = replace(rich, episodes=tuple(replace(e, observations=o) for e, o in zip(rich.episodes, observed, strict=True)))
    FORMAT.write(plain, tmp_path / "lift")
    stats = json.loads((tmp_path / "lift/meta/stats.json").read_text())
    _, episodes, frames = load(tmp_path / "lift")
    assert set(stats) == set(frames.column_names) | set(CAMERAS)
    for key in ("action", "observation.state", "next.done"):
        values = numbers(frames, key).reshape(len(frames), -1).astype(float)
        for name, expected in {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0)}.items():
            np.testing.assert_allclose(stats[key][name], expected, rtol=1e-9, atol=1e-12)
        assert stats[key]["count"] == [15]
    pictures = np.concatenate([episode.observations["front"][:-1] for episode in plain.episodes]).reshape(-1, 3) / 255
    np.testing.assert_allclose(stats["observation.images.front"]["mean"], pictures.mean(0).reshape(3, 1, 1))
    np.testing.assert_allclose(stats["observation.images.front"]["std"], pictures.std(0).reshape(3, 1, 1))
    for name, share in {"min": 0, "q10": 0.1, "q50": 0.5, "max": 1}.items():
        expected = np.quantile(plain.episodes[0].observations["front"][:-1].reshape(-1, 3), share, axis=0, method="inverted_cdf") / 255
        np.testing.assert_array_equal(np.ravel(episodes[0][f"stats/observation.images.front/{name}"]), expected)
    np.testing.assert_allclose(episodes[0]["stats/action/max"], plain.episodes[0].actions.max(0))
    assert np.shape(episodes[0]["stats/observation.images.wrist/q99"]) == (3, 1, 1)


def test_success_is_a_column_where_every_episode_knows_it(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "unknown")
    FORMAT.write(replace(rich, episodes=(rich.episodes[0], rich.episodes[2])), tmp_path / "known")
    assert "next.success" not in load(tmp_path / "unknown")[2].column_names
    assert numbers(load(tmp_path / "known")[2], "next.success").tolist() == [False] * 6 + [True] + [False] * 4
