"""The loop of supervised fine-tuning: AdamW, a warm-up over the first twentieth of the steps, then a cosine (the paper's schedule)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.kept_epochs import KeptEpochs
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
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
    kept = KeptEpochs(store=store, parameters=parameters, optimizer=optimizer, schedule=schedule)
    first, more = kept.resume()
    mean, done = float(more.get("loss", 0.0)), first * (steps // epochs)
    if first:
        generator.set_state(more["generator"])
    for epoch in range(first, epochs):
        losses: list[float] = []
        for rows in batches(torch.tensor(lengths), batch, generator):
            value = loss(rows)
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(float(value.detach()))
            done += 1
            told(done, steps)
        mean = sum(losses) / len(losses)
        kept.keep(epoch + 1, {"loss": mean, "generator": generator.get_state()})
    return mean


def batches(lengths: Tensor, batch: int, generator: torch.Generator) -> list[Tensor]:
    """Every index once, in batches: random groups of `_GROUP` batches are ordered by length, and the batches shuffled."""
    found: list[Tensor] = []
    for group in torch.randperm(len(lengths), generator=generator).split(_GROUP * batch):
        found += group[lengths[group].argsort(stable=True)].split(batch)
    return [found[place] for place in torch.randperm(len(found), generator=generator).tolist()]


def rate(step: int, steps: int) -> float:
    """Share of the highest learning rate at a step."""
    warm = max(round(_WARM_UP * steps), 1)
    return (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))
