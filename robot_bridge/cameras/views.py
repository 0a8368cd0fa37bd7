"""Views for a calibration: pictures of the board, each with the hand's pose when it was taken; as a folder or out of a bag.

A folder holds the pictures and `poses.json`: {picture's name: {position: [x, y, z], quaternion: [x, y, z, w]}}, the end effector in the
arm's base frame, metres.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from rl_core.contract import Channel
from rl_core.data.atomic import write_atomically
from rl_core.data.formats.bag_stream import BagReader
from rl_core.data.formats.bag_values import header_stamp_ns, picture
from robot_bridge.cameras.calibration import CalibrationError
from robot_bridge.cameras.file import picture_files

POSES = "poses.json"
STILL_S = 0.25
STILL_M = 0.0005
STILL_RAD = 0.003
_ELSEWHERE_M = 0.01
_ELSEWHERE_RAD = 0.03


@dataclass(frozen=True, kw_only=True, eq=False)
class HandPose:
    """Of the end effector in the arm's base frame.

    Attributes:
        position: (3,) m.
        quaternion: (4,) x, y, z, w.
    """

    position: NDArray[np.float64]
    quaternion: NDArray[np.float64]

    def moved_from(self, other: HandPose) -> tuple[float, float]:
        """Distance, m, and angle, rad."""
        turn = Rotation.from_quat(self.quaternion) * Rotation.from_quat(other.quaternion).inv()
        return float(np.linalg.norm(self.position - other.position)), float(turn.magnitude())


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """(H, W, 3) RGB pixels, first row on top, and where the hand was."""

    name: str
    pixels: NDArray[np.uint8]
    hand: HandPose


def read_views(path: Path, *, camera: str, namespace: str = "") -> Iterator[Picture]:
    """The views in a folder with `poses.json`, or in a bag wherever the arm stood still at a place of its own.

    Args:
        path: the folder, or a bag of our graph.
        camera: name of the camera in the bag.
        namespace: of the arm in the bag.

    Raises:
        CalibrationError: nothing is there; a picture or a pose is missing or cannot be used.
        DatasetError: the bag cannot be read.
    """
    if not path.exists():
        raise CalibrationError(f"{path}: no such file or folder; valid: a folder of pictures with {POSES}, or a bag")
    return _read_folder(path) if (path / POSES).is_file() else _read_bag(path, camera, namespace.strip("/"))


class ViewFolder:
    """Writes views into a folder that `read_views` reads; those there are kept."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._poses: dict[str, Any] = _poses(folder) if (folder / POSES).is_file() else {}

    def add(self, pixels: NDArray[np.uint8], hand: HandPose) -> Path:
        """Writes one view."""
        import cv2

        number = len(self._poses)
        while (file := self._folder / f"view_{number:03d}.png").exists():
            number += 1
        if not cv2.imwrite(str(file), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)):
            raise CalibrationError(f"{file}: cannot be written")
        self._poses[file.name] = {"position": hand.position.tolist(), "quaternion": hand.quaternion.tolist()}
        with write_atomically(self._folder / POSES) as poses:
            poses.write(json.dumps(self._poses, indent=1).encode())
        return file


def _read_folder(folder: Path) -> Iterator[Picture]:
    import cv2

    poses = _poses(folder)
    files = {file.name: file for file in picture_files(folder)}
    if lacking := sorted(set(poses) ^ set(files)):
        raise CalibrationError(f"{folder}: {', '.join(lacking)} is only one of picture and entry in {POSES}; valid: both, for each view")
    for name, file in files.items():
        pixels = cv2.imread(str(file))
        if pixels is None:
            raise CalibrationError(f"{file}: no picture that OpenCV reads")
        rgb = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)
        yield Picture(name=name, pixels=rgb, hand=_hand(poses[name], f"{folder / POSES}: {name}"))


