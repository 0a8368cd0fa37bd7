"""Datasets that LeRobot itself made."""

import io
import json

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from rl_core.data.episode import DatasetError
from rl_core.data.formats.lerobot import LeRobotFormat

FORMAT = LeRobotFormat()


def lerobot_made(folder, *, video=True, success=True, fps=10, names=None, depth=False):
    """A folder as LeRobot's own writer makes it: 4 steps with success, 3 without; H.264 with loss, or PNG in the table."""
    lengths, total = (4, 3), 7
    key = "observation.images.top"
    picture = {"dtype": "video" if video else "image", "shape": [32, 32, 3], "names": ["height", "width", "channels"]}
    if depth:
        picture["info"] = {"video.is_depth_map": True}
    scalar = {"shape": [1], "names": None}
    features = {
        "action": {"dtype": "float32", "shape": [2], "names": names or ["shoulder.pos", "gripper.pos"]},
        "observation.state": {"dtype": "float32", "shape": [2], "names": names or ["shoulder.pos", "gripper.pos"]},
        key: picture,
        "next.reward": {"dtype": "float32", **scalar},
        "next.done": {"dtype": "bool", **scalar},
        "timestamp": {"dtype": "float32", **scalar},
        **{name: {"dtype": "int64", **scalar} for name in ("frame_index", "episode_index", "index", "task_index")},
    }
    index, episode = np.arange(total), np.repeat([0, 1], lengths)
    frame = np.concatenate([np.arange(length) for length in lengths])
    pairs = np.stack([index, -index], 1).astype(np.float32)
    columns = {
        "action": pa.FixedSizeListArray.from_arrays(pa.array((pairs * 2).reshape(-1)), 2),
        "observation.state": pa.array(pairs.tolist(), pa.list_(pa.float32())),
        "next.reward": pa.array(index.astype(np.float32)),
        "next.done": pa.array(frame == np.repeat(lengths, lengths) - 1),
        "timestamp": pa.array((frame / fps).astype(np.float32)),
        "frame_index": frame, "episode_index": episode, "index": index, "task_index": np.zeros(total, np.int64),
    }  # fmt: skip
    if success:
        features["next.success"] = {"dtype": "bool", **scalar}
        columns["next.success"] = pa.array(index == 3)
    pictures = [np.full((32, 32, 3), 30 * k, np.uint8) for k in range(total)]
    if video:
        path = folder / f"videos/{key}/chunk-000/file-000.mp4"
        path.parent.mkdir(parents=True)
        with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
            stream = container.add_stream("h264", fps, options={"g": "2", "crf": "20"})
            stream.pix_fmt, stream.width, stream.height = "yuv420p", 32, 32
            for each in pictures:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(each, format="rgb24")))
            container.mux(stream.encode())
    else:
        rows = []
        for each in pictures:
            Image.fromarray(each).save(content := io.BytesIO(), format="PNG")
            rows.append({"bytes": content.getvalue(), "path": None})
        columns[key] = pa.array(rows, pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    for path in ("data/chunk-000", "meta/episodes/chunk-000"):
        (folder / path).mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "data/chunk-000/file-000.parquet")
    rows = []
    for k, (begin, end) in enumerate(((0, 4), (4, 7))):
        rows.append({"episode_index": k, "tasks": ["Grab the cube"], "length": end - begin, "data/chunk_index": 0, "data/file_index": 0})
        rows[k] |= {"dataset_from_index": begin, "dataset_to_index": end}
        if video:
            rows[k] |= {f"videos/{key}/chunk_index": 0, f"videos/{key}/file_index": 0}
            rows[k] |= {f"videos/{key}/from_timestamp": begin / fps, f"videos/{key}/to_timestamp": end / fps}
    pq.write_table(pa.Table.from_pylist(rows), folder / "meta/episodes/chunk-000/file-000.parquet")
    info = {
        "codebase_version": "v3.0", "robot_type": "so101_follower", "total_episodes": 2, "total_frames": 7, "total_tasks": 1, "fps": fps,
        "chunks_size": 1000, "data_files_size_in_mb": 100, "video_files_size_in_mb": 200, "splits": {"train": "0:2"}, "features": features,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4" if video else None,
    }  # fmt: skip
    (folder / "meta/info.json").write_text(json.dumps(info))
    return folder


@pytest.mark.parametrize("video", [True, False])
def test_a_dataset_of_lerobot_loads(tmp_path, caplog, video):
    dataset = FORMAT.read(lerobot_made(tmp_path / "made", video=video))
    assert dataset.contract.robot == "so101_follower" and dataset.contract.action.period_s == 0.1
    assert dataset.contract.action.names == dataset.contract.channel("state").names == ("shoulder.pos", "gripper.pos")
    assert dataset.contract.channel("top").shape == (32, 32, 3)
    grasped, dropped = dataset.episodes
    # what followed the last action isn't in the file: a success keeps its last step, the other episode loses it
    assert (len(grasped), grasped.terminal, grasped.truncated, grasped.success) == (4, True, False, True)
    assert (len(dropped), dropped.terminal, dropped.truncated, dropped.success) == (2, False, True, False)
    assert grasped.observations["state"][:, 0].tolist() == [0, 1, 2, 3, 3] and dropped.observations["state"][:, 0].tolist() == [4, 5, 6]
    assert grasped.actions[:, 0].tolist() == [0, 2, 4, 6] and dropped.rewards.tolist() == [4, 5]
    assert dropped.stamps_ns.tolist() == [0, 100_000_000, 200_000_000] and grasped.meta == {"task": "Grab the cube"}
    assert np.abs(dropped.observations["top"].astype(int).mean(axis=(1, 2, 3)) - [120, 150, 180]).max() <= 3 * video
    assert "stamps are counted at 10 fps" in caplog.text and "actions keep the numbers they have" in caplog.text
    assert [e.uuid for e in dataset.episodes] == [e.uuid for e in FORMAT.read(tmp_path / "made").episodes]


def test_without_success_the_end_of_a_recording_is_no_terminal(tmp_path):
    dataset = FORMAT.read(lerobot_made(tmp_path / "made", success=False))
    assert [(len(e), e.terminal, e.success) for e in dataset.episodes] == [(3, False, None), (2, False, None)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"motors": ["lift", "turn"]}, ("lift", "turn")),
        ({"turn": 1, "lift": 0}, ("lift", "turn")),
        (["one"], ("action_0", "action_1")),
        (["same", "same"], ("action_0", "action_1")),
    ],
)
def test_names_are_taken_in_every_form_lerobot_had(tmp_path, names, expected):
    dataset = FORMAT.read(lerobot_made(tmp_path / "made", video=False, names=names))
    assert dataset.contract.action.names == expected


def test_depth_is_left_out_and_said(tmp_path, caplog):
    dataset = FORMAT.read(lerobot_made(tmp_path / "made", depth=True))
    assert [channel.name for channel in dataset.contract.observation] == ["state"]
    assert "not read: ['observation.images.top']" in caplog.text


def test_a_rate_that_no_contract_has_is_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"fps 5.*0\.002\.\.0\.1"):
        FORMAT.read(lerobot_made(tmp_path / "made", video=False, fps=5))
