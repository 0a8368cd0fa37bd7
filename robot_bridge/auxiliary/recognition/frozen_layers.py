"""All layers of a frozen network in one pass, and the network cut off behind one of them (ILC, arXiv 2504.05461)."""

from __future__ import annotations

import io
import warnings
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.strap.encoders import SIDE, EfficientNetLite

_STAGE_ENDS = (0, 2, 4, 7, 10, 14, 15)
_PIECE = 16


class FrozenLayers(Protocol):
    """A frozen network. Equal `identity` means equal features of equal frames.

    Attributes:
        identity: names network, weights and pooling.
        names: of its layers, first to last; the last is the penultimate one, on which a classifier usually sits.
    """

    identity: str
    names: tuple[str, ...]

    def features(self, frames: NDArray[np.uint8], last: int | None = None) -> list[Tensor]:
        """Features (n, D_l) of layers 0 to `last` (all if None) of frames (n, H, W, 3); nothing behind `last` is computed."""
        ...


class EfficientNetLayers:
    """Stem, seven stages and the pooled head of EfficientNet-Lite0 (arXiv 1905.11946; ImageNet weights from a package).

    On a CPU the network runs in ONNX Runtime, as for the small VLM.

    Args:
        pool: maps are averaged to pool x pool places, the head to one; flattened whole, the first layer has 400,000 features.
    """

    names = ("stem", *(f"stage {number}" for number in range(1, 8)), "head")

    def __init__(self, pool: int = 4) -> None:
        net = EfficientNetLite()
        self._net, self._pool = net._net, pool
        self.identity = f"{net.identity} layers pooled to {pool}"
        self._run = cache(self._session)

    def features(self, frames: NDArray[np.uint8], last: int | None = None) -> list[Tensor]:
        """See `FrozenLayers`."""
        end = len(self.names) - 1 if last is None else last
        run, found = self._run(end), []
        for at in range(0, len(frames), _PIECE):
            x = torch.from_numpy(np.ascontiguousarray(frames[at : at + _PIECE])).permute(0, 3, 1, 2).float()
            x = F.interpolate(x, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
            maps = run(None, {"x": ((x - 127.0) / 128.0).numpy()})
            found.append([self._pooled(torch.from_numpy(each), index) for index, each in enumerate(maps)])
        return [torch.cat(layer) for layer in zip(*found, strict=True)]

    def _pooled(self, maps: Tensor, layer: int) -> Tensor:
        return F.adaptive_avg_pool2d(maps, 1 if layer == len(self.names) - 1 else self._pool).flatten(1)

    def _session(self, last: int) -> Any:
        import onnxruntime

        file: Any = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = [f"layer{index}" for index in range(last + 1)]
            axes = {name: {0: "n"} for name in ("x", *names)}
            example = (torch.zeros(1, 3, SIDE, SIDE),)
            torch.onnx.export(
                _Stages(self._net, last), example, file, dynamo=False, input_names=["x"], output_names=names, dynamic_axes=axes
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        return onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"]).run


class _Stages(nn.Module):
    """Post-activation maps of layers 0 to `last`."""

    def __init__(self, net: Any, last: int) -> None:
        super().__init__()
        self.net, self.last = net, last
        self.eval()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.net._swish(self.net._bn0(self.net._conv_stem(x)))
        found = [x]
        for index, block in enumerate(self.net._blocks):
            if len(found) > self.last:
                return tuple(found)
            x = block(x)
            if index in _STAGE_ENDS:
                found.append(x)
        if len(found) > self.last:
            return tuple(found)
        return (*found, self.net._swish(self.net._bn1(self.net._conv_head(x))))
