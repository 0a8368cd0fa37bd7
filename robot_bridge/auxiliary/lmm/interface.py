"""LMM: what a model that answers questions on pictures offers to the methods that build on one.

Pictures and prompts are paired by place: picture i is asked prompt i. Nothing is crossed, so that no pair can be misaligned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.errors import ArmstackError

Images = NDArray[np.uint8]
"""(n, H, W, 3) uint8 RGB, first row on top."""
Told = Callable[[int, int], None]
"""Told after each piece of a step how much is done, and of how much."""


def untold(done: int, total: int) -> None:
    """Nobody wants to know."""


class LMMError(ArmstackError):
    """A model that cannot be had, or pictures and texts that it cannot take; says what was found and what is valid."""


class LMM(Protocol):
    """See the module.

    Attributes:
        identity: names the model and the frozen weights it stands on; `trained` fits a model of equal identity only.
    """

    identity: str

    def generate(
        self,
        images: Images,
        prompts: Sequence[str],
        n: int = 1,
        temperature: float = 0.0,
        top_p: float = 1.0,
        max_tokens: int = 64,
        *,
        seed: int = 0,
        told: Told = untold,
    ) -> list[list[str]]:
        """`n` answers for each pair of picture and prompt.

        Args:
            images: one a prompt.
            prompts: plain questions; a model adds its own template.
            n: answers to each.
            temperature: of the softmax; 0 takes the most likely token each time.
            top_p: the smallest set of tokens whose probabilities sum to at least this is drawn from.
            max_tokens: an answer is cut off there.
            seed: of the draws; equal arguments give equal answers.
            told: how many prompts are answered.

        Raises:
            LMMError: another number of prompts than pictures, or a prompt that is too long.
        """
        ...

    def sft(
        self, images: Images, prompts: Sequence[str], answers: Sequence[str], epochs: int, lr: float, *, seed: int = 0, told: Told = untold
    ) -> float:
        """Supervised fine-tuning: L = -mean_t log p(answer_t | picture, prompt, answer_<t), prompts masked. Goes on from what it is.

        Args:
            images: one a pair.
            prompts: one a pair.
            answers: one a pair.
            epochs: passes over the pairs.
            lr: highest learning rate.
            seed: of the order.
            told: how many steps are done.

        Returns:
            Mean loss over the last epoch.

        Raises:
            LMMError: numbers that do not match, no pairs, or a text that is too long or cannot be written with the model's words.
        """
        ...

    def log_likelihood(self, images: Images, prompts: Sequence[str], answers: Sequence[str]) -> NDArray[np.float32]:
        """log p(answer | picture, prompt) summed over the answer's tokens and its end, (n,)."""
        ...

    def trained(self) -> dict[str, Tensor]:
        """Weights that `sft` changes, by name."""
        ...

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Puts `trained`'s value back.

        Raises:
            LMMError: weights of another model.
        """
        ...


def check_pairs(images: Images, *texts: Sequence[str]) -> None:
    """Checks that there is one text a picture in each list, and at least one picture.

    Raises:
        LMMError: says how many there are of each.
    """
    counts = [len(images), *map(len, texts)]
    if not counts[0] or len(set(counts)) > 1:
        raise LMMError(f"{counts[0]} pictures with {' and '.join(map(str, counts[1:]))} texts; valid: at least one, and one text a picture")


def load_trained(weights: Mapping[str, Tensor], named: Mapping[str, Tensor]) -> None:
    """Copies `weights` into the parameters `named`.

    Raises:
        LMMError: other names or shapes than those of the model.
    """
    wrong = sorted(set(weights) ^ set(named)) or [name for name in named if named[name].shape != weights[name].shape]
    if wrong:
        raise LMMError(f"weights of another model: {', '.join(wrong[:4])}; valid: those that `trained` gave of the same model")
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(weights[name])
