"""From frames to what a prior sees. Real and generated frames take the same way, so that size, contrast and rounding tell nothing."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError

_FLATTEST = 2.0
"""Grey levels: a crop of less contrast is taken to have this much; noise of the sensor isn't blown up to a picture."""
_PIECE = 256


def cut(frames: NDArray[np.uint8], side: int, tiles: int = 1) -> NDArray[np.uint8]:
    """Crops of frames: the middle square in tiles x tiles equal parts, each averaged down to side x side and rounded.

    Args:
        frames: (n, H, W, 3).
        side: pixels of a crop.
        tiles: parts of a row and of a column.

    Returns:
        (n * tiles^2, side, side, 3) uint8, the crops of a frame one after the other, row by row.

    Raises:
        AuthenticityError: frames smaller than their crops: enlarging would be a trace of its own.
    """
    whole, size = min(frames.shape[1:3]), side * tiles
    if whole < size:
        raise AuthenticityError(
            f"frames of {frames.shape[2]} x {frames.shape[1]} pixels; valid: {size} x {size} or more ({tiles} x {side})"
        )
    top, left = (frames.shape[1] - whole) // 2, (frames.shape[2] - whole) // 2
    found = []
    for at in range(0, len(frames), _PIECE):
        square = np.ascontiguousarray(frames[at : at + _PIECE, top : top + whole, left : left + whole])
        images = torch.from_numpy(square).permute(0, 3, 1, 2).float()
        if whole != size:
            images = F.interpolate(images, size=(size, size), mode="area")
        parts = images.unflatten(3, (tiles, side)).unflatten(2, (tiles, side)).permute(0, 2, 4, 3, 5, 1)
        found.append(parts.round().to(torch.uint8).flatten(0, 2))
    return torch.cat(found).numpy() if found else np.empty((0, side, side, 3), np.uint8)


def put_back(crops: NDArray[np.uint8], frames: NDArray[np.uint8], tiles: int = 1) -> NDArray[np.uint8]:
    """Frames (n, H, W, 3) with crops (n * tiles^2, side, side, 3) in their middle square, each pixel as a block of equal ones.

    `cut` gives the same crops again where the square's side is a multiple of side * tiles, and nearly so elsewhere.
    """
    whole, side = min(frames.shape[1:3]), crops.shape[1]
    square = crops.reshape(-1, tiles, tiles, side, side, 3).transpose(0, 1, 3, 2, 4, 5).reshape(-1, tiles * side, tiles * side, 3)
    index = np.arange(whole) * (tiles * side) // whole
    top, left = (frames.shape[1] - whole) // 2, (frames.shape[2] - whole) // 2
    found = frames.copy()
    found[:, top : top + whole, left : left + whole] = square[:, index][:, :, index]
    return found


def tone(crops: NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each crop's pixels (n,), in grey levels; all channels together, so that colour stays."""
    pixels = torch.from_numpy(crops).flatten(1).double()
    return pixels.mean(dim=1).float(), pixels.std(dim=1, correction=0).float().clamp_min(_FLATTEST)


def standardise(crops: NDArray[np.uint8]) -> Tensor:
    """Crops (n, side, side, 3) as vectors (n, 3 side^2) of mean 0 and deviation 1: ||x||^2 = d, whatever light and contrast."""
    mean, deviation = tone(crops)
    pixels = torch.from_numpy(np.ascontiguousarray(crops.transpose(0, 3, 1, 2))).flatten(1).float()
    return (pixels - mean[:, None]) / deviation[:, None]


def as_crops(images: Tensor, like: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What a generator made, as frames that have the tone of real ones and are rounded as those are.

    Args:
        images: (n, 3 side^2), of any contrast.
        like: n real crops (n, side, side, 3), whose means and deviations they get, one by one.

    Returns:
        (n, side, side, 3) uint8.
    """
    mean, deviation = tone(like)
    centred = images - images.mean(dim=1, keepdim=True)
    scaled = centred / centred.std(dim=1, correction=0, keepdim=True).clamp_min(1e-6) * deviation[:, None] + mean[:, None]
    side = like.shape[1]
    return scaled.round().clamp(0, 255).to(torch.uint8).unflatten(1, (3, side, side)).permute(0, 2, 3, 1).contiguous().numpy()
