"""The three losses of Local-Prompt (arXiv 2409.04796), derived anew: in the authors' code the names n2p and p2n are crossed."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def positive_loss(local: Tensor, negative: Tensor, labels: Tensor, k: int) -> Tensor:
    """-log of the true class's share: sum_{r in TopK(S_pp[:, y])} exp S_pp[r, y] over the same of all local and negative prompts.

    Every prompt has its own k regions, so this is a cross-entropy over the prompts' log-sum-exps; the maximum is subtracted inside.

    Args:
        local: S_pp (B, n, C), scaled similarities of the positive crop's tokens with the local prompts.
        negative: S_pn (B, n, N), the same tokens with the negative prompts.
        labels: (B,).
        k: regions of each prompt.
    """
    similarities = torch.cat((local, negative), dim=-1)
    return F.cross_entropy(similarities.topk(min(k, local.shape[1]), dim=1).values.logsumexp(dim=1), labels)


def negative_loss(local: Tensor, negative: Tensor, labels: Tensor, k: int) -> Tensor:
    """-log of the negative prompts' share in the negative crop.

    The regions R that look most like the label must belong to the negative prompts: sum_{r in R, j} exp S_nn[r, j] over that plus
    sum_c sum_{TopK(S_np[:, c])} exp S_np[r, c].

    Args:
        local: S_np (B, n, C), tokens of the negative crop with the local prompts.
        negative: S_nn (B, n, N), the same tokens with the negative prompts.
        labels: (B,), of the image that the crop is of.
        k: regions.
    """
    k = min(k, local.shape[1])
    of_label = local.gather(2, labels[:, None, None].expand(-1, local.shape[1], 1))[..., 0]
    regions = of_label.topk(k, dim=1).indices
    found = negative.gather(1, regions[:, :, None].expand(-1, -1, negative.shape[2])).flatten(1).logsumexp(dim=1)
    classes = local.topk(k, dim=1).values.flatten(1).logsumexp(dim=1)
    return F.softplus(classes - found).mean()


def diversity_loss(negatives: Tensor) -> Tensor:
    """sum_{j, j'} cos(neg_j, neg_j') / (N (N - 1)), the diagonal included: it adds the constant 1 / (N - 1).

    Args:
        negatives: embeddings (N, d), N >= 2.
    """
    rows = F.normalize(negatives, dim=-1)
    return (rows @ rows.T).sum() / (len(rows) * (len(rows) - 1))
