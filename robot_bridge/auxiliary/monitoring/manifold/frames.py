"""Frames of a camera as they are: of one size, never enlarged, reduced or cut, since that leaves traces which a detector would learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import HEADER, SUFFIXES
from robot_bridge.auxiliary.monitoring.manifold.dataset_frames import dataset_frames, is_dataset
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.few_shot import require_both
from robot_bridge.auxiliary.whole_images import read_whole_images

CLASSES = ("real", "generated")


def read_frames(folder: str | Path) -> ImageData:
    """Shards where the folder holds `images.json`; a dataset's channels; else `CLASS/FILE.png` or `CLASS/SCENE/FILE.png`.

    Raises:
        ImageDataError: nothing there, something that cannot be read, or pictures of two sizes; names the file.
        DatasetError: a dataset that cannot be read.
    """
    folder = Path(folder)
    expected = f"valid: {folder}/CLASS/FILE.png or {folder}/CLASS/SCENE/FILE.png, a dataset, or a folder of `armstack aux data`"
    if not folder.exists():
        raise ImageDataError(f"{folder}: no such file or folder; {expected}")
    if (folder / HEADER).is_file():
        return read_whole_images(folder)
    if is_dataset(folder):
        return dataset_frames(folder)
    if not folder.is_dir():
        raise ImageDataError(f"{folder}: is a file and no dataset; {expected}")
    places = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    files = [(label, file) for label, place in enumerate(places) for file in _pictures(place)]
    empty = [place.name for label, place in enumerate(places) if label not in {number for number, _ in files}]
    if not files or empty:
        found = f"no pictures in {', '.join(empty)}" if empty else "no folders of pictures"
        raise ImageDataError(f"{folder}: {found}; {expected} ({', '.join(SUFFIXES)})")
    frames = [_read(file) for _, file in files]
    for (_, file), frame in zip(files, frames, strict=True):
        if frame.shape != frames[0].shape:
            raise ImageDataError(
                f"{file}: {frame.shape[1]} x {frame.shape[0]} pixels, {files[0][1]} has {frames[0].shape[1]} x {frames[0].shape[0]}; "
                "valid: frames of one camera, all of one size"
            )
    scenes: dict[Path, int] = {}
    # pictures directly in a class' folder count as different scenes, those of a folder inside it as one
    instances = [scenes.setdefault(file if file.parent == places[label] else file.parent, len(scenes)) for label, file in files]
    return ImageData(
        frames=np.stack(frames),
        labels=np.array([label for label, _ in files], np.int64),
        classes=tuple(place.name.replace("_", " ") for place in places),
        instances=np.array(instances, np.int64),
    )


def read_labelled(folder: str, shape: tuple[int, ...], crops: int) -> ImageData:
    """Frames of the folders `real` and `generated`.

    Args:
        folder: where those two lie.
        shape: of the camera's frames (H, W, 3).
        crops: of a frame.

    Raises:
        ImageDataError: see `read_frames`.
        AuthenticityError: other classes, frames of another size, or too few.
    """
    data = read_frames(folder)
    if set(data.classes) != set(CLASSES):
        raise AuthenticityError(f"{folder}: classes {', '.join(data.classes)}; valid: {', '.join(CLASSES)}")
    require_shape(data, shape, folder)
    require_both(*(crops * int((data.labels == data.classes.index(name)).sum()) for name in CLASSES))
    return data


def require_shape(data: ImageData, shape: tuple[int, ...], what: str) -> None:
    """Raises AuthenticityError where frames are of another size than the camera's, (H, W, 3)."""
    if data.frames.shape[1:] != tuple(shape):
        raise AuthenticityError(
            f"{what}: frames of {data.frames.shape[2]} x {data.frames.shape[1]} pixels; valid: {shape[1]} x {shape[0]}, "
            "those of the camera that the detector is for"
        )


def _pictures(place: Path) -> list[Path]:
    return sorted(file for file in place.rglob("*") if file.suffix.lower() in SUFFIXES)


def _read(file: Path) -> NDArray[np.uint8]:
    try:
        with Image.open(file) as picture:
            return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"), np.uint8)
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise ImageDataError(f"{file}: not a readable picture: {error}; remove it, or save it again") from error
