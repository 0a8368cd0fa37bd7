"""Complex echoes of a radar as messages and back."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import Float32MultiArray, MultiArrayDimension, MultiArrayLayout

from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarError

WINDOW = ("frames", "tx", "rx", "frequency", "re_im")
"""Dimensions of `radar/echo`; `radar/background` has all but the first."""


def echo_message(echo: NDArray[np.complex64], names: Sequence[str] = WINDOW) -> Float32MultiArray:
    """Float32MultiArray of a complex array (...,) as [..., 2], real and imaginary; `names` are those of its dimensions."""
    numbers = np.ascontiguousarray(echo, np.complex64).view(np.float32)
    shape = (*echo.shape, 2)
    strides = np.cumprod(shape[::-1])[::-1].tolist()
    dimensions = [MultiArrayDimension(label=n, size=size, stride=stride) for n, size, stride in zip(names, shape, strides, strict=True)]
    return Float32MultiArray(layout=MultiArrayLayout(dim=dimensions), data=array("f", numbers.tobytes()))


def numbers_of(message: Float32MultiArray) -> NDArray[Any]:
    """The message's numbers, float32, in the shape that its layout tells.

    Raises:
        RadarError: the layout is not that of the numbers.
    """
    shape = tuple(dimension.size for dimension in message.layout.dim)
    numbers = np.array(message.data, np.float32)
    if not shape or int(np.prod(shape)) != len(numbers) or message.layout.data_offset:
        raise RadarError(f"radar message: {len(numbers)} numbers in a layout of {shape}, valid: as many as the layout says, no offset")
    return numbers.reshape(shape)
