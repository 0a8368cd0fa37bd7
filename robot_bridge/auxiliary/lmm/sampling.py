"""Batched sampling of answers with kept keys and values; every prompt is read once, however many answers it gets."""

from __future__ import annotations

import torch
from torch import Tensor

from robot_bridge.auxiliary.lmm.decoder import CaptionDecoder
from robot_bridge.auxiliary.lmm.vocabulary import ANSWER, END, PAD, UNKNOWN

_NEVER = (PAD, ANSWER, UNKNOWN)
"""Ids that are no word of an answer."""


def nucleus(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """Probabilities (B, words) of the smallest set whose sum is at least `top_p` (arXiv 1904.09751); the most likely word is always in.

    Args:
        logits: (B, words).
        temperature: above 0.
        top_p: above 0, 1 keeps all.
    """
    ordered, order = torch.softmax(logits / temperature, dim=-1).sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered
    kept = torch.where(before < top_p, ordered, torch.zeros(()))
    return torch.zeros_like(kept).scatter(1, order, kept / kept.sum(dim=-1, keepdim=True))


@torch.no_grad()
def sample(
    decoder: CaptionDecoder,
    visual: Tensor,
    prompts: list[list[int]],
    n: int,
    temperature: float,
    top_p: float,
    max_tokens: int,
    generator: torch.Generator,
) -> list[list[list[int]]]:
    """Ids of `n` answers to each prompt, ends included.

    Args:
        decoder: in evaluation mode.
        visual: (B, visual_count, visual_width).
        prompts: B lists of ids.
        n: answers to each.
        temperature: 0 takes the most likely word.
        top_p: see `nucleus`.
        max_tokens: most words of an answer.
        generator: of the draws.
    """
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    ids = torch.full((len(prompts), int(lengths.max())), PAD)
    for row, prompt in zip(ids, prompts, strict=True):
        row[: len(prompt)] = torch.tensor(prompt)
    logits, seen = decoder.prefill(visual, ids, lengths, max_tokens)
    logits, places, seen = logits.repeat_interleave(n, dim=0), lengths.repeat_interleave(n), seen.repeated(n)
    ended, written = torch.zeros(len(places), dtype=torch.bool), []
    for count in range(max_tokens):
        logits[:, _NEVER] = -torch.inf
        if temperature == 0:
            words = logits.argmax(dim=-1)
        else:
            words = torch.multinomial(nucleus(logits, temperature, top_p), 1, generator=generator)[:, 0]
        words = words.masked_fill(ended, END)
        written.append(words)
        ended |= words == END
        if bool(ended.all()) or count == max_tokens - 1:
            break
        logits = decoder.step(words, places + count, seen)
    rows = torch.stack(written, dim=1).tolist()
    return [rows[at : at + n] for at in range(0, len(rows), n)]
