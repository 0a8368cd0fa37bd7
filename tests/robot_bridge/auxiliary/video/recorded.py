"""Recordings of colour films: datasets with a camera, and a bag of Image messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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
    store = get_typestore(Stores.ROS2_KILTED)
    image, header, time = (store.types[name] for name in ("sensor_msgs/msg/Image", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection("/camera/front/image_raw", "sensor_msgs/msg/Image", typestore=store)
        for index, picture in enumerate(pictures):
            stamp = start_ns + index * PERIOD_NS
            data = np.ascontiguousarray(picture[..., ::-1] if encoding == "bgr8" else picture).reshape(-1)
            message = image(  # type: ignore[operator]
                header=header(stamp=time(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id="camera"),  # type: ignore[operator]
                height=SIDE, width=SIDE, encoding=encoding, is_bigendian=0, step=3 * SIDE, data=data,
            )  # fmt: skip
            writer.write(topic, stamp, store.serialize_cdr(message, "sensor_msgs/msg/Image"))
    return folder
