"""Training against an adversary: TRADES (arXiv 1901.08573), and fine-tuning for the worst class (arXiv 2501.13273)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.training.config import Config
from robot_bridge.auxiliary.recognition.adversary import pgd, trades_attack
from robot_bridge.auxiliary.recognition.confusion import confusion_matrix, lowered_true_logit, spectral_weights

Weighting = Literal["spectral", "uniform"]
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(images, attacked images, labels) -> loss."""


@dataclass(frozen=True, kw_only=True)
class AdversaryConfig(Config):
    """The adversary and the optimiser, alike in training and fine-tuning."""

    eps: float = 0.06
    """Largest change of a pixel in [0, 1] [here; the code 8/255 on CIFAR-10]."""
    step: float = 0.015
    """A step of the attack, a quarter of `eps` [code]."""
    steps: int = 10
    """Steps of the attack [code]."""
    beta: float = 6.0
    """Weight of KL(f(x) || f(x')) [code]."""
    batch_size: int = 128
    """Samples in a batch [code]."""
    momentum: float = 0.9
    """Of SGD [code]."""
    weight_decay: float = 5e-4
    """Of SGD [code]."""

    def __post_init__(self) -> None:
        self.require_least(steps=1, beta=0, batch_size=1, momentum=0, weight_decay=0)
        self.require_above_zero("eps", "step")


def train_trades(
    net: nn.Module, images: Tensor, labels: Tensor, config: AdversaryConfig, *, epochs: int, lr: float, generator: torch.Generator
) -> None:
    """Trains in place:  L = CE(f(x), y) + beta KL(f(x) || f(x'))  with x' of the KL attack."""

    def loss(clean: Tensor, attacked: Tensor, known: Tensor) -> Tensor:
        logits = net(clean)
        return F.cross_entropy(logits, known) + config.beta * _divergence(logits, net(attacked))

    optimizer = _optimizer(net, config, lr)
    for _ in range(epochs):
        _epoch(net, optimizer, loss, images, labels, config, generator)


def tune_worst_class(
    net: nn.Module,
    images: Tensor,
    labels: Tensor,
    config: AdversaryConfig,
    *,
    classes: int,
    epochs: int,
    lr: float,
    share: float,
    margin: float,
    weighting: Weighting,
    generator: torch.Generator,
) -> None:
    """Fine-tunes in place with the confusional spectral regulariser.

        L = (1 - share) CE(f(x), y) + beta KL(f(x) || f(x')) + share mean_i G[argmax f(x'_i), y_i] CE(f(x'_i), y_i)

    G = d||C||_2/dC of the robust confusion matrix, computed anew at the start of each epoch: a surrogate of the chain rule
    d||C||_2 = sum_ij G_ij dC_ij. Samples that are recognised count too, with G[y, y].

    Args:
        net: trained against an adversary already.
        images: (N, 3, side, side) in [0, 1].
        labels: (N,).
        config: adversary and optimiser.
        classes: number of classes.
        epochs: passes over the data.
        lr: of SGD.
        share: of the regulariser (0.3 in the code).
        margin: the true logit is lowered by this share of its size when confusion is counted (0.1 in the code).
        weighting: `uniform` takes G = 1, which tells the direction from the mere loss on attacked images.
        generator: of attacks and batches.
    """
    optimizer = _optimizer(net, config, lr)
    for _ in range(epochs):
        weights: Tensor | None = torch.ones(classes, classes)
        if weighting == "spectral":
            logits = attacked_logits(net, images, labels, config, generator)
            predicted = lowered_true_logit(logits, labels, margin).argmax(dim=1)
            weights = spectral_weights(confusion_matrix(predicted, labels, classes))

        def loss(clean: Tensor, attacked: Tensor, known: Tensor, weights: Tensor | None = weights) -> Tensor:
            logits, changed = net(clean), net(attacked)
            total = (1 - share) * F.cross_entropy(logits, known) + config.beta * _divergence(logits, changed)
            if weights is not None:
                each = weights[changed.argmax(dim=1), known]
                total = total + share * (each * F.cross_entropy(changed, known, reduction="none")).mean()
            return total

        _epoch(net, optimizer, loss, images, labels, config, generator)


def attacked_logits(
    net: nn.Module, images: Tensor, labels: Tensor, config: AdversaryConfig, generator: torch.Generator, *, steps: int | None = None
) -> Tensor:
    """Logits (N, C) of all images after PGD on the cross-entropy, in evaluation mode.

    Args:
        net: the classifier.
        images: (N, 3, side, side).
        labels: (N,).
        config: adversary.
        generator: of its starts.
        steps: of the attack; those of `config` if None.
    """
    net.eval()
    found = []
    for some, known in zip(images.split(config.batch_size), labels.split(config.batch_size), strict=True):
        changed = pgd(net, some, known, eps=config.eps, step=config.step, steps=steps or config.steps, generator=generator)
        with torch.no_grad():
            found.append(net(changed))
    return torch.cat(found)


def _epoch(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    images: Tensor,
    labels: Tensor,
    config: AdversaryConfig,
    generator: torch.Generator,
) -> None:
    for batch in torch.randperm(len(labels), generator=generator).split(config.batch_size):
        net.eval()
        attacked = trades_attack(net, images[batch], eps=config.eps, step=config.step, steps=config.steps, generator=generator)
        net.train()
        optimizer.zero_grad()
        loss(images[batch], attacked, labels[batch]).backward()
        optimizer.step()
    net.eval()


def _optimizer(net: nn.Module, config: AdversaryConfig, lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), lr=lr, momentum=config.momentum, weight_decay=config.weight_decay)


def _divergence(clean: Tensor, attacked: Tensor) -> Tensor:
    """KL(f(x) || f(x')), mean over samples."""
    return F.kl_div(F.log_softmax(attacked, dim=-1), F.softmax(clean, dim=-1), reduction="batchmean")
