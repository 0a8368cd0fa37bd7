"""The discrete rollout with its adjoint written out, in NumPy: a fraction of what recording fifty small steps costs, and equal to it.

Forward, for t = 0 .. T - 1:    v = C1 x_t + D11 w (in order),  w = tanh(v),  x_{t+1} = A x_t + B w
Backward, g = dL/dx_{t+1}:      gw = B'g,  gv_i = (1 - w_i^2) (gw_i + sum_{j>i} D11_ji gv_j),  dL/dx_t += A'g + C1'gv

The gradients of the matrices are one product each over all steps at the end. The matrices are so small that the loop is a matter of
overhead: it runs on the CPU whatever the device is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def neurons(v: Tensor, d11: Tensor) -> Tensor:
    """w (B, n_v) from C1 x (B, n_v): w_i = tanh(v_i + sum_{j<i} D11_ij w_j)."""
    columns = [torch.tanh(v[:, :1])]
    for i in range(1, v.shape[1]):
        columns.append(torch.tanh(torch.addmm(v[:, i : i + 1], torch.cat(columns, dim=1), d11[i, :i].unsqueeze(1))))
    return torch.cat(columns, dim=1)


class _Rollout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, start: Tensor, a: Tensor, b: Tensor, c1: Tensor, d11: Tensor, steps: int) -> Tensor:
        x, a_, b_, c1_, d11_ = (tensor.detach().cpu().numpy() for tensor in (start, a, b, c1, d11))
        size, width = b_.shape
        states = np.empty((steps + 1, *x.shape), x.dtype)
        active = np.empty((steps, len(x), width), x.dtype)
        joined, b_t = np.ascontiguousarray(np.concatenate([a_, c1_]).T), np.ascontiguousarray(b_.T)
        states[0] = x
        for t in range(steps):
            moved = states[t] @ joined
            w = active[t]
            w[...] = moved[:, size:]
            for i in range(width):
                if i:
                    w[:, i] += w[:, :i] @ d11_[i, :i]
                np.tanh(w[:, i], out=w[:, i])
            np.matmul(w, b_t, out=states[t + 1])
            states[t + 1] += moved[:, :size]
        ctx.saved = (states, active, a_, b_, c1_, d11_)
        return torch.from_numpy(states).to(start.device).transpose(0, 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, active, a_, b_, c1_, d11_ = ctx.saved
        size, width = b_.shape
        incoming = np.ascontiguousarray(gradient.detach().cpu().numpy().swapaxes(0, 1))
        reached = np.empty_like(states[1:])  # dL/dx_{t+1}
        driven = np.empty_like(active)  # dL/dv_t
        damping = 1.0 - active * active
        joined = np.concatenate([a_, b_], axis=1)
        g = incoming[-1]
        for t in range(len(active) - 1, -1, -1):
            reached[t] = g
            moved = g @ joined
            to_v = driven[t]
            to_v[...] = moved[:, size:]
            for i in range(width - 1, -1, -1):
                if i < width - 1:
                    to_v[:, i] += to_v[:, i + 1 :] @ d11_[i + 1 :, i]
                to_v[:, i] *= damping[t, :, i]
            g = to_v @ c1_
            g += moved[:, :size]
            g += incoming[t]
        flat_g, flat_v, flat_w = reached.reshape(-1, size), driven.reshape(-1, width), active.reshape(-1, width)
        flat_x = states[:-1].reshape(-1, size)
        gradients = (g, flat_g.T @ flat_x, flat_g.T @ flat_w, flat_v.T @ flat_x, np.tril(flat_v.T @ flat_w, -1))
        return *(torch.from_numpy(np.ascontiguousarray(value)).to(gradient.device) for value in gradients), None


def discrete_rollout(x: Tensor, a: Tensor, b: Tensor, c1: Tensor, d11: Tensor, steps: int) -> Tensor:
    """(B, n_x) -> (B, steps + 1, n_x), the start included."""
    states: Tensor = _Rollout.apply(x, a, b, c1, d11, steps)
    return states
