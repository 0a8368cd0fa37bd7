"""The selective state-space recurrence (S6), step by step and in chunks; plain PyTorch, with its gradient written out.

    h_t = exp(Delta_t A) h_{t-1} + Delta_t B_t x_t,   y_t = C_t h_t          per channel, with N states; A < 0, Delta > 0

Where a step of all sequences is little work, chunks of Q steps go side by side from h = 0, then the state that enters each is added:

    h_{c,q} = local_{c,q} + P_{c,q} h_{c-1,Q},   P_{c,q} = prod_{i <= q} exp(Delta_{c,i} A)

P only ever multiplies. Where it underflows, what it stands for is gone too; forms that divide by it give 0 / 0 there. That takes
2 sqrt(L) calls instead of L. A long sequence is taken in blocks that fit a core's cache; of each only the last state is kept, and the
gradient, which is the same recurrence from the end to the start, works the others out again. Work is linear in L, and so is memory,
which holds inputs and outputs but none of the (L, D, N) in between.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

_WORTH_A_CALL = 1 << 13
"""Numbers in a step that keep a core busy for longer than calling it takes."""
_BLOCK = 1 << 17
"""Numbers in a block of states; three of them fit a core's cache."""


def sequential_scan(x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The recurrence as it is written; what `selective_scan` is checked against.

    Args:
        x: (B, L, D).
        delta: (B, L, D), above 0.
        a: (D, N), below 0.
        b: (B, L, N).
        c: (B, L, N).

    Returns:
        y (B, L, D).
    """
    state, out = x.new_zeros(x.shape[0], *a.shape), []
    for x_t, delta_t, b_t, c_t in zip(*(tensor.unbind(dim=1) for tensor in (x, delta, b, c)), strict=True):
        state = torch.exp(delta_t[..., None] * a) * state + (delta_t * x_t)[..., None] * b_t[:, None]
        out.append((state * c_t[:, None]).sum(dim=-1))
    return torch.stack(out, dim=1)


def selective_scan(x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, *, chunk: int = 0) -> Tensor:
    """`sequential_scan`'s value and gradient; the state is float32 whatever the inputs are (float64 for float64).

    Args:
        x: as there, as are delta, a, b and c.
        chunk: steps of a chunk; 0 = about sqrt of a block, or all of it where a step alone is work enough.
    """
    x, delta, b, c = (tensor.permute(1, 2, 0)[:, None] for tensor in (x, delta, b, c))
    return scan_steps(x, delta, a, b, c, chunk=chunk)[:, 0].permute(2, 0, 1)


def scan_steps(x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, *, chunk: int = 0) -> Tensor:
    """The same with steps first and batch last: a step is then one block of memory.

    Args:
        x: (L, S, D, B), S sequences of B samples; delta likewise.
        delta: above 0.
        a: (D, N), below 0.
        b: (L, S, N, B); c likewise.
        c: see b.
        chunk: as of `selective_scan`.

    Returns:
        y (L, S, D, B).
    """
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    y: Tensor = _SelectiveScan.apply(*(tensor.to(wide) for tensor in (x, delta, a, b, c)), chunk)
    return y.to(x.dtype)


class _SelectiveScan(torch.autograd.Function):
    """States are (L, S, N, D, B)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, chunk: int) -> Tensor:  # type: ignore[override]
        y, last, lasts = torch.empty_like(x, memory_format=torch.contiguous_format), None, []
        rates = a.T[:, :, None]
        for part in _blocks(x, a):
            _, state = _states(delta[part], x[part], rates, b[part], last, chunk)
            torch.sum(state * c[part, :, :, None], dim=2, out=y[part])
            last = state[-1].clone()
            lasts.append(last)
        ctx.save_for_backward(x, delta, a, b, c, *lasts)
        ctx.chunk = chunk
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, delta, a, b, c, *lasts = ctx.saved_tensors
        rates = a.T[:, :, None]
        of_x, of_delta, of_b, of_c = (torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (x, delta, b, c))
        of_a, later = torch.zeros_like(rates.expand(-1, -1, x.shape[-1])), None
        blocks = _blocks(x, a)
        for number in reversed(range(len(blocks))):
            part = blocks[number]
            entering = lasts[number - 1] if number else None
            decay, state = _states(delta[part], x[part], rates, b[part], entering, ctx.chunk)
            torch.sum(grad[part, :, None] * state, dim=3, out=of_c[part])
            # dL/dh_t = C_t dL/dy_t + exp(Delta_{t+1} A) dL/dh_{t+1}: the recurrence from the end, with decays one step on.
            of_state = grad[part, :, None] * c[part, :, :, None]
            if later is not None:
                of_state[-1] += later
            of_state = _recurrence_back_(decay, of_state, ctx.chunk)
            later = decay[0] * of_state[0]
            torch.sum(of_state * (delta[part] * x[part])[:, :, None], dim=3, out=of_b[part])
            of_drive = (of_state * b[part, :, :, None]).sum(dim=2)
            torch.mul(of_drive, delta[part], out=of_x[part])
            # d exp(Delta A) h_{t-1}; before the first step there is nothing.
            of_exponent = of_state.mul_(decay)
            of_exponent[1:].mul_(state[:-1])
            of_exponent[0].mul_(entering) if entering is not None else of_exponent[0].zero_()
            of_a += (of_exponent * delta[part, :, None]).sum(dim=(0, 1))
            torch.addcmul(of_exponent.mul_(rates).sum(dim=2), of_drive, x[part], out=of_delta[part])
        return of_x, of_delta, of_a.sum(dim=-1).T, of_b, of_c, None


