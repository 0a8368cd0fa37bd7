"""Labelled pictures of which none is missing: data that lack a shard would train and judge on fewer pictures, or classes, unsaid."""

from __future__ import annotations

from pathlib import Path

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import HEADER, read_header, read_images

_COUNTS = ("images", "stills")
"""What the makers of shards call the number of pictures that they were asked for."""


def read_whole_images(folder: str | Path) -> ImageData:
    """See `image_files.read_images`; shards have to hold as many pictures as their header says were made.

    Raises:
        ImageDataError: see there; or fewer pictures, with both numbers.
    """
    data, folder = read_images(folder), Path(folder)
    if (folder / HEADER).is_file():
        require_all(folder, len(data))
    return data


def require_all(folder: Path, found: int) -> None:
    """Raises ImageDataError where a folder of shards holds another number of pictures than its header says."""
    made_from = read_header(folder)["made_from"]
    for name in _COUNTS:
        if isinstance(wanted := made_from.get(name), int) and found != wanted:
            raise ImageDataError(
                f"{folder}: its *.npz hold {found} pictures, {HEADER} says {wanted}; make the data again with the same settings, "
                "what is there is kept"
            )
