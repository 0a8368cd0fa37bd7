"""Labelled pictures on disk: the project's own shards, or anybody's folder with a folder of pictures for each class.

A folder of shards holds `images.json` (format, version, classes) and `NAME.npz` files, each of which is whole: frames, labels, instances,
and optionally captions, segmentation and `factor_NAME`. Arrays are plain: nothing is unpickled.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from rl_core.data.atomic import write_atomically
from robot_bridge.auxiliary.image_data import ImageData, ImageDataError

HEADER = "images.json"
FORMAT = "armstack-images"
VERSION = 1
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
_FACTOR = "factor_"
_COUNTS = ("images", "stills")
"""What the makers of shards call the number of pictures that they were asked for."""


def read_images(folder: str | Path, *, side: int | None = 128, least: int = 2) -> ImageData:
    """Pictures of a folder: shards where it holds `images.json`, else one folder of pictures a class.

    Args:
        folder: where they lie.
        side: pixels of width and height to which pictures of class folders are brought (cut to a square first); None takes them as they
            are, all of one size. Shards keep their own.
        least: class folders that there have to be.

    Raises:
        ImageDataError: nothing there, or something that cannot be read; names the file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ImageDataError(f"{folder}: no such folder; valid: a folder of `armstack aux data`, or one with a folder of pictures a class")
    return read_shards(folder) if (folder / HEADER).is_file() else read_class_folders(folder, side=side, least=least)


def read_class_folders(folder: Path, *, side: int | None = 128, least: int = 2) -> ImageData:
    """Pictures `CLASS/FILE.jpg`; the class is named as its folder, with "_" as a space.

    All pictures directly in a class' folder count as different objects; those in a folder inside it (`CLASS/OBJECT/FILE.jpg`) as one.

    Raises:
        ImageDataError: too few classes, a class without pictures, a picture that cannot be read, or pictures of two sizes as they are.
    """
    places = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    expected = f"valid: {folder}/CLASS/FILE.jpg with {least} or more classes ({', '.join(SUFFIXES)})"
    if len(places) < least:
        found = f"one class, {places[0].name!r}" if places else "no class folders"
        raise ImageDataError(f"{folder}: {found}; {expected}")
    frames: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    objects: dict[Path, int] = {}
    instances: list[int] = []
    for label, place in enumerate(places):
        files = sorted(file for file in place.rglob("*") if file.suffix.lower() in SUFFIXES)
        if not files:
            raise ImageDataError(f"{place}: no pictures; {expected}")
        for file in files:
            frames.append(_read_picture(file, side))
            if frames[-1].shape != frames[0].shape:
                (height, width), (own_height, own_width) = frames[0].shape[:2], frames[-1].shape[:2]
                raise ImageDataError(
                    f"{file}: {own_width} x {own_height} pixels, those before it {width} x {height}; valid: all of one size"
                )
            labels.append(label)
            instances.append(objects.setdefault(file if file.parent == place else file.parent, len(objects)))
    return ImageData(
        frames=np.stack(frames),
        labels=np.array(labels, np.int64),
        classes=tuple(place.name.replace("_", " ") for place in places),
        instances=np.array(instances, np.int64),
    )


def read_shards(folder: Path) -> ImageData:
    """All shards of a folder, in the order of their names.

    Raises:
        ImageDataError: no header or none of this version, no shards, a damaged one, or fewer pictures than were made; names the file.
    """
    header = read_header(folder)
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise ImageDataError(f"{folder}: {HEADER} is there, but no *.npz; make the data again, what is finished is kept")
    shards = [_read_shard(file) for file in files]
    names = set(shards[0])
    for file, shard in zip(files, shards, strict=True):
        if set(shard) != names or shard["frames"].shape[1:] != shards[0]["frames"].shape[1:]:
            raise ImageDataError(f"{file}: arrays {sorted(shard)} of another kind than in {files[0].name}: {sorted(names)}")
    whole = {name: np.concatenate([shard[name] for shard in shards]) for name in names}
    found, made_from = len(whole["frames"]), header.get("made_from") or {}
    # without this, data that lack a shard would train and judge on fewer pictures, or classes, unsaid
    if short := [wanted for name in _COUNTS if isinstance(wanted := made_from.get(name), int) and wanted != found]:
        raise ImageDataError(
            f"{folder}: its *.npz hold {found} pictures, {HEADER} says {short[0]}; make the data again with the same settings, what is "
            "there is kept"
        )
    return ImageData(
        frames=whole["frames"],
        labels=whole["labels"].astype(np.int64),
        classes=tuple(header["classes"]),
        instances=whole["instances"].astype(np.int64),
        captions=tuple(str(caption) for caption in whole.get("captions", ())),
        factors={name.removeprefix(_FACTOR): values for name, values in whole.items() if name.startswith(_FACTOR)},
        segmentation=whole.get("segmentation"),
    )


def write_shard(data: ImageData, file: Path) -> None:
    """Writes pictures as one shard, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {"frames": data.frames, "labels": data.labels, "instances": data.instances}
    if data.captions:
        arrays["captions"] = np.array(data.captions, np.str_)
    if data.segmentation is not None:
        arrays["segmentation"] = data.segmentation
    arrays.update({_FACTOR + name: values for name, values in data.factors.items()})
    with write_atomically(file) as target:
        np.savez_compressed(target, **arrays)  # type: ignore[arg-type]


def write_header(folder: Path, classes: Sequence[str], made_from: dict[str, Any]) -> None:
    """Writes the header of a folder of shards; `made_from` (JSON) says how they came about."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"format": FORMAT, "version": VERSION, "classes": list(classes), "made_from": made_from}
    with write_atomically(folder / HEADER) as target:
        target.write((json.dumps(header, indent=1, sort_keys=True) + "\n").encode())


def read_header(folder: Path) -> dict[str, Any]:
    """The header of a folder of shards.

    Raises:
        ImageDataError: not there, not readable, or of another format or version.
    """
    file = folder / HEADER
    try:
        header = json.loads(file.read_text())
        classes, found = header["classes"], (header["format"], header["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImageDataError(f"{file}: not readable: {error!r}; valid: what `armstack aux data` writes") from error
    if found != (FORMAT, VERSION) or not all(isinstance(name, str) for name in classes):
        raise ImageDataError(f"{file}: format and version {found}; this Armstack reads {(FORMAT, VERSION)}")
    return header


def _read_shard(file: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            shard = {name: arrays[name] for name in arrays.files}
        missing = {"frames", "labels", "instances"} - set(shard)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ImageDataError(f"{file}: not readable: {error}; delete it and make the data again, the other shards are kept") from error
    if missing:
        raise ImageDataError(f"{file}: arrays {sorted(missing)} are missing; found: {sorted(shard)}")
    return shard


def _read_picture(file: Path, side: int | None) -> NDArray[np.uint8]:
    try:
        with Image.open(file) as picture:
            upright = ImageOps.exif_transpose(picture).convert("RGB")
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise ImageDataError(f"{file}: not a readable picture: {error}; remove it, or save it again") from error
    if side is None:
        return np.asarray(upright, np.uint8)
    return np.asarray(ImageOps.fit(upright, (side, side), Image.Resampling.BILINEAR), np.uint8)
