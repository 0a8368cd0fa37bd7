"""Settings of SelfSynthX, and of the base decoder that it makes where no language model is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rl_core.training.config import Config, ConfigError


@dataclass(frozen=True, kw_only=True)
class BaseConfig(Config):
    """How a caption decoder learns to describe before it is taught any class [here; the paper begins with LLaVA-1.5].

    It is a model that describes fairly well, explains in general words and seldom says the right name, as a general model is with parts.
    """

    epochs: int = 16
    """Passes over the described pictures' texts; after 4 it repeats one feature and cites few."""
    lr: float = 1e-3
    """Highest learning rate."""
    mentioned: float = 0.6
    """Share of the visible features that a description mentions."""
    imagined: float = 0.1
    """Share of the class' other features that it mentions although they cannot be seen."""
    named: float = 0.15
    """Share of the texts with the right name; the others say "object"."""

    def __post_init__(self) -> None:
        self.require_least(epochs=1, mentioned=0, imagined=0, named=0)
        self.require_above_zero("lr", "mentioned")
        for name in ("mentioned", "imagined", "named"):
            if getattr(self, name) > 1:
                raise ConfigError(f"BaseConfig.{name}: {getattr(self, name)}, valid: a share, 0..1")


@dataclass(frozen=True, kw_only=True)
class SelfSynthConfig(Config):
    """Settings of SelfSynthX; numbers of descriptions and queries are for hundreds of pictures on a CPU."""

    vlm: str = ""
    """Folder of the VLM whose tokens the decoder or SmolLM2 sees: a bundle of the small one, or a CLIP; LLaVA brings its own."""
    concepts: str = "parts.yaml"
    """File of features by class; parts.yaml is packaged."""
    backend: Literal["decoder", "smollm", "llava"] = "decoder"
    """What answers: the caption decoder, SmolLM2 with a projector, or a LLaVA."""
    weights: str = ""
    """Folder of its weights; a decoder without any is made from pictures that are described."""
    described: str = ""
    """Folder of drawn pictures a new decoder learns to describe from; empty: a third of the objects of the data."""
    shots: int = 0
    """Pictures of each class to train on; 0 = all [here]."""
    rounds: int = 3
    """Rounds in all: the first is told the labels, the others sample and reject [code: 4]."""
    descriptions: int = 3
    """Descriptions for each of three instructions [code: 10]."""
    queries: int = 4
    """Queries of each picture in a round [code: 8]."""
    samples: int = 3
    """Answers to each query, of which the best is taken [code]."""
    tau: float = 0.1
    """Temperature of the InfoNCE estimates [code; its comment says 0.01]."""
    evidence: Literal["informative", "random"] = "informative"
    """A picture's concepts: those with the most information on it, or as many at random (a baseline)."""
    accept: Literal["label", "all"] = "label"
    """Which answers become data: the most informative that names the label, or any (a baseline)."""
    epochs: int = 2
    """Passes of fine-tuning in each round [code]."""
    lr: float = 3e-4
    """Highest learning rate there [here; 1e-5 for a LLaVA of 7 billion weights]."""
    views: int = 2
    """Augmented views of each picture that fine-tuning draws from beside the picture itself [here]."""
    replay: float = 0.5
    """The model's own first descriptions mixed in for each answer, so that describing is kept [paper: 1, of LLaVA-Instruct]."""
    grid: int = 4
    """Places along a side to which visual tokens are averaged."""
    base: BaseConfig = BaseConfig()
    """The decoder that is made where `weights` is empty."""

    def __post_init__(self) -> None:
        self.require_least(shots=0, rounds=1, descriptions=1, queries=1, samples=1, epochs=1, views=0, replay=0, grid=1)
        self.require_above_zero("tau", "lr")
