"""A video of what a bag recorded: the simulated arm's positions, drawn again at true speed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.highlevel import AnyReader
from rosbags.highlevel.anyreader import AnyReaderError
from rosbags.typesys import Stores, get_typestore

from rl_core.data.formats.bag import BagError
from rl_core.training.video import write_mp4

TOPIC = "/sim/qpos"


def _positions(bag: Path) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Header stamp in nanoseconds and MuJoCo positions (nq,), in the order they were recorded."""
    try:
        with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_KILTED)) as reader:
            connections = [c for c in reader.connections if c.topic.endswith(TOPIC)]
            if not connections:
                raise BagError(f"{bag}: no topic {TOPIC}; it holds {sorted({c.topic for c in reader.connections})}")
            for connection, _, raw in reader.messages(connections[:1]):
                message: Any = reader.deserialize(raw, connection.msgtype)
                stamp = message.header.stamp
                yield stamp.sec * 10**9 + stamp.nanosec, np.asarray(message.position)
    except AnyReaderError as error:
        raise BagError(f"{bag}: {error}") from error


def write_bag_video(bag: str | Path, task: str, file: str | Path, *, fps: float = 20.0, seconds: float = 40.0, size: int = 384) -> Path:
    """Draws the first `seconds` of a bag of the simulated arm as MP4, `size` x `size` pixels.

    Raises:
        BagError: no bag there, or one without positions.
        RenderingUnavailable: no graphics library draws here.
    """
    from sim_envs.arm.rendering import Renderer

    renderer = Renderer(task, size, size)

    def frames() -> Iterator[NDArray[np.uint8]]:
        due_ns: float | None = None
        shown = 0
        for stamp_ns, qpos in _positions(Path(bag)):
            if due_ns is None or stamp_ns < due_ns - 10 * 1e9 / fps:  # a new episode may start simulated time anew
                due_ns = stamp_ns
            if stamp_ns < due_ns:
                continue
            due_ns += 1e9 / fps
            yield renderer.render(qpos)
            shown += 1
            if shown >= seconds * fps:
                return

    try:
        return write_mp4(file, frames(), fps)
    finally:
        renderer.close()
