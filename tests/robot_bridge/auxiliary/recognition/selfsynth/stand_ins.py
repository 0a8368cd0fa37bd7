"""A model that answers from a script, an encoder of words, and coloured parts with concepts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.lmm.interface import untold
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts, concepts_of
from robot_bridge.auxiliary.recognition.selfsynth.config import SelfSynthConfig

COLOURS = {"red nut": (220, 30, 30), "blue nut": (30, 30, 220), "nut": (30, 220, 30)}
FEATURES = {
    "red nut": ["six warm corners", "glowing face", "fiery rim", "short shadow"],
    "blue nut": ["four cold corners", "icy face", "frosty rim", "long shadow"],
    "nut": ["leafy corners", "mossy face", "grassy rim", "long shadow"],
}
Script = Callable[[NDArray[np.uint8], str, int], str]
"""(picture, prompt, which of the n answers) -> answer."""


def concepts() -> Concepts:
    """Four features a class; one is of two classes."""
    rows = {name: [{"feature": text, "seen": "always"} for text in texts] for name, texts in FEATURES.items()}
    return concepts_of("stand-ins", {"classes": rows})


def parts(each: int = 3, side: int = 12) -> ImageData:
    """Pictures in the class' colour, class after class; no two are equal."""
    names = tuple(COLOURS)
    labels = np.repeat(np.arange(len(names)), each)
    frames = np.stack([np.full((side, side, 3), COLOURS[names[label]]) for label in labels])
    frames[np.arange(len(labels)), 0, 0] = np.arange(len(labels))[:, None]
    return ImageData(frames=frames.astype(np.uint8), labels=labels, classes=names, instances=np.arange(len(labels)))


def true_name(frame: NDArray[np.uint8]) -> str:
    """The class of a picture of `parts`, by its colour."""
    colour = frame[5, 5].astype(int)
    return min(COLOURS, key=lambda name: np.abs(colour - COLOURS[name]).sum())


class ScriptedLMM:
    """Says what the script says; `sft` counts up one weight and keeps what it was given."""

    identity = "scripted"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[tuple[NDArray[np.uint8], str]] = []
        self.taught: list[list[tuple[str, str, str]]] = []
        self.weight = torch.zeros(1)
        self.fail_at: int | None = None

    def generate(self, images, prompts, n=1, temperature=0.0, top_p=1.0, max_tokens=64, *, seed=0, told=untold) -> list[list[str]]:
        assert len(images) == len(prompts)
        told(len(images), len(images))
        self.asked += list(zip(images, prompts, strict=True))
        return [[self.script(image, prompt, k) for k in range(n)] for image, prompt in zip(images, prompts, strict=True)]

    def sft(self, images, prompts: Sequence[str], answers: Sequence[str], epochs: int, lr: float, *, seed: int = 0, told=untold) -> float:
        if self.fail_at == len(self.taught):
            raise KeyboardInterrupt
        self.taught.append([(true_name(image), *texts) for image, *texts in zip(images, prompts, answers, strict=True)])
        self.weight += 1
        return 0.5

    def log_likelihood(self, images, prompts: Sequence[str], answers: Sequence[str]) -> NDArray[np.float32]:
        said = [f"this is a {true_name(image)}." for image in images]
        return np.array([0.0 if each == answer else -5.0 for each, answer in zip(said, answers, strict=True)], np.float32)

    def trained(self) -> dict[str, Tensor]:
        return {"weight": self.weight.clone()}

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        self.weight = weights["weight"].clone()


class WordCounts:
    """An encoder: which words occur, each in a place of its own; length 1."""

    name, size = "word counts", 256

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        found = np.full((len(sentences), self.size), 1e-3, np.float32)
        for row, sentence in zip(found, sentences, strict=True):
            for word in sentence.lower().replace(",", " ").replace(".", " ").split():
                row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:2], "big") % self.size] += 1
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def config(**settings: object) -> SelfSynthConfig:
    """Few queries and samples."""
    return SelfSynthConfig().override(**{"queries": 2, "samples": 3, "descriptions": 1, "views": 0, "rounds": 3, **settings})
