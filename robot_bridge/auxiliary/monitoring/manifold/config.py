"""Settings of the detector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rl_core.training.config import Config, ConfigError
from robot_bridge.auxiliary.monitoring.manifold.criterion import Weights
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig
from robot_bridge.auxiliary.monitoring.manifold.scoring import Score

Kind = Literal["ddpm", "stable-diffusion"]


@dataclass(frozen=True, kw_only=True)
class ManifoldConfig(Config):
    """Where [code] is not the paper's, it is said what is [here]."""

    prior: Kind = "ddpm"
    """Whose density: a DDPM that is trained on the data, or a Stable Diffusion of a folder [code: v1.4]."""
    ddpm: DDPMConfig = field(default_factory=DDPMConfig)
    """The DDPM."""
    diffusion_weights: str = ""
    """Folder of the Stable Diffusion, as diffusers' `save_pretrained` wrote it."""
    clip: str = ""
    """Folder of the CLIP that its pictures are compared with [code: ViT-L/14]."""
    caption: str = ""
    """What its U-Net is told of every frame [here; the code has each captioned by LLaVA]."""
    tiles: int = 1
    """A frame's middle square is cut into tiles x tiles crops; more than one shows where a frame was generated."""
    score: Score = "criterion"
    """What is thresholded: the criterion; one of its terms, or a baseline, to compare with."""
    alpha: float | None = None
    """Share of noise; none = swept on samples of the DDPM itself; 0.01 of a Stable Diffusion [code]."""
    noises: int = 16
    """Directions on the sphere, the same for all frames [code: 8; paper: 64]."""
    a: float = 1.0
    """Weight of kappa."""
    b: float = 1.0
    """Weight of D, the gradient's size."""
    c: float = 1.0
    """Weight of the bias term."""
    k: float = 1.0
    """A frame is flagged k deviations above real frames' mean [re-implementations]."""
    samples: int = 256
    """Samples of the DDPM for the sweep."""
    sampling_steps: int = 5
    """DDIM steps that they take; few, as fast generators do [here]: the last one gives a mean, without the grain of a camera."""
    held_out: float = 0.3
    """Share of each class's objects that the DDPM does not see: half of them set the threshold, half tell the false positive rate."""
    labelled: str = ""
    """Few-shot: folder with folders `real` and `generated` of frames; none = zero-shot."""
    features: bool = False
    """Few-shot: a classifier of EfficientNet-Lite0's features beside the terms."""

    def __post_init__(self) -> None:
        self.require_least(tiles=1, noises=1, a=0, b=0, samples=2, sampling_steps=1)
        self.require_above_zero("k")
        for name, value in (("alpha", self.alpha), ("held_out", self.held_out)):
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"ManifoldConfig.{name}: {value}, valid: above 0, below 1")

    @property
    def weights(self) -> Weights:
        """a, b and c."""
        return Weights(a=self.a, b=self.b, c=self.c)
