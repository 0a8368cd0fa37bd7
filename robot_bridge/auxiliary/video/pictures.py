"""Pictures out of Image and CompressedImage messages of any encoding that shows colours or greys."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rl_core.contract import Channel
from rl_core.data.episode import DatasetError
from rl_core.data.formats.bag_values import picture

_PLAIN = ("rgb8", "bgr8", "rgba8", "bgra8", "mono8")
_BAYER = ("bayer_rggb8", "bayer_bggr8", "bayer_gbrg8", "bayer_grbg8")
_LUMA = {"yuv422": 1, "uyvy": 1, "yuv422_yuy2": 0, "yuyv": 0}
"""Encodings whose pixels are a luma byte, at this place, and a chroma byte, of blue and of red in turn."""
# ITU-R BT.601 of video range, as cv_bridge decodes it: (Y - 16, U - 128, V - 128) -> R, G, B.
_BT601 = np.array([[1.164, 0.0, 1.596], [1.164, -0.392, -0.813], [1.164, 2.017, 0.0]], np.float32)


def described(message: Any) -> str:
    """What an Image or CompressedImage says of itself: `encoding 16UC1`, `format jpeg`."""
    return f"encoding {message.encoding}" if hasattr(message, "step") else f"format {message.format}"


def pixels(message: Any, where: str) -> NDArray[np.uint8] | None:
    """RGB (H, W, 3); None for what is no picture in colours or greys of eight bits, a depth map say.

    Args:
        message: an Image or a CompressedImage.
        where: for errors.

    Raises:
        DatasetError: bytes that are not the picture they should be.
    """
    if not hasattr(message, "step"):
        return _decompressed(message, where)
    if message.encoding in _PLAIN:
        shape = (int(message.height), int(message.width), 3)
        return picture(message, Channel(name="picture", kind="image", shape=shape, encoding="rgb8", row_order="top_down"), where=where)
    if message.encoding in _BAYER:
        return _from_bayer(_rows(message, 1, where)[..., 0], message.encoding[len("bayer_") : -1])
    if message.encoding in _LUMA:
        return _from_yuv(_rows(message, 2, where), _LUMA[message.encoding])
    return None


def _decompressed(message: Any, where: str) -> NDArray[np.uint8] | None:
    if "compressedDepth" in message.format:
        return None
    try:
        found = Image.open(io.BytesIO(bytes(message.data)))
        return None if found.mode.startswith(("I", "F")) else np.asarray(found.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:  # what Pillow raises for bytes of another kind
        raise DatasetError(f"{where}: {len(message.data)} bytes of format {message.format!r} are no picture that can be read") from error


def _rows(message: Any, size: int, where: str) -> NDArray[np.uint8]:
    """(H, W, size) bytes of an Image whose colours come in cells of two pixels."""
    height, width, step = int(message.height), int(message.width), int(message.step or message.width * size)
    if min(height, width) < 2 or width % 2 or step < width * size or len(message.data) != height * step:
        raise DatasetError(f"{where}: {len(message.data)} bytes, step {step}, for {height}x{width} {message.encoding}")
    return np.asarray(message.data, np.uint8).reshape(height, step)[:, : width * size].reshape(height, width, size)


def _from_bayer(cells: NDArray[np.uint8], pattern: str) -> NDArray[np.uint8]:
    """Half as high and wide: each 2 x 2 cell of the sensor (`rggb`: row by row) becomes one pixel."""
    height = len(cells) // 2 * 2
    places: dict[str, list[NDArray[np.uint8]]] = {colour: [] for colour in "rgb"}
    for place, colour in enumerate(pattern):
        places[colour].append(cells[place // 2 : height : 2, place % 2 :: 2])
    return np.stack([np.mean(places[colour], axis=0) for colour in "rgb"], axis=-1).round().astype(np.uint8)


def _from_yuv(rows: NDArray[np.uint8], luma: int) -> NDArray[np.uint8]:
    chroma = rows[..., 1 - luma]
    blue, red = (np.repeat(chroma[:, first::2], 2, axis=1) for first in (0, 1))
    yuv = np.stack([rows[..., luma], blue, red], axis=-1).astype(np.float32) - np.array([16, 128, 128], np.float32)
    return (yuv @ _BT601.T).clip(0, 255).round().astype(np.uint8)
