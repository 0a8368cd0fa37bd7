"""Pictures in MP4 files: H.264 in RGB without loss, so that pixels come back to the bit and players show them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.video.frame import PictureType
from numpy.typing import NDArray

from rl_core.data.episode import DatasetError
from rl_core.data.formats.lerobot_layout import CHUNK_FILES, VIDEOS
from rl_core.data.formats.lerobot_tables import reading

VIDEO_FILE_MB = 200
"""A video file is closed before an episode that is likely to make it larger."""

ENCODER = {"qp": "0", "preset": "veryfast", "tune": "zerolatency", "g": "2", "bf": "0", "forced-idr": "1"}
"""qp 0 is x264's lossless mode; every second picture at least can be reached alone, as in LeRobot's own videos (g = 2). Without
latency the size of what was written is known at any time."""


class VideoShards:
    """MP4 files of one camera; one episode lies in one file and begins with a picture of its own.

    Args:
        root: folder of the dataset.
        key: feature of the camera.
        rate: pictures per second.
    """

    def __init__(self, root: Path, key: str, rate: Fraction) -> None:
        self._root, self._key, self._rate = root, key, rate
        self._number, self._frames, self._size = -1, 0, 0
        self._container: Any = None

    def add(self, pictures: NDArray[np.uint8]) -> dict[str, Any]:
        """Appends the pictures (T, height, width, 3) of one episode; returns the columns that say where they lie."""
        likely = self._size * (1 + len(pictures) / max(self._frames, 1))
        if self._container is None or likely > VIDEO_FILE_MB * 2**20:
            self._open(pictures.shape[1:3])
        first = self._frames
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            if self._frames == first:
                frame.pict_type = PictureType.I
            frame.pts, frame.time_base = self._frames, 1 / self._rate
            self._mux(self._stream.encode(frame))
            self._frames += 1
        chunk, file = divmod(self._number, CHUNK_FILES)
        values: dict[str, Any] = {"chunk_index": chunk, "file_index": file}
        values |= {"from_timestamp": float(first / self._rate), "to_timestamp": float(self._frames / self._rate)}
        return {f"videos/{self._key}/{name}": value for name, value in values.items()}

    def close(self) -> None:
        """Finishes the last file."""
        if self._container is not None:
            self._mux(self._stream.encode())
            self._container.close()
            self._container = None

    def _mux(self, packets: list[Any]) -> None:
        self._size += sum(packet.size for packet in packets)
        self._container.mux(packets)

    def _open(self, size: tuple[int, ...]) -> None:
        self.close()
        self._number, self._frames, self._size = self._number + 1, 0, 0
        chunk, file = divmod(self._number, CHUNK_FILES)
        path = self._root / VIDEOS.format(video_key=self._key, chunk_index=chunk, file_index=file)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._container = av.open(str(path), "w")
        self._stream = self._container.add_stream("libx264rgb", rate=self._rate, options=ENCODER)
        self._stream.pix_fmt = "rgb24"
        self._stream.height, self._stream.width = size


def decode(path: Path, starts: Sequence[float], lengths: Sequence[int], fps: float) -> list[NDArray[np.uint8]]:
    """Pictures (length, height, width, 3) of the episodes in a video; picture k of one is shown at its start + k / fps.

    Args:
        path: the video.
        starts: where each episode begins, seconds, in rising order.
        lengths: pictures of each.
        fps: pictures per second.

    Raises:
        DatasetError: damaged, or a picture isn't there.
    """
    found = [np.zeros(length, bool) for length in lengths]
    pictures: list[NDArray[np.uint8]] = []
    with reading(path), av.open(str(path)) as container:
        stream = container.streams.video[0]
        for frame in container.decode(stream):
            time = frame.time
            if time is None:
                continue
            if not pictures:
                pictures = [np.empty((length, frame.height, frame.width, 3), np.uint8) for length in lengths]
            episode = bisect_right(starts, time + 0.5 / fps) - 1
            place = round((time - starts[episode]) * fps)
            if episode >= 0 and 0 <= place < lengths[episode]:
                pictures[episode][place] = frame.to_ndarray(format="rgb24")
                found[episode][place] = True
        missing = [start for start, there in zip(starts, found, strict=True) if not there.all()]
        if missing:
            raise DatasetError(
                f"{path}: pictures are missing in the episode that begins at {missing[0]} s; the file is truncated or not its own"
            )
    return pictures
