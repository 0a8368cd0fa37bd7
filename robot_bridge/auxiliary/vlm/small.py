"""SmallVLM: a vision-language model of 2.6 M trained weights over frozen EfficientNet-Lite0 maps, trained in the project in minutes.

Vision: maps -> Linear -> CLS and patches -> 4 pre-norm blocks -> ln_post -> projection. Text: words -> 4 causal blocks -> the EOT's
token -> norm -> projection. The backbone stays out of the bundle: its weights come with its package, and the bundle names their hash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.vlm.backbone import Backbone, EfficientNetMaps, Stage
from robot_bridge.auxiliary.vlm.blocks import PreNormBlock
from robot_bridge.auxiliary.vlm.interface import Block, VLMError
from robot_bridge.auxiliary.vlm.towers import Towers
from robot_bridge.auxiliary.vlm.words import WordTokenizer

KIND = "vlm"
METHOD = "small-vlm"


@dataclass(frozen=True, kw_only=True)
class SmallVLMConfig:
    """The model's sizes."""

    stage: Stage = "7x7x320"
    """Maps of the backbone that become tokens: rows x columns x channels."""
    width: int = 192
    """Size of a vision token."""
    blocks: int = 4
    """Vision blocks."""
    heads: int = 3
    """Attention heads of a vision block."""
    text_width: int = 128
    """Size of a text token."""
    text_blocks: int = 4
    """Text blocks."""
    text_heads: int = 4
    """Attention heads of a text block."""
    embed_dim: int = 128
    """Size of the joint space."""
    context_length: int = 40
    """Most text tokens, SOS and EOT included."""


class SmallVLM(Towers):
    """See `interface.VLM`; freshly made it is untrained and not frozen. Gradients do not flow to pixels.

    Args:
        config: sizes.
        vocabulary: words of the text tower.
        backbone: whose maps are read; None = EfficientNet-Lite0 at `config.stage`.

    Raises:
        VLMError: the backbone's package is not installed.
    """

    def __init__(self, config: SmallVLMConfig, vocabulary: Sequence[str], backbone: Backbone | None = None) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone if backbone is not None else EfficientNetMaps(config.stage)
        self.words = WordTokenizer(vocabulary, config.context_length)
        self.embed_dim, self.text_width, self.context_length = config.embed_dim, config.text_width, config.context_length
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

        width, places = config.width, self.backbone.grid**2
        self.map_norm = nn.LayerNorm(self.backbone.channels)
        self.patches = nn.Linear(self.backbone.channels, width)
        self.cls = nn.Parameter(0.02 * torch.randn(width))
        self.positions = nn.Parameter(0.02 * torch.randn(1 + places, width))
        self.ln_pre = nn.LayerNorm(width)
        self.vision = nn.ModuleList([PreNormBlock(width, config.heads) for _ in range(config.blocks)])
        self.ln_post = nn.LayerNorm(width)
        self.vision_projection = nn.Linear(width, config.embed_dim, bias=False)

        self.words_embedding = nn.Embedding(self.words.size, config.text_width)
        nn.init.normal_(self.words_embedding.weight, std=0.02)
        self.text_places = nn.Parameter(0.01 * torch.randn(config.context_length, config.text_width))
        self.text = nn.ModuleList([PreNormBlock(config.text_width, config.text_heads) for _ in range(config.text_blocks)])
        self.text_norm = nn.LayerNorm(config.text_width)
        self.text_projection = nn.Linear(config.text_width, config.embed_dim, bias=False)

    def preprocess(self, rgb: NDArray[np.uint8]) -> Tensor:
        """See `interface.VLM`."""
        return self.backbone.preprocess(rgb)

    def vision_tokens(self, x: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.map_tokens(self.backbone.maps(x))

    def map_tokens(self, maps: Tensor) -> Tensor:
        """Input of the first vision block (B, 1 + n, width) of the backbone's maps (B, channels, grid, grid), which may be kept."""
        patches = self.patches(self.map_norm(maps.float().flatten(2).transpose(1, 2)))
        tokens = torch.cat([self.cls.expand(len(maps), 1, -1), patches], dim=1)
        return self.ln_pre(tokens + self.positions)

    def vision_head(self, hidden: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.vision_projection(self.ln_post(hidden))

    def vision_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""
        return list(self.vision)  # type: ignore[arg-type]  # a ModuleList is not typed by what it holds

    def text_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""
        return list(self.text)  # type: ignore[arg-type]

    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """See `interface.VLM`; words outside the vocabulary get untrained tokens of their own (`words.unknown`)."""
        return self.words(texts).to(self.text_places.device)

    def eot(self, ids: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return ids.argmax(dim=-1)

    def token_embedding(self, ids: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.words_embedding(ids)

    def text_positions(self) -> Tensor:
        """See `towers.Towers`."""
        return self.text_places

    def text_head(self, hidden: Tensor) -> Tensor:
        """See `towers.Towers`."""
        return self.text_projection(self.text_norm(hidden))

    def freeze(self) -> None:
        """See `towers.Towers`; the identity then names the weights."""
        super().freeze()
        self.identity = f"{METHOD} {self.weights_hash()} on {self.backbone.identity}"

    def save(self, folder: str | Path, *, data_fingerprint: str = "", metrics: dict[str, Any] | None = None) -> Path:
        """Writes the model as a bundle (`bundle.json`, `weights.safetensors`)."""
        config = asdict(self.config) | {"vocabulary": list(self.words.vocabulary), "backbone": self.backbone.identity}
        bundle = Bundle(
            kind=KIND, method=METHOD, config=config, weights=self.state_dict(), data_fingerprint=data_fingerprint, metrics=metrics or {}
        )
        return bundle.save(folder)

    @classmethod
    def load(cls, folder: str | Path, backbone: Backbone | None = None) -> SmallVLM:
        """A frozen model from its bundle.

        Raises:
            BundleError: no bundle there, or a damaged one.
            VLMError: the bundle of another kind, or made on another backbone than the one here.
        """
        bundle = Bundle.load(folder)
        if (bundle.kind, bundle.method) != (KIND, METHOD):
            raise VLMError(f"{folder}: a bundle of kind {bundle.kind!r}, method {bundle.method!r}; valid: {KIND!r}, {METHOD!r}")
        config = dict(bundle.config)
        vocabulary, made_on = config.pop("vocabulary"), config.pop("backbone")
        model = cls(SmallVLMConfig(**config), vocabulary, backbone)
        if model.backbone.identity != made_on:
            raise VLMError(f"{folder}: trained on backbone {made_on!r}; here is {model.backbone.identity!r}")
        model.load_state_dict(dict(bundle.weights))
        model.freeze()
        return model
