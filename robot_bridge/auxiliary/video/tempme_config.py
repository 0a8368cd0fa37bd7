"""TempMe's configuration (arXiv 2409.01156; values of its released code, or chosen for the project's small model)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rl_core.training.config import Config
from robot_bridge.auxiliary.video.schedule import MergeSchedule


@dataclass(frozen=True, kw_only=True)
class TempMeConfig(Config):
    """How clips become vectors, and how that is trained. The defaults are for the small model; `paper` is for CLIP B/32."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"schedule": MergeSchedule().to_dict(), "batch": 128, "epochs": 5, "lr": 6e-4},
        "paper-b16": {"schedule": MergeSchedule(per_frame=10).to_dict(), "batch": 128, "epochs": 5, "lr": 6e-4},
    }

    vlm: str = ""
    """Folder of the vision-language model: what `armstack aux vlm` wrote, or a CLIP with its tokenizer."""
    schedule: MergeSchedule = field(default_factory=lambda: MergeSchedule(clip_blocks=(1, 2, 3)))
    """Where tokens merge; baselines cost at most as much."""
    frames: int = 12
    """Most frames of a clip [code]."""
    rank: int = 8
    """Of the adapters on queries, keys and values of both towers [code]."""
    lr: float = 1e-2
    """AdamW's, after the warm-up [code: 6e-4 on CLIP]."""
    weight_decay: float = 0.2
    """AdamW's [code]."""
    warm_up: float = 0.1
    """Share of the steps over which the rate rises; then a cosine to 0 [code]."""
    epochs: int = 12
    """Passes over the clips; 0 leaves the model as it is [code: 5]."""
    batch: int = 32
    """Clips in a batch; those of one group go into one [code: 128, at random]."""
    clip_norm: float = 1.0
    """Longest gradient [code]."""
    fps: float = 2.0
    """Frames a second that are taken of a camera or a recording; a longer recording becomes several clips."""
    watch: tuple[str, ...] = ()
    """Sentences that every frame of a camera is scored on; none = the most frequent of the training data."""
    remembered: int = 2000
    """Clips of a camera that are kept; the oldest goes first."""

    def __post_init__(self) -> None:
        self.require_least(frames=1, rank=1, epochs=0, batch=2, remembered=1, weight_decay=0, warm_up=0)
        self.require_above_zero("lr", "clip_norm", "fps")
