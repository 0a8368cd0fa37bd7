"""Settings of ECALP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rl_core.training.config import Config, ConfigError


@dataclass(frozen=True, kw_only=True)
class ECALPConfig(Config):
    """The defaults are one fixed set for all data, as in the paper (arXiv 2412.18303)."""

    vlm: str = ""
    """Folder of the VLM: a bundle of the small one, or a CLIP with its tokenizer."""
    shots: int = 0
    """Labelled pictures of each class to begin with; 0 = texts alone [paper: 0 and 1-16]."""
    templates: tuple[str, ...] = ("a photo of a {}.",)
    """Hand-written prompts, {} for the name; the vectors of several are averaged [code]."""
    similarity: Literal["shifted", "clip"] = "shifted"
    """What is raised to the power: `clip` the cosine itself [code], which needs cosines above 0; `shifted` (1 + cos) / 2 [here]."""
    reweighting: bool = True
    """Weigh dimensions by what tells classes apart [paper]."""
    k_text: int = 3
    """Texts that an image is joined to [code]."""
    k_image: int = 8
    """Images that an image is joined to [code]."""
    k_shot: int = 8
    """Labelled shots that an image is joined to [code]."""
    gamma: int = 10
    """Power of a similarity in an edge's weight [code]."""
    steps: int = 3
    """Propagation steps for each new image [code]."""
    alpha: float = 1.0
    """Share of what flows in; the rest is what was remembered [code]."""
    memory: float = 5.0
    """An image is remembered as its largest label divided by this, in that class [code]."""
    capacity: int = 2000
    """Most images held; then the oldest of the most populated class goes [here]."""

    def __post_init__(self) -> None:
        self.require_least(shots=0, k_text=1, k_image=1, k_shot=1, gamma=1, steps=1, capacity=2)
        self.require_above_zero("memory")
        if not 0 < self.alpha <= 1:
            raise ConfigError(f"ECALPConfig.alpha: {self.alpha}, valid: above 0, at most 1")