def _blocks(x: Tensor, a: Tensor) -> list[slice]:
    steps = max(1, _BLOCK // max(1, x[0].numel() * a.shape[1]))
    return [slice(start, min(start + steps, len(x))) for start in range(0, len(x), steps)]


def _states(delta: Tensor, x: Tensor, rates: Tensor, b: Tensor, entering: Tensor | None, chunk: int) -> tuple[Tensor, Tensor]:
    """exp(Delta A) and h of a block, into which `entering` comes."""
    decay = (delta[:, :, None] * rates).exp_()
    drive = (delta * x)[:, :, None] * b[:, :, :, None]
    if entering is not None:
        drive[0].addcmul_(decay[0], entering)
    return decay, linear_recurrence_(decay, drive, chunk=chunk)


def linear_recurrence_(decay: Tensor, drive: Tensor, *, chunk: int = 0) -> Tensor:
    """h_t = decay_t h_{t-1} + drive_t along the first dimension, worked out in `drive` where the length allows.

    Args:
        decay: (L, ...), 0..1; the first is not used.
        drive: the same shape; overwritten.
        chunk: steps of a chunk; 0 = chosen.
    """
    length = len(drive)
    size = chunk or _chunk_size(drive)
    if size >= length:
        for step in range(1, length):
            drive[step].addcmul_(decay[step], drive[step - 1])
        return drive
    count = math.ceil(length / size)
    padding = [0, 0] * (drive.dim() - 1) + [0, count * size - length]
    local = torch.nn.functional.pad(drive, padding).unflatten(0, (count, size))
    kept = torch.nn.functional.pad(decay, padding).unflatten(0, (count, size)).clone()
    for step in range(1, size):
        local[:, step].addcmul_(kept[:, step], local[:, step - 1])
        kept[:, step].mul_(kept[:, step - 1])
    for index in range(1, count):
        local[index].addcmul_(kept[index], local[index - 1, -1])
    return local.flatten(0, 1)[:length]


def _recurrence_back_(decay: Tensor, drive: Tensor, chunk: int) -> Tensor:
    """g_t = decay_{t+1} g_{t+1} + drive_t."""
    if (chunk or _chunk_size(drive)) >= len(drive):
        for step in range(len(drive) - 2, -1, -1):
            drive[step].addcmul_(decay[step + 1], drive[step + 1])
        return drive
    following = torch.cat([decay[:1], decay[1:].flip(0)])
    return linear_recurrence_(following, drive.flip(0), chunk=chunk).flip(0)


def _chunk_size(drive: Tensor) -> int:
    return len(drive) if drive[0].numel() >= _WORTH_A_CALL else math.ceil(math.sqrt(len(drive)))
