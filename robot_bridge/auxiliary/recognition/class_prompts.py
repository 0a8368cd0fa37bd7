"""Prompts of classes under one or several learned contexts, and what is computed with their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.vlm.interface import VLM, BlockInput
from robot_bridge.auxiliary.vlm.prompts import assemble


class ClassPrompts:
    """Prompts t_ij = [v_j1 .. v_jL, name_i] of N classes and M contexts; the contexts are shared by the classes.

    Args:
        vlm: whose text tower encodes them.
        names: of the classes.
        n_ctx: L.
        contexts: M.
    """

    def __init__(self, vlm: VLM, names: Sequence[str], n_ctx: int, contexts: int = 1) -> None:
        self._vlm, self._classes, self._contexts = vlm, len(names), contexts
        self._prompts = assemble(vlm, [name for name in names for _ in range(contexts)], n_ctx)

    def encode(self, contexts: Tensor, block_input: BlockInput | None = None) -> Tensor:
        """Vectors (N, M, d) of length 1; gradients flow to `contexts` (M, L, width).

        Args:
            contexts: context vectors.
            block_input: see `VLM.encode_text_embeds`; rows are class by class.
        """
        each = contexts.expand(self._classes, -1, -1, -1).flatten(0, 1)
        return F.normalize(self._prompts.encode(self._vlm, each, block_input), dim=-1).unflatten(0, (self._classes, self._contexts))


def template_vectors(vlm: VLM, names: Sequence[str], templates: Sequence[str] = ("a photo of a {}.",)) -> Tensor:
    """Vectors (N, d) of hand-written prompts, length 1: the mean over the templates' vectors, each of length 1.

    Args:
        vlm: whose text tower.
        names: of the classes.
        templates: with {} where the name goes.
    """
    with torch.no_grad():
        found = [
            F.normalize(vlm.encode_text([template.format(name.replace("_", " ")) for name in names]), dim=-1) for template in templates
        ]
    return F.normalize(torch.stack(found).mean(dim=0), dim=-1)


def class_logits(features: Tensor, vectors: Tensor, scale: Tensor) -> Tensor:
    """exp(scale) * cos(f(x), T_i): (B, N) of image features (B, d) and class vectors (N, d)."""
    return scale.exp() * F.normalize(features, dim=-1) @ F.normalize(vectors, dim=-1).T
