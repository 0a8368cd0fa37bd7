"""Prompts with context vectors in place of words, as CoOp assembles them (arXiv 2109.01134; released code of Local-Prompt and DeKg).

"X X .. X NAME." is tokenised; SOS before and "NAME ." EOT after the X keep their embeddings, and the X give way to context vectors:

    concat(prefix (C, 1, width), context (C, n_ctx, width), suffix (C, context_length - 1 - n_ctx, width))

The same ids tell the text tower where the EOT stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from robot_bridge.auxiliary.vlm.interface import VLM, BlockInput, VLMError

PLACEHOLDER = "X"


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """Prompts of C classes that lack only their context.

    Attributes:
        ids: (C, context_length), of `VLM.tokenize`.
        prefix: embedding of the SOS, (C, 1, text_width).
        suffix: embeddings of everything behind the context, (C, context_length - 1 - n_ctx, text_width).
    """

    ids: Tensor
    prefix: Tensor
    suffix: Tensor

    @property
    def n_ctx(self) -> int:
        """Context vectors in a prompt."""
        return self.ids.shape[1] - 1 - self.suffix.shape[1]

    def embeddings(self, context: Tensor) -> Tensor:
        """Embeddings (C, context_length, text_width) with that context: (n_ctx, width) for all classes or (C, n_ctx, width) for each.

        Raises:
            VLMError: a context of another shape.
        """
        count, width = len(self.ids), self.prefix.shape[-1]
        if context.shape not in ((self.n_ctx, width), (count, self.n_ctx, width)):
            valid = f"({self.n_ctx}, {width}) or ({count}, {self.n_ctx}, {width})"
            raise VLMError(f"context vectors of shape {tuple(context.shape)}; valid: {valid}")
        return torch.cat([self.prefix, context.expand(count, -1, -1), self.suffix], dim=1)

    def encode(self, vlm: VLM, context: Tensor, block_input: BlockInput | None = None) -> Tensor:
        """Class vectors (C, d), not normalised; gradients flow to `context`."""
        return vlm.encode_text_embeds(self.embeddings(context), self.ids, block_input)


def assemble(vlm: VLM, names: Sequence[str], n_ctx: int) -> Prompts:
    """Prompts "X .. X NAME." with `n_ctx` places for context vectors.

    Args:
        vlm: whose tokens.
        names: one a class, as a person would write it ("square nut"; "_" counts as a space). An empty name gives "X .. X .", as prompts
            without a class (negative prompts) are.
        n_ctx: context vectors, at least 1.

    Raises:
        VLMError: no names, no context, or n_ctx + tokens of the name + 3 (SOS, full stop, EOT) above the context length.
    """
    if not names or n_ctx < 1:
        raise VLMError(f"prompts for {len(names)} names with n_ctx = {n_ctx}; valid: at least one name and n_ctx >= 1")
    texts = [" ".join([*[PLACEHOLDER] * n_ctx, name.replace("_", " ")]).strip() + "." for name in names]
    try:
        ids = vlm.tokenize(texts)
    except VLMError as error:
        raise VLMError(f"prompts with n_ctx = {n_ctx}: n_ctx + tokens of a name + 3 is above the context length: {error}") from error
    with torch.no_grad():
        found = vlm.token_embedding(ids)
    return Prompts(ids=ids, prefix=found[:, :1], suffix=found[:, 1 + n_ctx :])


def context_of(vlm: VLM, words: str) -> Tensor:
    """Context vectors (n, text_width) that start as the embeddings of `words`, e.g. "a photo of a"; n is their number of tokens."""
    ids = vlm.tokenize([words])
    with torch.no_grad():
        return vlm.token_embedding(ids)[0, 1 : int(vlm.eot(ids)[0])].clone()
