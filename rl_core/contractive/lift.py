"""From a measured state to a latent one: x with C x = z is not unique (n_x > n_y); the shortest is taken, x = C+ z.

    exact   z = phi^-1(y + phi(0)), so decoding gives y back: consistent, but only as good as phi^-1 is conditioned
    linear  z = y, the authors': the bijection is ignored, and the rollout's first output is overwritten by y

Closed loop: lifting the measured state at every step would throw the part of x in the null space of C away, and the guarantee with it.
`correction` moves x only by the deviation; contraction then bounds what each correction does to the rest of the motion.
"""

from __future__ import annotations

import torch
from torch import Tensor


def right_inverse(readout: Tensor) -> Tensor:
    """C+ (n_x, n_y) = C' (C C')^-1 of the read-out C (n_y, n_x) of full row rank: C C+ = I."""
    return torch.linalg.solve(readout @ readout.T, readout).T


def lift(z: Tensor, pseudo_inverse: Tensor) -> Tensor:
    """The shortest x (N, n_x) with C x = z (N, n_y)."""
    return z @ pseudo_inverse.T


def correction(z_measured: Tensor, z_expected: Tensor, pseudo_inverse: Tensor) -> Tensor:
    """dx (N, n_x) that brings C x from `z_expected` to `z_measured` and leaves the null space of C alone."""
    return lift(z_measured - z_expected, pseudo_inverse)
