"""Frames of a camera as they are: of one size, never enlarged, reduced or cut, since that leaves traces which a detector would learn."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import HEADER, read_images
from robot_bridge.auxiliary.monitoring.manifold.dataset_frames import dataset_frames, is_dataset
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.few_shot import require_both

CLASSES = ("real", "generated")


def read_frames(folder: str | Path) -> ImageData:
    """Shards where the folder holds `images.json`; a dataset's channels; else `CLASS/FILE.png` or `CLASS/SCENE/FILE.png`.

    Raises:
        ImageDataError: nothing there, something that cannot be read, or pictures of two sizes; names the file.
        DatasetError: a dataset that cannot be read.
    """
    folder = Path(folder)
    if not (folder / HEADER).is_file() and is_dataset(folder):
        return dataset_frames(folder)
    if folder.is_file():
        raise ImageDataError(f"{folder}: is a file and no dataset; valid: a dataset, or a folder with a folder of pictures a class")
    return read_images(folder, side=None, least=1)


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


def means_generated(name: str) -> bool:
    """Whether a class' name is `generated`, or nearly."""
    return bool(get_close_matches(name.lower(), ["generated"], cutoff=0.8))


def require_real(classes: tuple[str, ...]) -> None:
    """Raises AuthenticityError where a class says that its frames were generated: a threshold is set on real ones."""
    if made := [name for name in classes if means_generated(name)]:
        raise AuthenticityError(
            f"--data: class {', '.join(made)}; valid: classes of real frames alone. Labelled frames of both kinds are --config.labelled"
        )


def require_shape(data: ImageData, shape: tuple[int, ...], what: str) -> None:
    """Raises AuthenticityError where frames are of another size than the camera's, (H, W, 3)."""
    if data.frames.shape[1:] != tuple(shape):
        raise AuthenticityError(
            f"{what}: frames of {data.frames.shape[2]} x {data.frames.shape[1]} pixels; valid: {shape[1]} x {shape[0]}, "
            "those of the camera that the detector is for"
        )
