"""The sources of pictures there are: name -> camera, its settings, and what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from rl_core.training.config import Config
from robot_bridge import driver_settings
from robot_bridge.cameras.base import Camera, CameraError


@dataclass(frozen=True, kw_only=True)
class V4L2Settings(Config):
    """See `robot_bridge.cameras.v4l2.V4L2Camera`."""

    serial: str = ""
    path: str = ""
    capture_width: int = 0
    capture_height: int = 0
    fourcc: str = ""
    rate_hz: float = 30.0


@dataclass(frozen=True, kw_only=True)
class RealSenseSettings(Config):
    """See `robot_bridge.cameras.realsense.RealSenseCamera`."""

    serial: str
    capture_width: int = 0
    capture_height: int = 0
    rate_hz: float = 30.0


@dataclass(frozen=True, kw_only=True)
class TopicSettings(Config):
    """See `robot_bridge.cameras.topic.TopicCamera`."""

    topic: str


@dataclass(frozen=True, kw_only=True)
class FileSettings(Config):
    """See `robot_bridge.cameras.file.FileCamera`."""

    file: str
    rate_hz: float = 30.0


@dataclass(frozen=True, kw_only=True)
class CameraEntry:
    """A source.

    Attributes:
        camera: `module:class`; its constructor takes the fields of `settings` as keywords.
        settings: its configuration; a field without default has to be given.
        library: module the source imports when it opens.
        extra: of the distribution, that installs it.
        noisy: no two pictures of its sensor are equal, so one that repeats is not new.
    """

    camera: str
    settings: type[Config]
    library: str
    extra: str
    noisy: bool


CAMERAS: Mapping[str, CameraEntry] = {
    "v4l2": CameraEntry(camera="robot_bridge.cameras.v4l2:V4L2Camera", settings=V4L2Settings, library="cv2", extra="cameras", noisy=True),
    "realsense": CameraEntry(
        camera="robot_bridge.cameras.realsense:RealSenseCamera",
        settings=RealSenseSettings,
        library="pyrealsense2",
        extra="realsense",
        noisy=True,
    ),
    "topic": CameraEntry(
        camera="robot_bridge.cameras.topic:TopicCamera", settings=TopicSettings, library="rclpy", extra="ros", noisy=False
    ),
    "file": CameraEntry(camera="robot_bridge.cameras.file:FileCamera", settings=FileSettings, library="cv2", extra="cameras", noisy=False),
}


def find_camera(source: str) -> CameraEntry:
    """The entry of `source`.

    Raises:
        CameraError: there is none; lists the names.
    """
    if source not in CAMERAS:
        raise CameraError(f"no source of pictures {source!r}; sources: {', '.join(CAMERAS)}")
    return CAMERAS[source]


def make_settings(source: str, values: Mapping[str, Any]) -> Any:
    """The settings of `source`.

    Raises:
        CameraError: a setting is unknown, missing or of another type; lists the valid ones.
    """
    serial = values.get("serial", "")
    if not isinstance(serial, str):  # ROS reads 0123 as a number, and its zero would be lost
        raise CameraError(f"source {source}: serial {serial!r} is a number, valid: text; write serial:=\"'{serial}'\"")
    return driver_settings.make_settings(f"source {source}", find_camera(source).settings, values, CameraError)


def require_library(source: str) -> None:
    """Checks that `source` can be opened here.

    Raises:
        CameraError: its library is not installed; says which extra brings it.
    """
    entry = find_camera(source)
    driver_settings.require_library(f"source {source}", entry.library, entry.extra, CameraError)


def require_opencv(user: str) -> None:
    """Checks that `user` can work with pictures here.

    Raises:
        CameraError: OpenCV is not installed; says which extra brings it.
    """
    driver_settings.require_library(user, "cv2", "cameras", CameraError)


def make_camera(source: str, settings: Any) -> Camera:
    """The camera of `source`, not yet open.

    Raises:
        CameraError: a setting cannot be meant.
    """
    module, _, name = find_camera(source).camera.partition(":")
    return cast(Camera, getattr(importlib.import_module(module), name)(**vars(settings)))
