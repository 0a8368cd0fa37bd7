"""Settings of STRAP's policy, the language-conditioned BC transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rl_core.training.config import Config, ConfigError


@dataclass(frozen=True, kw_only=True)
class BCTransformerConfig(Config):
    """The defaults are the official policy's (arXiv 2412.15182, robomimic_strap); `cpu` is small enough for a laptop's processor."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cpu": {"layers": 2, "width": 64, "image_width": 8, "dropout": 0.0, "lr": 1e-3, "warm_up": 100},
    }

    context: int = 5
    """Observations the policy sees, the present one last (paper: 5)."""
    chunk: int = 5
    """Actions predicted from the present step on, all supervised (paper: 5); at most `context`."""
    execute: int = 1
    """Actions of a chunk that are executed before the next inference (paper: 1); the rest bridges an inference that is late."""
    layers: int = 8
    """Transformer blocks (paper: 8)."""
    width: int = 256
    """Size of a token (paper: 256)."""
    heads: int = 4
    """Attention heads (paper: 4)."""
    dropout: float = 0.1
    """Share of values dropped while training (robomimic: 0.1)."""
    modes: int = 5
    """Components of the Gaussian mixture (paper: 5)."""
    min_std: float = 0.005
    """Lower bound on a component's standard deviation, in policy values (paper: 0.005)."""
    image_width: int = 64
    """Feature maps of the first stage of each camera's ResNet-18 (paper: 64)."""
    keypoints: int = 32
    """Key points of the spatial softmax (paper: 32)."""
    image_features: int = 64
    """Numbers that a picture becomes (paper: 64)."""
    crop: float = 0.90625
    """Share of each side of a picture that is seen: a random crop while training, the middle when acting (paper: 116 of 128)."""
    batch_size: int = 32
    """Windows in a batch (paper: 32)."""
    lr: float = 1e-4
    """AdamW's learning rate after the warm-up (paper: 1e-4, constant)."""
    warm_up: int = 1_000
    """Updates over which the rate rises from 0 (paper: a warm-up, its length is not given)."""
    weight_decay: float = 1e-5
    """AdamW's weight decay (paper: 1e-5)."""
    max_grad_norm: float = 100.0
    """Global norm that gradients are clipped to (paper: 100); 0 = no clipping."""
    normalize_observations: bool = True
    """Standardise low-dimensional observations with the dataset's statistics, which are kept in the bundle."""
    instruction: str = ""
    """What the policy does where nobody says otherwise; empty = the instruction that all target demonstrations share, if they do."""

    def __post_init__(self) -> None:
        self.require_least(
            context=1, chunk=1, execute=1, layers=1, width=1, heads=1, dropout=0, modes=1, image_width=1, keypoints=1, image_features=1,
            batch_size=1, warm_up=0, weight_decay=0, max_grad_norm=0,
        )  # fmt: skip
        self.require_above_zero("lr", "min_std", "crop")
        for name, found, most in (("chunk", self.chunk, self.context), ("execute", self.execute, self.chunk), ("crop", self.crop, 1)):
            if found > most:
                raise ConfigError(f"BCTransformerConfig.{name}: {found}, valid: at most {most}")
        if not self.dropout < 1:
            raise ConfigError(f"BCTransformerConfig.dropout: {self.dropout}, valid: below 1")
        if self.width % self.heads:
            raise ConfigError(f"BCTransformerConfig.width: {self.width}, valid: a multiple of heads ({self.heads})")
