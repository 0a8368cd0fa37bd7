"""The loop that tunes prompts on cached image features: SGD or Adam, a warm-up epoch, then a cosine (CoOp family)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from rl_core.training.config import Config

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Schedule(Config):
    """How prompts are tuned."""

    epochs: int = 50
    """Passes over the shots [code: 50-100]."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """SGD, or Adam for prompts made by a network [code]."""
    lr: float = 2e-3
    """Learning rate after the first epoch, from which a cosine leads to 0 [code]."""
    warm_up_lr: float = 1e-5
    """Learning rate of the first epoch [code]."""
    batch_size: int = 32
    """Shots in a batch [code]."""
    momentum: float = 0.9
    """Of SGD [CoOp's code, recalled]."""
    weight_decay: float = 5e-4
    """Of SGD [CoOp's code, recalled]."""

    def __post_init__(self) -> None:
        self.require_least(epochs=1, batch_size=1, momentum=0, weight_decay=0)
        self.require_above_zero("lr", "warm_up_lr")

    def rate(self, epoch: int) -> float:
        """Learning rate of an epoch, from 0."""
        if epoch == 0 and self.epochs > 1:
            return self.warm_up_lr
        return self.lr * 0.5 * (1 + math.cos(math.pi * epoch / self.epochs))


def tune(
    parameters: Sequence[nn.Parameter],
    loss: Callable[[Tensor], Tensor],
    count: int,
    schedule: Schedule,
    generator: torch.Generator,
    say: Say = lambda text: None,
) -> None:
    """Minimises in place.

    Args:
        parameters: what is tuned.
        loss: indices of a batch's samples -> scalar.
        count: number of samples.
        schedule: optimiser and rates.
        generator: of batches.
        say: told the loss now and then.
    """
    optimizer: torch.optim.Optimizer
    if schedule.optimizer == "sgd":
        optimizer = torch.optim.SGD(parameters, lr=schedule.lr, momentum=schedule.momentum, weight_decay=schedule.weight_decay)
    else:
        optimizer = torch.optim.Adam(parameters, lr=schedule.lr)
    for epoch in range(schedule.epochs):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(epoch)
        losses = []
        for batch in torch.randperm(count, generator=generator).split(schedule.batch_size):
            value = loss(batch)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(float(value.detach()))
        if epoch % 10 == 0 or epoch == schedule.epochs - 1:
            say(f"epoch {epoch + 1}/{schedule.epochs}: loss {sum(losses) / len(losses):.4f}")
