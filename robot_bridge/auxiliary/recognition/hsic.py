"""How dependent two sets of class embeddings are: the Hilbert-Schmidt independence criterion with linear kernels."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

HSICForm = Literal["paper", "cka"]
_TINY = 1e-12


def hsic(learned: Tensor, frozen: Tensor, form: HSICForm = "paper") -> Tensor:
    """tr(H K_t H K_c) with K = W W^T and H = I - 11^T/n (DeKg's penalty; no factor 1/(n-1)^2, as in its code).

    Each row is normalised to length 1 first, then each W is divided by its Frobenius norm; the order changes the values.

    Args:
        learned: class embeddings (n, d) of the learned prompts.
        frozen: class embeddings (n, d) of the hand-written prompts.
        form: `cka` divides by ||H K_t H||_F ||H K_c H||_F, which lies in [0, 1] whatever the scale and the number of classes.

    Returns:
        A scalar; 0 where one of the sets is constant.
    """
    kernel_t, kernel_c = _centred_kernel(learned), _centred_kernel(frozen)
    # tr(H K_t H K_c) = <H K_t H, H K_c H> because H is symmetric and H H = H.
    value = (kernel_t * kernel_c).sum()
    if form == "cka":
        value = value / (kernel_t.norm() * kernel_c.norm()).clamp_min(_TINY)
    return value


def _centred_kernel(embeddings: Tensor) -> Tensor:
    rows = torch.nn.functional.normalize(embeddings, dim=-1)
    rows = rows / rows.norm().clamp_min(_TINY)
    centred = rows - rows.mean(dim=0, keepdim=True)
    return centred @ centred.T
