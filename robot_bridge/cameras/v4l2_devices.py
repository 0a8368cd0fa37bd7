"""The video devices of this machine by what does not change with a reboot: serial number and udev's stable links.

`/dev/video0` is whichever camera answered first, so nothing here is found by that number.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from robot_bridge.cameras.base import CameraError

_LINKS = ("by-id", "by-path")


@dataclass(frozen=True, kw_only=True)
class VideoDevice:
    """One video device.

    Attributes:
        path: e.g. /dev/video0, as of now.
        name: what the driver calls it.
        serial: of the USB device it belongs to; empty where it has none.
        function: 0 for the first of a camera's devices, which gives its pictures; others give metadata or further streams.
    """

    path: Path
    name: str
    serial: str
    function: int


def video_devices(dev: Path = Path("/dev"), sys: Path = Path("/sys")) -> list[VideoDevice]:
    """All video devices, in no order that could be relied on.

    Args:
        dev, sys: where devices and sysfs are.
    """
    found = []
    for entry in sorted(sys.glob("class/video4linux/video*")):
        function = _text(entry / "index")
        found.append(
            VideoDevice(
                path=dev / entry.name,
                name=_text(entry / "name"),
                serial=_usb_serial(entry / "device"),
                function=int(function) if function.isdigit() else 0,
            )
        )
    return found


def by_serial(serial: str, dev: Path = Path("/dev"), sys: Path = Path("/sys")) -> Path:
    """The device that gives the pictures of the camera with this serial number.

    Raises:
        CameraError: there is none, or several; lists the cameras there are.
    """
    cameras = [device for device in video_devices(dev, sys) if device.function == 0]
    fitting = [device for device in cameras if device.serial == serial]
    if len(fitting) == 1:
        return fitting[0].path
    if fitting:
        links = ", ".join(map(str, _links(dev))) or "none found"
        raise CameraError(f"{len(fitting)} cameras have serial {serial!r}; valid: path, one of {links}")
    there = ", ".join(f"{device.serial or 'none'} ({device.name}, {device.path})" for device in cameras) or "no camera"
    raise CameraError(f"no camera with serial {serial!r}; serials found: {there}")


def by_link(path: str, dev: Path = Path("/dev"), sys: Path = Path("/sys")) -> Path:
    """The device behind one of udev's links, /dev/v4l/by-id/... or /dev/v4l/by-path/...

    Raises:
        CameraError: there is no such link, or it is a number that changes with a reboot; lists the links there are.
    """
    link = Path(path)
    links = _links(dev)
    if link not in links:
        why = "changes when a camera is plugged in or the machine restarts" if link.parent == dev else "is not there"
        raise CameraError(f"path {path}: {why}; valid: serial, or one of {', '.join(map(str, links)) or f'{dev}/v4l/by-id (none found)'}")
    return dev / link.resolve().name


def _links(dev: Path) -> list[Path]:
    return [link for kind in _LINKS for link in sorted((dev / "v4l" / kind).glob("*"))]


def _usb_serial(device: Path) -> str:
    """Of the USB device above an interface; the hubs further up have serial numbers of their own."""
    folder = device.resolve()
    for parent in (folder, *folder.parents):
        if (parent / "idVendor").is_file():
            return _text(parent / "serial")
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
