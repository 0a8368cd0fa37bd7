"""The metric of a certificate: any S is valid with the rate found for it, and the parameters' own is seldom the one that says most.

What is minimised is the bound itself (`rl_core.contractive.bounds`), over S = (W L)' (W L) with L'L the model's own metric:

    log( |C S^(-1/2)|  mean_i |S^(1/2) dx_i|  sum_t stretch_t rho(S)^t )
"""

from __future__ import annotations

import torch
from torch import Tensor

from rl_core.contractive.model import ContractiveModel
from rl_core.contractive.ren import UnconstrainedRNN

STEPS = 100
LR = 0.03


@torch.enable_grad()  # type: ignore[untyped-decorator]
def tightened(model: ContractiveModel, deviations: Tensor, stretch: Tensor) -> tuple[Tensor, float]:
    """The metric S (n_x, n_x) found, and its factor on sqrt(V) a step; the model's own where that says more or nothing is promised.

    Args:
        model: in double precision.
        deviations: (M, n_x) dx of starts, whose mean bound is minimised.
        stretch: (T,) how much the bijection stretches distances at each point of a motion.
    """
    ren = model.ren
    own, factor = ren.metric().detach(), ren.certified()
    if isinstance(ren, UnconstrainedRNN) or not ren.few_vertices:
        return own, factor
    jacobians, readout, root = ren.matrices().slopes().detach(), model.readout.detach(), torch.linalg.cholesky(own).T
    # In the coordinates L x the model's own metric is the identity.
    jacobians = torch.linalg.solve_triangular(root, root @ jacobians, upper=True, left=False)
    readout = torch.linalg.solve_triangular(root, readout, upper=True, left=False)
    deviations = deviations @ root.T
    powers = torch.arange(len(stretch), dtype=own.dtype)
    upper = torch.eye(len(own), dtype=own.dtype, requires_grad=True)
    optimizer = torch.optim.Adam([upper], lr=LR)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    best, least = torch.eye(len(own), dtype=own.dtype), float("inf")
    for _ in range(STEPS):
        w = torch.triu(upper)
        rho = ren.factor(torch.linalg.solve_triangular(w, w @ jacobians, upper=True, left=False))
        gain = torch.linalg.matrix_norm(torch.linalg.solve_triangular(w, readout, upper=True, left=False), ord=2)
        distance = torch.linalg.vector_norm(deviations @ w.T, dim=1).mean()
        loss = torch.log(gain * distance * (stretch * rho**powers).sum())
        if loss.item() < least:
            best, least = w.detach().clone(), loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    rho = ren.factor(torch.linalg.solve_triangular(best, best @ jacobians, upper=True, left=False))
    scaled = best @ root
    return scaled.T @ scaled, rho.item()
