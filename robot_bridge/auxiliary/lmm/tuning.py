"""The loop of supervised fine-tuning: AdamW, a warm-up over the first twentieth of the steps, then a cosine (the paper's schedule)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.epochs import Epochs, warm_up_cosine
from robot_bridge.auxiliary.lmm.interface import LMMError, Told, untold

_WARM_UP = 0.05
_GROUP = 16


def tune(
    parameters: Sequence[nn.Parameter],
    loss: Callable[[Tensor], Tensor],
    lengths: Sequence[int],
    *,
    epochs: int,
    lr: float,
    batch: int,
    weight_decay: float = 0.0,
    seed: int,
    told: Told = untold,
    store: CheckpointStore | None = None,
) -> float:
    """Minimises in place; gradients are cut to length 1.

    Args:
        parameters: what is tuned.
        loss: indices (b,) of pairs -> mean loss of the batch.
        lengths: of the pairs, in tokens; a batch holds pairs of like length, so that little of it is padding.
        epochs: passes over them.
        lr: highest learning rate.
        batch: pairs in a step.
        weight_decay: AdamW's, of matrices.
        seed: of the order.
        told: how many steps are done.
        store: where whole epochs are kept, of a tuning with equal arguments; it goes on behind the last of them. None keeps none.

    Returns:
        Mean loss over the last epoch.

    Raises:
        LMMError: fewer than one epoch, or a learning rate that is not above 0.
        CheckpointError: nothing that was kept can be read.
    """
    if epochs < 1 or not 0 < lr < math.inf:
        raise LMMError(f"epochs = {epochs}, lr = {lr}; valid: 1 or more, and finite, above 0")
    matrices, others = [p for p in parameters if p.ndim >= 2], [p for p in parameters if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=lr, betas=(0.9, 0.98))
    steps, generator = epochs * math.ceil(len(lengths) / batch), torch.Generator().manual_seed(seed)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_cosine(step, steps, _WARM_UP))

    def epoch(number: int) -> float:
        losses: list[float] = []
        for rows in batches(torch.tensor(lengths), batch, generator):
            value = loss(rows)
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(float(value.detach()))
            told(number * (steps // epochs) + len(losses), steps)
        return sum(losses) / len(losses)

    return Epochs(count=epochs, parameters=parameters, optimizer=optimizer, schedule=schedule, generator=generator, store=store).run(epoch)


def batches(lengths: Tensor, batch: int, generator: torch.Generator) -> list[Tensor]:
    """Every index once, in batches: random groups of `_GROUP` batches are ordered by length, and the batches shuffled."""
    found: list[Tensor] = []
    for group in torch.randperm(len(lengths), generator=generator).split(_GROUP * batch):
        found += group[lengths[group].argsort(stable=True)].split(batch)
    return [found[place] for place in torch.randperm(len(found), generator=generator).tolist()]
