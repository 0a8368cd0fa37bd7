"""A fake /dev and /sys with USB cameras in them, whose devices are videos of one colour that OpenCV plays."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

HUB_SERIAL = "0000:00:14.0"


def video(file: Path, rgb: tuple[int, int, int], *, frames: int = 5, size: tuple[int, int] = (32, 24)) -> Path:
    """A video of one colour without loss."""
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter.fourcc(*"FFV1"), 30.0, size)
    for _ in range(frames):
        writer.write(np.full((size[1], size[0], 3), rgb[::-1], np.uint8))
    writer.release()
    return file


def plug(root: Path, cameras: Sequence[tuple[str, Path]]) -> dict[str, Path]:
    """Makes root/dev and root/sys anew with cameras (serial, video) in the order in which they answered; gives `dev` and `sys`.

    As the kernel's UVC driver does, each camera has two devices: pictures and metadata.
    """
    for name in ("dev", "sys"):
        shutil.rmtree(root / name, ignore_errors=True)
    hub = root / "sys/devices/usb1"
    (root / "sys/class/video4linux").mkdir(parents=True)
    for link in ("by-id", "by-path"):
        (root / "dev/v4l" / link).mkdir(parents=True)
    hub.mkdir(parents=True)
    (hub / "idVendor").write_text("1d6b\n")
    (hub / "serial").write_text(f"{HUB_SERIAL}\n")
    for port, (serial, file) in enumerate(cameras):
        usb = hub / f"1-{port}"
        (usb / f"1-{port}:1.0").mkdir(parents=True)
        (usb / "idVendor").write_text("046d\n")
        if serial:
            (usb / "serial").write_text(f"{serial}\n")
        for function in range(2):
            name = f"video{2 * port + function}"
            device = usb / f"1-{port}:1.0/video4linux" / name
            device.mkdir(parents=True)
            (device / "index").write_text(f"{function}\n")
            (device / "name").write_text("UVC Camera\n")
            (device / "device").symlink_to("../..")
            (root / "sys/class/video4linux" / name).symlink_to(device)
            if function == 0:
                shutil.copy(file, root / "dev" / name)
                link = root / f"dev/v4l/by-id/usb-UVC_{serial or 'Camera'}-video-index0"
                link.unlink(missing_ok=True)  # of two with one name, udev keeps the last
                link.symlink_to(f"../../{name}")
                (root / f"dev/v4l/by-path/pci-usb-0:{port}-video-index0").symlink_to(f"../../{name}")
            else:
                (root / "dev" / name).touch()
    return {"dev": root / "dev", "sys": root / "sys"}
