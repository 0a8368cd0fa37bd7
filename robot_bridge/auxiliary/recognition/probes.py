"""Linear probes on all layers of a frozen network, trained at once and chosen on validation data (ILC, arXiv 2504.05461)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.training.config import Config, ConfigError
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.recognition.errors import RecognitionError


@dataclass(frozen=True, kw_only=True)
class ProbeConfig(Config):
    """How probes are trained. Every combination of rate and strength is trained; validation data choose among them."""

    rates: tuple[float, ...] = (1e-3, 1e-2)
    """Adam's learning rates to choose from [paper: 1e-4, 1e-3, 1e-2]."""
    penalty: Literal["l1", "l2"] = "l1"
    """Sum of the weights' sizes, or their length (not squared) [code]."""
    strengths: tuple[float, ...] = (0.0, 1e-4, 1e-3, 1e-2)
    """Weights of the penalty to choose from [paper]."""
    epochs: int = 100
    """Passes over the training data; the best one on validation data is kept [paper]."""
    batch_size: int = 256
    """Samples in a batch [code]."""

    def __post_init__(self) -> None:
        self.require_least(rates=0, strengths=0, epochs=1, batch_size=1)
        if not all(rate > 0 for rate in self.rates):
            raise ConfigError(f"ProbeConfig.rates: {self.rates}, valid: above 0")


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """A linear classifier of one layer's features, which it standardises: W (r - mean) / std + b.

    Attributes:
        layer: index of the layer.
        weight: (C, D).
        bias: (C,).
        mean: of the training features, (D,).
        std: their deviation, (D,); 1 where a feature is constant.
        accuracy: on the validation data, 0..1.
        rate: learning rate that was chosen.
        strength: weight of the penalty that was chosen.
        epoch: that was chosen, from 1.
    """

    layer: int
    weight: Tensor
    bias: Tensor
    mean: Tensor
    std: Tensor
    accuracy: float
    rate: float
    strength: float
    epoch: int

    def standardised(self, features: Tensor) -> Tensor:
        """(r - mean) / std of the layer's features (N, D)."""
        return (features - self.mean) / self.std

    def logits(self, features: Tensor) -> Tensor:
        """(N, C) of the layer's features (N, D)."""
        return self.standardised(features) @ self.weight.T + self.bias


def fit_probes(
    layers: Sequence[Tensor],
    labels: Tensor,
    validation: Sequence[Tensor],
    validation_labels: Tensor,
    config: ProbeConfig,
    *,
    classes: int,
    seed: int = 0,
) -> list[Probe]:
    """The best probe of each layer; its settings and epoch are chosen on the validation data.

        L = sum over layers, rates, strengths of CE(W r + b, y) + strength * ||W||

    The probes share nothing but the batches, so one sum of losses trains each as if it were alone.

    Args:
        layers: features (N, D_l) of each layer for the training data.
        labels: (N,).
        validation: the same of the validation data; disjoint from what is reported on.
        validation_labels: (V,).
        config: grid and schedule.
        classes: number of classes C.
        seed: of batches.

    Raises:
        RecognitionError: no samples, or features and labels that differ in number.
    """
    for name, features, known in (("training", layers, labels), ("validation", validation, validation_labels)):
        if not len(known) or any(len(layer) != len(known) for layer in features):
            raise RecognitionError(
                f"{name} features of {[len(layer) for layer in features]} samples, {len(known)} labels; valid: equal, above 0"
            )
    grids = [_Grid(index, layer, held, config, classes) for index, (layer, held) in enumerate(zip(layers, validation, strict=True))]
    generator = torch_generator(seed, "probes")
    for epoch in range(1, config.epochs + 1):
        for batch in torch.randperm(len(labels), generator=generator).split(config.batch_size):
            for grid in grids:
                grid.update(batch, labels[batch])
        for grid in grids:
            grid.select(epoch, validation_labels)
    return [grid.best for grid in grids]


class _Grid:
    """All probes of a layer: weights (R, S, C, D), an Adam for each rate."""

    best: Probe

    def __init__(self, index: int, features: Tensor, validation: Tensor, config: ProbeConfig, classes: int) -> None:
        self._index, self._config = index, config
        self._mean = features.mean(dim=0)
        deviation = features.std(dim=0, correction=0)
        self._std = torch.where(deviation > 0, deviation, 1.0)
        self._features = (features - self._mean) / self._std
        self._validation = (validation - self._mean) / self._std
        self._strengths = torch.tensor(config.strengths)
        shape = (len(config.strengths), classes)
        self._weights = [nn.Parameter(torch.zeros(*shape, features.shape[1])) for _ in config.rates]
        self._biases = [nn.Parameter(torch.zeros(*shape)) for _ in config.rates]
        parameters = zip(self._weights, self._biases, config.rates, strict=True)
        self._optimizer = torch.optim.Adam([{"params": [weight, bias], "lr": rate} for weight, bias, rate in parameters])
        self._highest = -1.0

    def update(self, batch: Tensor, labels: Tensor) -> None:
        """One step of every probe."""
        loss = torch.zeros(())
        for weight, bias in zip(self._weights, self._biases, strict=True):
            logits = _logits(self._features[batch], weight, bias)
            loss = loss + F.cross_entropy(logits.flatten(0, 1), labels.repeat(len(weight)), reduction="sum") / len(labels)
            size = weight.abs().sum(dim=(1, 2)) if self._config.penalty == "l1" else _length(weight)
            loss = loss + (self._strengths * size).sum()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    @torch.no_grad()
    def select(self, epoch: int, labels: Tensor) -> None:
        """Keeps the best probe so far; an equal one later does not replace it."""
        for weight, bias, rate in zip(self._weights, self._biases, self._config.rates, strict=True):
            right = (_logits(self._validation, weight, bias).argmax(dim=-1) == labels).float().mean(dim=1)
            chosen = int(right.argmax())
            if float(right[chosen]) > self._highest:
                self._highest = float(right[chosen])
                self.best = Probe(
                    layer=self._index,
                    weight=weight[chosen].detach().clone(),
                    bias=bias[chosen].detach().clone(),
                    mean=self._mean,
                    std=self._std,
                    accuracy=self._highest,
                    rate=rate,
                    strength=self._config.strengths[chosen],
                    epoch=epoch,
                )


def _logits(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(S, N, C) of features (N, D), weights (S, C, D), biases (S, C)."""
    return (features @ weight.flatten(0, 1).T).unflatten(1, weight.shape[:2]).transpose(0, 1) + bias[:, None]


def _length(weight: Tensor) -> Tensor:
    """||W|| of each (C, D); its gradient at 0 is 0."""
    return (weight.square().sum(dim=(1, 2)) + 1e-24).sqrt()
