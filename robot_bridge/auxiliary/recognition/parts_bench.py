"""Pictures of parts that all recognition methods are compared on, and their features, worked out once for all runs beside each other."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.parts_data import make
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at
from robot_bridge.auxiliary.recognition.frozen_layers import EfficientNetLayers
from robot_bridge.auxiliary.recognition.ilc import layer_features
from robot_bridge.auxiliary.vlm.feature_cache import image_cache
from robot_bridge.auxiliary.vlm.interface import VLM

Made = TypeVar("Made")
SHIFTS = ("light", "view", "texture", "noise")
TEST_SETS = ("clean", *SHIFTS)
POOL_SEED, TEST_SEED, VALIDATION_SEED = 7100, 7200, 7300
"""Each has objects of its own, which no other seed has."""


class PartsBench:
    """A pool that shots are drawn from, a test set for each shift, and validation pictures of all shifts.

    Args:
        config: `vlm`, the folder of the model, and `images` {pool, test, validation}: pictures in the pool, in each test set and for each
            shift in the validation set; `size`: their pixels.
        folder: where pictures and features are kept; runs side by side share it, the first one makes them.
    """

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self._config, self.folder = config, folder
        self.features = folder / "features"
        self.vlm: VLM = vlm_at(config["vlm"])
        self._kept: dict[str, Any] = {}

    def pictures(self, kind: str, shift: str = "none", *, images: int, seed: int, defects: float = 0.0) -> ImageData:
        """Pictures of all classes, drawn if they are not there yet."""
        place = self.folder / f"{kind}-{shift}-{images}-{self._config['size']}"
        with self._alone():
            make(place, images=images, size=self._config["size"], shift=shift, seed=seed, defects=defects, say=_quiet)  # type: ignore[arg-type]
        return read_images(place)

    @cached_property
    def pool(self) -> ImageData:
        """What shots are drawn from."""
        return self.pictures("pool", images=self._config["images"]["pool"], seed=POOL_SEED)

    @cached_property
    def tests(self) -> dict[str, ImageData]:
        """Test set by name, of `TEST_SETS`."""
        count = self._config["images"]["test"]
        found = {name: self.pictures("test", name, images=count, seed=TEST_SEED) for name in SHIFTS}
        return {"clean": self.pictures("test", images=count, seed=TEST_SEED), **found}

    @cached_property
    def validation(self) -> tuple[ImageData, ...]:
        """Pictures of each shift that choose layers; of other objects than those of the tests."""
        count = self._config["images"]["validation"]
        return tuple(self.pictures("validation", name, images=count, seed=VALIDATION_SEED) for name in SHIFTS)

    @cached_property
    def network(self) -> EfficientNetLayers:
        """The network that probes sit on."""
        return EfficientNetLayers()

    def joint(self, data: ImageData) -> tuple[Tensor, Tensor]:
        """The VLM's vectors (n, d), and labels (n,)."""
        with self._alone():
            found = image_cache(self.vlm, self.features).features(data.frames)["image"]
        return torch.from_numpy(found), torch.from_numpy(data.labels)

    def layers(self, data: ImageData) -> list[Tensor]:
        """Features (n, D_l) of every layer of the network."""
        with self._alone():
            return layer_features(self.network, data, self.features)

    def once(self, name: str, make_it: Callable[[], Made]) -> Made:
        """What does not depend on the shots, made when it is first asked for."""
        if name not in self._kept:
            self._kept[name] = make_it()
        return self._kept[name]

    def shuffled(self, name: str, seed: int) -> NDArray[np.int64]:
        """The order in which a test set's pictures arrive as a stream."""
        return np.random.default_rng([seed, TEST_SETS.index(name)]).permutation(len(self.tests[name]))

    def _alone(self) -> IO[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = open(self.folder / "lock", "w")  # held until it is closed
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock


def _quiet(line: str) -> None:
    """Every run would repeat what the first one said."""
