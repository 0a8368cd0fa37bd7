"""FeatureCache: features of pictures, worked out once. Each picture has its own key, so any selection of known pictures is free.

    FOLDER/<sha256 of the identity>/<sha256 of the keys>.npz      keys (m, 32) uint8 and one array (m, ...) a feature

Pieces are written whole and as soon as they are done: an interrupted run loses at most the piece it was at, and two runs side by side
do no harm. A damaged piece is worked out again. The folder is disposable.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.data.atomic import remove_stale_parts, write_atomically
from robot_bridge.auxiliary.vlm.backbone import Backbone
from robot_bridge.auxiliary.vlm.interface import VLM

Features = dict[str, NDArray[Any]]
Done = Callable[[int], None]
_PIECE = 128
_BATCH = 32


class FeatureCache:
    """Features under one identity.

    Args:
        folder: where caches lie; None keeps nothing.
        identity: of whatever works the features out; equal identities give equal features of equal pictures.
        encode: pictures (m, H, W, 3) -> name -> (m, ...).
    """

    def __init__(self, folder: Path | None, identity: str, encode: Callable[[NDArray[np.uint8]], Features]) -> None:
        self._encode = encode
        self._place = None if folder is None else folder / hashlib.sha256(identity.encode()).hexdigest()[:32]
        self._pieces: list[Features] = []
        self._known: dict[bytes, tuple[int, int]] = {}  # key -> piece and row
        if self._place is not None:
            self._place.mkdir(parents=True, exist_ok=True)
            remove_stale_parts(self._place)
            for file in sorted(self._place.glob("*.npz")):
                self._read(file)

    def features(self, frames: NDArray[np.uint8], done: Done = lambda count: None) -> Features:
        """Features of pictures (n, H, W, 3), in their order.

        Args:
            frames: any pictures; equal ones are worked out once.
            done: told how many of the unknown pictures are worked out.
        """
        keys = [hashlib.sha256(f"{frame.shape}".encode() + np.ascontiguousarray(frame).tobytes()).digest() for frame in frames]
        first = {key: row for row, key in reversed(list(enumerate(keys))) if key not in self._known}
        missing = sorted(first.items(), key=lambda item: item[1])
        for start in range(0, len(missing), _PIECE):
            piece = missing[start : start + _PIECE]
            self._add([key for key, _ in piece], self._encode(frames[[row for _, row in piece]]))
            done(start + len(piece))
        places = np.array([self._known[key] for key in keys]).reshape(-1, 2)
        return {name: self._gather(name, places) for name in (self._pieces[0] if self._pieces else {})}

    def _gather(self, name: str, places: NDArray[np.int64]) -> NDArray[Any]:
        sample = self._pieces[0][name]
        found = np.empty((len(places), *sample.shape[1:]), sample.dtype)
        for piece in np.unique(places[:, 0]):
            rows = places[:, 0] == piece
            found[rows] = self._pieces[piece][name][places[rows, 1]]
        return found

    def _add(self, keys: list[bytes], features: Features) -> None:
        if self._place is not None:
            stamp = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 32)
            with write_atomically(self._place / f"{hashlib.sha256(b''.join(keys)).hexdigest()[:32]}.npz") as file:
                np.savez(file, keys=stamp, **features)  # type: ignore[arg-type]
        self._remember(keys, features)

    def _remember(self, keys: list[bytes], features: Features) -> None:
        for row, key in enumerate(keys):
            self._known.setdefault(key, (len(self._pieces), row))
        self._pieces.append(features)

    def _read(self, file: Path) -> None:
        try:
            with np.load(file, allow_pickle=False) as arrays:
                features = {name: arrays[name] for name in arrays.files}
            keys = [row.tobytes() for row in features.pop("keys")]
            sound = all(len(values) == len(keys) for values in features.values())
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            sound = False
        if sound:
            self._remember(keys, features)
        else:
            file.unlink(missing_ok=True)


def map_cache(backbone: Backbone, folder: Path | None) -> FeatureCache:
    """Cache of a backbone's maps: feature `maps` (m, channels, grid, grid), float16."""

    def encode(frames: NDArray[np.uint8]) -> Features:
        found = [backbone.maps(backbone.preprocess(frames[at : at + _BATCH])).half() for at in range(0, len(frames), _BATCH)]
        return {"maps": torch.cat(found).cpu().numpy()}

    return FeatureCache(folder, f"maps {backbone.identity}", encode)


def image_cache(vlm: VLM, folder: Path | None, *, tokens: bool = False) -> FeatureCache:
    """Cache of joint vectors: feature `image` (m, d), and with `tokens` also `tokens` (m, n, d), float32 and not normalised."""

    def encode(frames: NDArray[np.uint8]) -> Features:
        pieces: list[tuple[Tensor, ...]] = []
        with torch.no_grad():
            for at in range(0, len(frames), _BATCH):
                x = vlm.preprocess(frames[at : at + _BATCH])
                pieces.append(vlm.encode_image(x, tokens=True) if tokens else (vlm.encode_image(x),))
        return {name: torch.cat(piece).cpu().numpy() for name, piece in zip(("image", "tokens"), zip(*pieces, strict=True), strict=False)}

    return FeatureCache(folder, f"image{' and tokens' * tokens} {vlm.identity}", encode)
