"""ImageData: labelled pictures in memory, with splits that never let one object stand on both sides.

Pictures of one object are near copies of each other, so every split goes by object instance. Files are read in `image_files.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError


class ImageDataError(ArmstackError):
    """Pictures that cannot be used; names the file or field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class ImageData:
    """n labelled pictures.

    Attributes:
        frames: (n, H, W, 3) uint8, RGB, first row on top.
        labels: (n,) int64, index into `classes`.
        classes: names of the classes, as a person would say them ("square nut").
        instances: (n,) int64, which object it is; equal numbers mean the same object.
        captions: one sentence a picture; none where nobody wrote any.
        factors: what a renderer drew the picture from, name -> (n, ...): azimuth_deg, light, defect, ...
        segmentation: (n, H, W) uint8: 0 background, 1 the labelled object, 2 other objects, 3 a defect of the labelled object.
    """

    frames: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    instances: NDArray[np.int64]
    captions: tuple[str, ...] = ()
    factors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    segmentation: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        count = len(self.frames)
        if self.frames.ndim != 4 or self.frames.shape[-1] != 3 or self.frames.dtype != np.uint8:
            raise ImageDataError(f"frames of type {self.frames.dtype} and shape {self.frames.shape}; valid: uint8 (n, H, W, 3)")
        if not self.classes or len(set(self.classes)) != len(self.classes):
            raise ImageDataError(f"classes {list(self.classes)}; valid: different names, at least one")
        for name, values in (("labels", self.labels), ("instances", self.instances), *self.factors.items()):
            if len(values) != count:
                raise ImageDataError(f"{name}: {len(values)} values for {count} frames; valid: one a frame")
        if count and not (0 <= self.labels.min() and self.labels.max() < len(self.classes)):
            raise ImageDataError(f"labels {self.labels.min()}..{self.labels.max()}; valid: 0..{len(self.classes) - 1}, one for each class")
        if self.captions and len(self.captions) != count:
            raise ImageDataError(f"captions: {len(self.captions)} for {count} frames; valid: one a frame, or none")
        if self.segmentation is not None and self.segmentation.shape != self.frames.shape[:3]:
            raise ImageDataError(f"segmentation of shape {self.segmentation.shape}; valid: {self.frames.shape[:3]}")

    def __len__(self) -> int:
        return len(self.frames)

    def select(self, chosen: NDArray[Any]) -> ImageData:
        """The pictures where a mask (n,) is true, or those of an index array, in its order; classes stay as they are."""
        rows = np.flatnonzero(chosen) if chosen.dtype == bool else np.asarray(chosen, np.int64)
        return ImageData(
            frames=self.frames[rows],
            labels=self.labels[rows],
            classes=self.classes,
            instances=self.instances[rows],
            captions=tuple(self.captions[row] for row in rows) if self.captions else (),
            factors={name: values[rows] for name, values in self.factors.items()},
            segmentation=None if self.segmentation is None else self.segmentation[rows],
        )

    def only(self, classes: Sequence[str]) -> ImageData:
        """Pictures of those classes alone; labels then count in the order given (base and new classes, known and unknown ones).

        Raises:
            ImageDataError: a class that is not there; lists those that are.
        """
        unknown = [name for name in classes if name not in self.classes]
        if unknown:
            raise ImageDataError(f"no class {unknown}; classes: {list(self.classes)}")
        new_label = np.full(len(self.classes), -1, np.int64)
        new_label[[self.classes.index(name) for name in classes]] = np.arange(len(classes))
        kept = self.select(new_label[self.labels] >= 0)
        return ImageData(**{**vars(kept), "labels": new_label[kept.labels], "classes": tuple(classes)})

    def split(self, shares: Sequence[float], seed: int) -> tuple[ImageData, ...]:
        """Parts of about those shares of each class' objects; all pictures of one object go to one part.

        Args:
            shares: one a part, above 0; their sum is 1 (0.7, 0.3).
            seed: decides which object goes where.

        Raises:
            ImageDataError: shares that do not sum to 1, or a class with fewer objects than parts; names the class.
        """
        if min(shares) <= 0 or abs(sum(shares) - 1.0) > 1e-6:
            raise ImageDataError(f"shares {list(shares)}; valid: above 0, with a sum of 1")
        generator = np.random.default_rng(seed)
        part = np.zeros(len(self), np.int64)
        for label in np.unique(self.labels):
            objects = generator.permutation(np.unique(self.instances[self.labels == label]))
            if len(objects) < len(shares):
                raise ImageDataError(
                    f"class {self.classes[label]!r} has {len(objects)} object(s) for {len(shares)} parts; valid: one or more a part "
                    "(pictures of one object never go to different parts)"
                )
            part[self.labels == label] = _parts(objects, shares, self.instances[self.labels == label])
        return tuple(self.select(part == index) for index in range(len(shares)))

    def few_shot(self, shots: int, seed: int) -> ImageData:
        """`shots` pictures of each class, of as many different objects as there are.

        Raises:
            ImageDataError: a class with fewer pictures; names it.
        """
        generator = np.random.default_rng(seed)
        chosen: list[int] = []
        for label, name in enumerate(self.classes):
            rows = generator.permutation(np.flatnonzero(self.labels == label))
            if len(rows) < shots or shots < 1:
                raise ImageDataError(f"{shots} shots of class {name!r} with {len(rows)} picture(s); valid: 1..{len(rows)}")
            turn = np.zeros(len(rows), np.int64)  # how many pictures of the same object come before
            seen: dict[int, int] = {}
            for index, row in enumerate(rows):
                turn[index] = seen.get(int(self.instances[row]), 0)
                seen[int(self.instances[row])] = turn[index] + 1
            chosen.extend(rows[np.argsort(turn, kind="stable")][:shots])
        return self.select(np.array(chosen))


def _parts(objects: NDArray[np.int64], shares: Sequence[float], instances: NDArray[np.int64]) -> NDArray[np.int64]:
    """The part of each instance; every part gets at least one object."""
    ends = np.round(np.cumsum(shares) * len(objects)).astype(np.int64)
    for index in range(len(ends)):
        ends[index] = min(max(ends[index], index + 1), len(objects) - (len(ends) - 1 - index))
    place = {int(name): int(np.searchsorted(ends, rank, side="right")) for rank, name in enumerate(objects)}
    return np.array([place[int(instance)] for instance in instances], np.int64)
