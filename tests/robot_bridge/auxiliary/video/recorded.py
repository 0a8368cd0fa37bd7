"""Recordings of colour films: datasets with a camera, and a bag of Image messages."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mcap.reader import make_reader
from mcap.writer import Writer as McapWriter
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from tests.robot_bridge.auxiliary.video.colour_clips import SIDE, film, says

AXES = ("x", "y", "z")
ROW_ORDER = "bottom_up"
STEP_NS, PERIOD_NS = 100_000_000, 250_000_000
"""Between two pictures of a dataset, and of a bag; a clip of four frames at two a second lasts two seconds."""


def contract(*, camera: bool = True) -> RobotContract:
    image = Channel(name="front", kind="image", shape=(SIDE, SIDE, 3), encoding="rgb8", row_order=ROW_ORDER)
    place = Channel(name="eef_pos", names=AXES, unit="m", frame="base")
    action = Action(names=AXES, meaning="delta", space="end_effector", scale=(0.05,) * 3, units=("m",) * 3, period_s=0.1)
    return RobotContract(robot="toy", observation=(place, image) if camera else (place,), action=action)


def episode(turn: tuple[str, str], name: str, *, frames: int = 8, lang: str | None = None, camera: bool = True, seed: int = 0) -> Episode:
    generator = np.random.default_rng([seed, len(name)])
    pictures = film(*turn, generator, frames)[:, ::-1]  # the first row is the bottom
    places = np.cumsum(generator.normal(0, 0.01, (frames, 3)), axis=0).astype(np.float32)
    return Episode(
        observations={"eef_pos": places, **({"front": pictures} if camera else {})},
        actions=np.diff(places, axis=0).astype(np.float32),
        rewards=np.zeros(frames - 1, np.float32),
        terminal=False,
        truncated=True,
        stamps_ns=np.arange(frames, dtype=np.int64) * STEP_NS,
        uuid=f"{name:0>32}",
        meta={"lang": says(*turn) if lang is None else lang},
    )


def dataset(*turns: tuple[str, str], **more: object) -> Dataset:
    episodes = tuple(episode(turn, f"{index}{'-'.join(turn)}", seed=index, **more) for index, turn in enumerate(turns))  # type: ignore[arg-type]
    return Dataset(contract=contract(camera=bool(more.get("camera", True))), episodes=episodes)


def write_image_bag(folder: Path, pictures: NDArray[np.uint8], start_ns: int, *, encoding: str = "bgr8") -> Path:
    """A rosbag2 folder with the pictures on `/camera/front/image_raw`, `PERIOD_NS` apart."""
    sent = [(encoding, np.ascontiguousarray(picture[..., ::-1] if encoding == "bgr8" else picture)) for picture in pictures]
    return write_bag(folder, {"/camera/front/image_raw": sent}, start_ns)


def write_bag(folder: Path, topics: Mapping[str, Sequence[tuple[str, NDArray[Any] | bytes]]], start_ns: int) -> Path:
    """A rosbag2 folder: on each topic its pictures, `PERIOD_NS` apart, an Image of an array (H, W, ...), a CompressedImage of bytes."""
    store = get_typestore(Stores.ROS2_KILTED)
    types: Any = store.types
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for name, pictures in topics.items():
            kind = f"sensor_msgs/msg/{'CompressedImage' if isinstance(pictures[0][1], bytes) else 'Image'}"
            topic = writer.add_connection(name, kind, typestore=store)
            for index, (says, picture) in enumerate(pictures):
                stamp = start_ns + index * PERIOD_NS
                time = types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
                header = types["std_msgs/msg/Header"](stamp=time, frame_id="camera")
                if isinstance(picture, bytes):
                    message = types[kind](header=header, format=says, data=np.frombuffer(picture, np.uint8))
                else:
                    data = np.frombuffer(picture.tobytes(), np.uint8)
                    size = {"height": picture.shape[0], "width": picture.shape[1], "step": len(data) // picture.shape[0]}
                    message = types[kind](header=header, encoding=says, is_bigendian=0, data=data, **size)
                writer.write(topic, stamp, store.serialize_cdr(message, kind))
    return folder


def cut_in_half(bag: Path, file: Path) -> None:
    """The MCAP file of a folder, but as a recorder leaves it that was killed: a chunk a picture, and the second half is missing."""
    target = io.BytesIO()
    writer = McapWriter(target, chunk_size=1)
    writer.start()
    with open(next(bag.glob("*.mcap")), "rb") as source:
        for schema, channel, message in make_reader(source).iter_messages():
            kind = writer.register_schema(schema.name, schema.encoding, schema.data) if schema else 0
            topic = writer.register_channel(channel.topic, channel.message_encoding, kind)
            writer.add_message(topic, message.log_time, message.data, message.publish_time)
    writer.finish()
    file.write_bytes(target.getvalue()[: target.tell() // 2])
