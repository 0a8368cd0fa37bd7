"""Settings of RFMamba. [fig]: the paper's figures; [here]: what fits two cores. Widths and weights are in no public source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rl_core.training.config import Config, ConfigError


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(Config):
    """The network, and what can be left out of it."""

    kind: Literal["rfmamba", "transformer", "imaging"] = "rfmamba"
    """`transformer`: attention on the same complex tokens, as RadarFormer but with phase and all frames; `imaging`: a CNN on images."""
    patch: tuple[int, int] = (2, 2)
    """Antennas and frequencies of a token of the first embedding [here]."""
    merge: tuple[int, int] = (2, 2)
    """Antennas and frequencies that each of the two stages takes together [here]."""
    embedding: int = 8
    """Complex channels of the first embedding [here]."""
    widths: tuple[int, int] = (16, 32)
    """Complex channels of the two stages [here]."""
    states: int = 4
    """N of a scan [here; 8-16 is usual]."""
    head: int = 96
    """Hidden units of the pose head [here]."""
    frequency_branch: bool = True
    """False leaves the frequency branch out."""
    selection: bool = True
    """False leaves W out, the learnt filter over frequencies."""
    spatiotemporal_branch: bool = True
    """False leaves the branch in space and time out."""
    scan: Literal["omni", "raster"] = "omni"
    """`raster`: one pass over the window instead of the six ways."""
    attention_width: int = 48
    """Of the transformer's tokens [here]."""
    attention_heads: int = 4
    """Of the transformer [here]."""
    attention_layers: int = 2
    """Of the transformer [here]."""
    imaging_width: int = 32
    """Channels of the CNN on images [here]."""

    def __post_init__(self) -> None:
        self.require_least(patch=1, merge=1, embedding=1, widths=1, states=1, head=1)
        self.require_least(attention_width=1, attention_heads=1, attention_layers=1, imaging_width=1)
        if not (self.frequency_branch or self.spatiotemporal_branch):
            raise ConfigError("NetworkConfig: frequency_branch and spatiotemporal_branch are both off, valid: one of them or both on")
        if self.selection and not self.frequency_branch:
            raise ConfigError("NetworkConfig.selection: true without the frequency branch that W is in, valid: false")
        if self.attention_width % self.attention_heads:
            raise ConfigError(
                f"NetworkConfig.attention_width: {self.attention_width}, valid: a multiple of attention_heads ({self.attention_heads})"
            )


@dataclass(frozen=True, kw_only=True)
class RFMambaConfig(Config):
    """How RFMamba is trained."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "frames": 12,
            "network": {"embedding": 32, "widths": (64, 128), "states": 16, "head": 256},
            "epochs": 100,
            "lr": 1e-4,
        },
    }

    frames: int = 4
    """Frames of a window [here; 12 in fig]."""
    causal: bool = True
    """The answer is about the newest frame; false: about the middle one, which is surer and half a window late [fig: T-6..T+5]."""
    network: NetworkConfig = NetworkConfig()
    """The network."""
    pose_weight: float = 5.0
    """Weight of the L1 of the joints, metres [here; 1 in RadarFormer's code]."""
    activity_weight: float = 1.0
    """Weight of the cross-entropy of the activity [RadarFormer's code]."""
    segmentation_weight: float = 1.0
    """Weight of the cross-entropy of the range bins [here]."""
    held_out: float = 0.1
    """Share of the people that are not trained on but judged in the end, for the bundle's metrics [here]."""
    epochs: int = 10
    """Passes over the windows [here; 500 in RadarFormer's code]."""
    batch_size: int = 8
    """Windows in a batch [here; 2 in RadarFormer's code]."""
    lr: float = 1.5e-3
    """Learning rate of AdamW, after a warm-up of a tenth, down to 0 along a cosine [here; 1e-4 in RadarFormer's code]."""
    weight_decay: float = 1e-4
    """Of AdamW [RadarFormer's code]."""
    clip: float = 1.0
    """Largest norm of a gradient [here; 0.1 in RadarFormer's code]."""

    def __post_init__(self) -> None:
        self.require_least(frames=1, pose_weight=0, activity_weight=0, segmentation_weight=0, epochs=1, batch_size=1, weight_decay=0)
        self.require_above_zero("lr", "clip")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"RFMambaConfig.held_out: {self.held_out}, valid: above 0, below 1")

    @property
    def current(self) -> int:
        """Frame of a window that the answer is about; T in T-6..T+5."""
        return self.frames - 1 if self.causal else self.frames // 2
