"""Names and places in a LeRobotDataset v3.0 folder, and how a contract's channels map to its features."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel, RobotContract

VERSION = "v3.0"
INFO, STATS, TASKS = "meta/info.json", "meta/stats.json", "meta/tasks.parquet"
EPISODES = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEOS = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
CHUNK_FILES = 1000
"""Files in a chunk folder."""

KEY = "armstack"
"""Key of info.json under which lies what only this package reads."""
EXTRAS = "meta/armstack.parquet"
"""What LeRobot has no place for, an episode a row."""
FORMAT_VERSION = 1

STATE = "observation.state"
STAMP = "stamp_ns"


def frame_rate(contract: RobotContract) -> Fraction:
    """Frames per second of the contract's period, as a video states it: 20, or 100/3 for 0.03 s."""
    return Fraction(1 / contract.action.period_s).limit_denominator(1001)


def as_json_number(rate: Fraction) -> int | float:
    """LeRobot's fps is an integer wherever it can be."""
    return rate.numerator if rate.denominator == 1 else float(rate)


def image_key(channel: Channel) -> str:
    """Feature of a camera."""
    return f"observation.images.{channel.name}"


def image_channels(contract: RobotContract) -> tuple[Channel, ...]:
    """The cameras, in contract order."""
    return tuple(channel for channel in contract.observation if channel.kind == "image")


def number_features(contract: RobotContract) -> dict[str, tuple[Channel, ...]]:
    """Feature -> channels whose numbers it holds side by side.

    LeRobot's policies look for one float32 `observation.state`: all float32 channels are in it. Channels of another type keep it
    in a feature of their own.
    """
    state = tuple(channel for channel in contract.low_dimensional if channel.dtype == "float32")
    others = {f"observation.channels.{c.name}": (c,) for c in contract.low_dimensional if c.dtype != "float32"}
    return ({STATE: state} if state else {}) | others


def describe_features(contract: RobotContract, rate: Fraction, *, success: bool) -> dict[str, dict[str, Any]]:
    """info.json's `features`; `success` adds `next.success`."""
    features: dict[str, dict[str, Any]] = {}
    for key, channels in number_features(contract).items():
        names = [f"{channel.name}.{dimension}" for channel in channels for dimension in channel.names]
        features[key] = {"dtype": channels[0].dtype, "shape": [len(names)], "names": names}
    for channel in image_channels(contract):
        height, width, _ = channel.shape
        video = {
            "video.height": height, "video.width": width, "video.channels": 3, "video.codec": "h264", "video.pix_fmt": "gbrp",
            "video.fps": as_json_number(rate), "video.is_depth_map": False, "has_audio": False,
        }  # fmt: skip
        features[image_key(channel)] = {
            "dtype": "video", "shape": [height, width, 3], "names": ["height", "width", "channels"], "info": video,
        }  # fmt: skip
    features["action"] = {"dtype": "float32", "shape": [contract.action.size], "names": list(contract.action.names)}
    scalars = {"next.reward": "float32", "next.done": "bool"} | ({"next.success": "bool"} if success else {}) | {STAMP: "int64"}
    scalars |= {"timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64", "task_index": "int64"}
    return features | {key: {"dtype": dtype, "shape": [1], "names": None} for key, dtype in scalars.items()}


def to_pictures(values: NDArray[np.uint8], channel: Channel) -> NDArray[np.uint8]:
    """Images (T, height, width, 1 or 3) as pictures that a player shows upright: (T, height, width, 3), first row on top."""
    upright = values[:, ::-1] if channel.row_order == "bottom_up" else values
    return np.repeat(upright, 3, axis=-1) if channel.encoding == "mono8" else upright


def from_pictures(pictures: NDArray[np.uint8], channel: Channel) -> NDArray[np.uint8]:
    """The images that `to_pictures` was given."""
    values = pictures[..., :1] if channel.encoding == "mono8" else pictures
    return np.ascontiguousarray(values[:, ::-1] if channel.row_order == "bottom_up" else values)