def _poses(folder: Path) -> dict[str, Any]:
    try:
        poses = json.loads((folder / POSES).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CalibrationError(f"{folder / POSES}: {error}") from error
    if not isinstance(poses, dict):
        raise CalibrationError(f"{folder / POSES}: {type(poses).__name__}, valid: {{picture's name: {{position, quaternion}}}}")
    return poses


def _hand(values: Mapping[str, Any], where: str) -> HandPose:
    try:
        position, quaternion = (np.array(values[key], np.float64) for key in ("position", "quaternion"))
    except (KeyError, TypeError, ValueError) as error:
        raise CalibrationError(f"{where}: {type(error).__name__}: {error}; valid: position [x, y, z], quaternion [x, y, z, w]") from error
    if position.shape != (3,) or quaternion.shape != (4,) or not np.isfinite(position).all():
        raise CalibrationError(f"{where}: position {position.tolist()}, quaternion {quaternion.tolist()}; valid: 3 and 4 finite numbers")
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1.0) <= 1e-3:
        raise CalibrationError(f"{where}: quaternion (x, y, z, w) {quaternion.tolist()} has norm {norm:.4g}, valid: 1")
    return HandPose(position=position, quaternion=quaternion)


def _read_bag(path: Path, camera: str, namespace: str) -> Iterator[Picture]:
    prefix = f"/{namespace}/" if namespace else "/"
    image_topic, pose_topic = f"{prefix}camera/{camera}/image_raw", f"{prefix}ee_pose"
    stamps: list[int] = []
    poses: list[tuple[int, HandPose]] = []
    for topic, message in _decoded(path, (image_topic, pose_topic)):
        stamp_ns = header_stamp_ns(message) or 0
        if topic == image_topic:
            stamps.append(stamp_ns)
        else:
            p, q = message.pose.position, message.pose.orientation
            values = {"position": [p.x, p.y, p.z], "quaternion": [q.x, q.y, q.z, q.w]}
            poses.append((stamp_ns, _hand(values, f"{path}: {pose_topic}")))
    if not stamps or not poses:
        raise CalibrationError(f"{path}: {len(stamps)} messages on {image_topic}, {len(poses)} on {pose_topic}; valid: some on both")
    chosen = _at_rest(stamps, poses)
    for topic, message in _decoded(path, (image_topic,)):
        stamp_ns = header_stamp_ns(message) or 0
        if stamp_ns in chosen:
            shape = message.height, message.width, 3
            channel = Channel(name="view", kind="image", shape=shape, encoding="rgb8", row_order="top_down")
            yield Picture(name=f"{stamp_ns}", pixels=picture(message, channel, where=f"{path}: {topic}"), hand=chosen.pop(stamp_ns))


def _decoded(path: Path, topics: Iterable[str]) -> Iterator[tuple[str, Any]]:
    reader = BagReader(path)
    for message in reader.messages():
        if message.topic in topics:
            yield message.topic, reader.types.decode(message)


def _at_rest(stamps: list[int], poses: list[tuple[int, HandPose]]) -> dict[int, HandPose]:
    """The stamp of one picture of every place where the arm stood still, the middle one, and the hand's pose there."""
    times = np.array([stamp for stamp, _ in poses])
    chosen: dict[int, HandPose] = {}
    run: list[tuple[int, HandPose]] = []
    for stamp in [*sorted(stamps), None]:
        hand = None if stamp is None else _still_at(stamp, times, poses)
        if run and (hand is None or not _same_place(hand, run[0][1])):
            middle, place = run[len(run) // 2]
            if not any(_same_place(place, other) for other in chosen.values()):
                chosen[middle] = place
            run = []
        if hand is not None and stamp is not None:
            run.append((stamp, hand))
    return chosen


def _still_at(stamp: int, times: NDArray[np.int64], poses: list[tuple[int, HandPose]]) -> HandPose | None:
    """The hand's pose, where it did not move for `STILL_S` before and after `stamp`; None where it did or that is not known."""
    margin = int(STILL_S * 1e9)
    first, last = np.searchsorted(times, stamp - margin) - 1, np.searchsorted(times, stamp + margin)
    if first < 0 or last >= len(times):
        return None
    around = [hand for _, hand in poses[first : last + 1]]
    if any(not at_rest(hand, around[0]) for hand in around):
        return None
    return around[len(around) // 2]


def at_rest(hand: HandPose, other: HandPose) -> bool:
    """Whether the hand, at two times, stood still."""
    moved_m, turned_rad = hand.moved_from(other)
    return moved_m <= STILL_M and turned_rad <= STILL_RAD


def _same_place(hand: HandPose, other: HandPose) -> bool:
    moved_m, turned_rad = hand.moved_from(other)
    return moved_m <= _ELSEWHERE_M and turned_rad <= _ELSEWHERE_RAD
