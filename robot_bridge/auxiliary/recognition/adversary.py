"""Bounded changes of pixels that make a classifier fail: PGD (arXiv 1706.06083) and the TRADES attack (arXiv 1901.08573)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_SPREAD = 0.001
"""Standard deviation of the noise that a TRADES attack begins with (authors' code)."""


def pgd(net: nn.Module, images: Tensor, labels: Tensor, *, eps: float, step: float, steps: int, generator: torch.Generator) -> Tensor:
    """Ascends the cross-entropy from a random point of the ball ||x' - x||_inf <= eps.

    Args:
        net: pixels (N, ...) in [0, 1] -> logits; used in its present mode.
        images: (N, ...) in [0, 1].
        labels: (N,).
        eps: radius, in pixel values.
        step: length of a step, in pixel values.
        steps: number of steps.
        generator: of the starts.

    Returns:
        Images in the ball and in [0, 1].
    """
    start = images + (2 * torch.rand(images.shape, generator=generator) - 1) * eps
    return _ascend(lambda x: F.cross_entropy(net(x), labels, reduction="sum"), images, start, eps, step, steps)


def trades_attack(net: nn.Module, images: Tensor, *, eps: float, step: float, steps: int, generator: torch.Generator) -> Tensor:
    """Ascends KL(f(x) || f(x')), which needs no labels. Arguments as in `pgd`."""
    with torch.no_grad():
        clean = F.softmax(net(images), dim=-1)
    start = images + _SPREAD * torch.randn(images.shape, generator=generator)
    return _ascend(lambda x: F.kl_div(F.log_softmax(net(x), dim=-1), clean, reduction="sum"), images, start, eps, step, steps)


def _ascend(objective: Callable[[Tensor], Tensor], images: Tensor, start: Tensor, eps: float, step: float, steps: int) -> Tensor:
    found = _inside(start, images, eps)
    for _ in range(steps):
        found.requires_grad_(True)
        (gradient,) = torch.autograd.grad(objective(found), found)
        found = _inside(found.detach() + step * gradient.sign(), images, eps)
    return found.detach()


def _inside(found: Tensor, images: Tensor, eps: float) -> Tensor:
    return torch.minimum(torch.maximum(found, images - eps), images + eps).clamp(0, 1)
