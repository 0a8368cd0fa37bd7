"""Frozen feature maps of EfficientNet-Lite0 (arXiv 1905.11946; ImageNet weights from a package).

ONNX Runtime runs the network four times as fast as PyTorch on one core of a CPU, so it is taken there.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.strap.encoders import SIDE, EfficientNetLite
from rl_core.strap.sdtw import RetrievalError
from robot_bridge.auxiliary.vlm.interface import VLMError

Stage = Literal["7x7x320", "14x14x112"]
_LAST_BLOCK: dict[Stage, int] = {"7x7x320": 15, "14x14x112": 10}
_PIECE = 16


class Backbone(Protocol):
    """A frozen network from pictures to feature maps (B, channels, grid, grid). Equal `identity` means equal maps of equal pictures."""

    identity: str
    channels: int
    grid: int

    def preprocess(self, rgb: NDArray[np.uint8]) -> Tensor:
        """See `interface.VLM.preprocess`."""
        ...

    def maps(self, x: Tensor) -> Tensor:
        """Maps (B, channels, grid, grid) of preprocessed pictures (B, 3, side, side); no gradients."""
        ...


class EfficientNetMaps(EfficientNetLite):
    """The maps after one of the network's stages, 224 x 224 pixels in.

    Args:
        stage: rows x columns x channels; `7x7x320` is the last, `14x14x112` has finer tokens.

    Raises:
        VLMError: its package is not installed.
    """

    def __init__(self, stage: Stage = "7x7x320") -> None:
        try:
            super().__init__()
        except RetrievalError as error:
            raise VLMError(f"the small VLM's backbone is not installed ({error.__cause__}): pip install 'armstack[vlm]'") from error
        self.stage = stage
        self.grid, _, self.channels = (int(number) for number in stage.split("x"))
        self.identity = f"{self.identity} {stage}"
        self._head = _Head(self._net, _LAST_BLOCK[stage])

    def preprocess(self, rgb: NDArray[np.uint8]) -> Tensor:
        """See `Backbone`: resized to 224 x 224, (value - 127) / 128."""
        x = torch.from_numpy(np.ascontiguousarray(rgb)).permute(0, 3, 1, 2).float()
        if x.shape[-2:] != (SIDE, SIDE):
            x = F.interpolate(x, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
        return (x - 127.0) / 128.0

    def maps(self, x: Tensor) -> Tensor:
        """See `Backbone`."""
        with torch.no_grad():
            if x.device.type != "cpu":
                return self._head.to(x.device)(x)
            return torch.cat([torch.from_numpy(self._run(piece.numpy())) for piece in x.split(_PIECE)])

    @cached_property
    def _run(self) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
        import onnxruntime

        file: Any = io.BytesIO()  # the older exporter writes to an open file; the signature names only the newer one's
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            example = (torch.zeros(1, 3, SIDE, SIDE),)
            torch.onnx.export(
                self._head, example, file, dynamo=False, input_names=["x"], output_names=["maps"], dynamic_axes={"x": {0: "n"}}
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session: Any = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"x": x})[0]


class _Head(nn.Module):
    def __init__(self, net: Any, last_block: int) -> None:
        super().__init__()
        self.stem, self.norm, self.activation = net._conv_stem, net._bn0, net._swish
        self.blocks = net._blocks[: last_block + 1]
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return x
