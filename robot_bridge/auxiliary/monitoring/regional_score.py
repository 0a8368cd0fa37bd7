"""Scores of how known an image is, from cosines of its whole and of its regions with class texts. Higher = known.

MCM (arXiv 2211.13445), GL-MCM (arXiv 2304.04521) and Regional-MCM (Local-Prompt, arXiv 2409.04796). All work on raw cosines with
temperature T, 1 in the papers.
"""

from __future__ import annotations

import torch
from torch import Tensor


def mcm(whole: Tensor, temperature: float = 1.0) -> Tensor:
    """max_c softmax_c(cos(g, t_c) / T).

    Args:
        whole: cosines (B, C) of image features with class texts.
        temperature: T.

    Returns:
        (B,).
    """
    return torch.softmax(whole / temperature, dim=-1).amax(dim=-1)


def gl_mcm(whole: Tensor, regions: Tensor, temperature: float = 1.0) -> Tensor:
    """MCM plus the largest class probability of any region.

    Args:
        whole: cosines (B, C).
        regions: cosines (B, n, C) of local image tokens with the same texts.
        temperature: T.
    """
    return mcm(whole, temperature) + torch.softmax(regions / temperature, dim=-1).amax(dim=(1, 2))


def region_probabilities(local: Tensor, negative: Tensor, scale: float | Tensor = 1.0) -> Tensor:
    """exp(s cos(l_r, local_c)) / sum over local prompts and negative prompts of exp(s cos(l_r, .)).

    Args:
        local: cosines (B, n, C) of regions with local prompts.
        negative: cosines (B, n, N) with negative prompts.
        scale: s = 1 / T.

    Returns:
        (B, n, C); the rest up to 1 is that of the negative prompts.
    """
    return torch.softmax(torch.cat((local, negative), dim=-1) * scale, dim=-1)[..., : local.shape[-1]]


def regional_mcm(whole: Tensor, local: Tensor, negative: Tensor, k: int, temperature: float = 1.0) -> Tensor:
    """MCM of the frozen global prompts plus the mean of the k largest class probabilities over all regions and classes.

    Args:
        whole: cosines (B, C) with the global prompts.
        local: cosines (B, n, C).
        negative: cosines (B, n, N).
        k: how many; at most n * C count.
        temperature: T.
    """
    probabilities = region_probabilities(local, negative, 1 / temperature).flatten(1)
    return mcm(whole, temperature) + probabilities.topk(min(k, probabilities.shape[1]), dim=-1).values.mean(dim=-1)


def class_scores(whole: Tensor, local: Tensor, k: int) -> Tensor:
    """exp(cos(g, global_c)) * mean over class c's k best regions of exp(cos(l_r, local_c)): the class is its argmax.

    Returns:
        (B, C), positive.
    """
    return whole.exp() * local.exp().topk(min(k, local.shape[1]), dim=1).values.mean(dim=1)


def outlier_map(local: Tensor, negative: Tensor, scale: float | Tensor) -> Tensor:
    """1 - the largest class probability of each region, in [0, 1]; 1 = belongs to no known class.

    With the temperature of training (s = exp(logit_scale)): at T = 1 all cosines look alike and the map would be grey.

    Returns:
        (B, n).
    """
    return 1 - region_probabilities(local, negative, scale).amax(dim=-1)
