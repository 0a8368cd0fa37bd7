"""Training of the small VLM: symmetric InfoNCE of pictures and captions, globally and over local tokens (auxiliary-vision 0.2).

    L = InfoNCE(cos(g_i, t_j)) + local_weight * InfoNCE(mean of the top_k largest cos(l_ir, t_j) over places r)

Without the local term the value-path tokens of a small model carry no signal of the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.vlm.interface import VLMError
from robot_bridge.auxiliary.vlm.small import SmallVLM

MAX_LOGIT_SCALE = math.log(100.0)
"""CLIP's bound (arXiv 2103.00020)."""


@dataclass(frozen=True, kw_only=True)
class ContrastiveConfig:
    """How the small VLM is trained."""

    epochs: int = 12
    """Passes over the pictures."""
    batch: int = 256
    """Pairs in a batch."""
    learning_rate: float = 1e-3
    """AdamW's, after a warm-up over the first twentieth of the steps; then a cosine to 0."""
    weight_decay: float = 0.05
    """AdamW's, of matrices alone."""
    local_weight: float = 0.5
    """Share of the local term; 0 leaves local tokens untrained."""
    top_k: int = 8
    """Places of a picture that count in the local term."""


def info_nce(similarity: Tensor, same: Tensor) -> Tensor:
    """Symmetric InfoNCE, -(1/2B) sum_i [log softmax_j S_ij + log softmax_j S_ji] at the pairs (CLIP; arXiv 2103.00020).

    Args:
        similarity: S (B, B), scaled; row = picture, column = caption.
        same: (B, B) bool, true where captions are equal word by word; those share the target evenly, as none of them is wrong.
    """
    target = same.float() / same.sum(dim=1, keepdim=True)
    rows = -(target * similarity.log_softmax(dim=1)).sum(dim=1)
    columns = -(target * similarity.log_softmax(dim=0)).sum(dim=0)  # equal captions are one group: row and column sums agree
    return 0.5 * (rows.mean() + columns.mean())


def local_cosines(tokens: Tensor, text: Tensor, top_k: int) -> Tensor:
    """Mean of the `top_k` largest cosines over the places of a picture, (B, C); tokens (B, n, d), text (C, d), both of unit norm."""
    cosines = torch.einsum("bnd,cd->bnc", tokens, text)
    return cosines.topk(min(top_k, tokens.shape[1]), dim=1).values.mean(dim=1)


def train(
    model: SmallVLM,
    maps: NDArray[np.float16],
    captions: Sequence[Sequence[str]],
    config: ContrastiveConfig,
    seed: int,
    done: Callable[[int, int, dict[str, float]], None] = lambda step, steps, metrics: None,
) -> dict[str, float]:
    """Trains the model in place and freezes it.

    Args:
        model: fresh, or one to be trained further.
        maps: of its backbone (`feature_cache.map_cache`), (n, channels, grid, grid).
        captions: for each picture one or more sentences, of which each step draws one.
        config: see `ContrastiveConfig`.
        seed: of batches and of the sentences drawn.
        done: told the step, the number of steps and the last losses.

    Returns:
        Means over the last epoch: `loss/global`, `loss/local`.

    Raises:
        VLMError: fewer pictures than two, another number of captions, or a caption that is too long.
    """
    if len(maps) < 2 or len(captions) != len(maps):
        raise VLMError(f"{len(maps)} pictures with {len(captions)} captions; valid: two or more, with captions for each")
    model.train().requires_grad_(True)
    generator = np.random.default_rng(seed)
    ids = [model.tokenize(list(sentences)) for sentences in captions]
    steps = config.epochs * max(len(maps) // config.batch, 1)
    optimizer = _adamw(model, config)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _schedule(step, steps))
    history: list[dict[str, float]] = []
    for step, rows in enumerate(_batches(len(maps), config.batch, steps, generator)):
        words = torch.stack([ids[row][generator.integers(len(ids[row]))] for row in rows])
        image, tokens = model.encode_tokens(model.map_tokens(torch.from_numpy(maps[rows])))
        text = F.normalize(model.encode_text_embeds(model.token_embedding(words), words), dim=-1)
        same = (words[:, None] == words[None]).all(dim=-1)
        scale = model.logit_scale.exp()
        loss_global = info_nce(scale * F.normalize(image, dim=-1) @ text.T, same)
        loss_local = info_nce(scale * local_cosines(F.normalize(tokens, dim=-1), text, config.top_k), same)
        optimizer.zero_grad()
        (loss_global + config.local_weight * loss_local).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            model.logit_scale.clamp_(max=MAX_LOGIT_SCALE)
        history.append({"loss/global": loss_global.item(), "loss/local": loss_local.item()})
        done(step + 1, steps, history[-1])
    model.freeze()
    last = history[-max(steps // config.epochs, 1) :]
    return {name: float(np.mean([row[name] for row in last])) for name in last[0]}


def _adamw(model: SmallVLM, config: ContrastiveConfig) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98), fused=True)


def _schedule(step: int, steps: int) -> float:
    warm = max(steps // 20, 1)
    return (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


def _batches(count: int, batch: int, steps: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    size = min(batch, count)
    order = np.empty(0, np.int64)
    for _ in range(steps):
        if len(order) < size:
            order = generator.permutation(count)
        yield order[:size]
        order = order[size:]
