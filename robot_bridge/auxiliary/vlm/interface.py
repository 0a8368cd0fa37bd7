"""VLM: what a vision-language model offers to the methods that build on one.

Image and text vectors lie in one joint space of `embed_dim` numbers and are NOT normalised: every consumer normalises. Similarities are
exp(logit_scale) * cosine. Weights are frozen and the model is in evaluation mode, but gradients flow from `encode_text_embeds` back to
the embeddings it was given, which is where context vectors are tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rl_core.errors import ArmstackError

BlockInput = Callable[[int, Tensor], Tensor]
"""(index of a block, its input (C, context_length, width)) -> the input it gets instead; see `VLM.encode_text_embeds`."""


class VLMError(ArmstackError):
    """A vision-language model that cannot be had, or a text that it cannot read; says what was found and what is valid."""


class Block(Protocol):
    """One pre-norm transformer block, taken apart, so that tokens can be merged and adapters added inside it.

        x <- x + proj(attention(qkv(ln_1(x)))),   x <- x + mlp(ln_2(x))

    Attributes:
        n_heads: attention heads; the width is a multiple of it.
        ln_1, ln_2, proj, mlp: modules of (B, T, width) -> (B, T, width).
    """

    n_heads: int

    @property
    def ln_1(self) -> Callable[[Tensor], Tensor]: ...
    @property
    def ln_2(self) -> Callable[[Tensor], Tensor]: ...
    @property
    def proj(self) -> Callable[[Tensor], Tensor]: ...
    @property
    def mlp(self) -> Callable[[Tensor], Tensor]: ...

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (B, T, width), of normed tokens (B, T, width); heads lie side by side in the width."""
        ...


class VLM(Protocol):
    """See the module. `blocks.forward(block, x)` runs one of its blocks as the model itself does.

    Attributes:
        identity: names model and weights; equal identities give equal vectors, so features may be kept under it.
        embed_dim: d, size of the joint space.
        text_width: size of a text token's embedding, in which context vectors live.
        context_length: most text tokens, SOS and EOT included (CLIP: 77).
        logit_scale: logarithm of the scale of similarities, a scalar tensor.
    """

    identity: str
    embed_dim: int
    text_width: int
    context_length: int

    @property
    def logit_scale(self) -> Tensor: ...

    def preprocess(self, rgb: NDArray[np.uint8]) -> Tensor:
        """Upright RGB pictures (B, H, W, 3) uint8 of any size -> (B, 3, side, side) float32, normalised as the model was trained."""
        ...

    @overload
    def encode_image(self, x: Tensor, tokens: Literal[False] = False) -> Tensor: ...
    @overload
    def encode_image(self, x: Tensor, tokens: Literal[True]) -> tuple[Tensor, Tensor]: ...
    def encode_image(self, x: Tensor, tokens: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Joint vectors of preprocessed pictures.

        Args:
            x: what `preprocess` gave.
            tokens: also give local tokens, of the value path of the last block (`blocks.value_path`).

        Returns:
            g (B, d); with `tokens` g and L (B, n, d), n = rows * columns of the patches in reading order. Both in the joint space.
        """
        ...

    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """Token ids (C, context_length), int64: SOS, the text, EOT, padding.

        Raises:
            VLMError: a text longer than `context_length`; says how many tokens it has.
        """
        ...

    def eot(self, ids: Tensor) -> Tensor:
        """Place of the EOT (C,) in ids (C, context_length)."""
        ...

    def token_embedding(self, ids: Tensor) -> Tensor:
        """Embeddings (C, context_length, text_width) of ids, without positions."""
        ...

    def encode_text_embeds(self, emb: Tensor, ids: Tensor, block_input: BlockInput | None = None) -> Tensor:
        """Joint vectors (C, d) of embeddings (C, context_length, text_width); adds the positions itself; differentiable in `emb`.

        Args:
            emb: of `token_embedding`, or with context vectors in some places (`prompts.Prompts.embeddings`).
            ids: of `tokenize`, (C, context_length); they tell where the EOT stands.
            block_input: called before each text block; what it returns goes into the block (TCP replaces context tokens so).
        """
        ...

    def encode_text(self, texts: Sequence[str]) -> Tensor:
        """Joint vectors (C, d): tokenize, embed, encode."""
        ...

    def text_blocks(self) -> Sequence[Block]:
        """Blocks of the text tower, first to last; they run with a causal mask."""
        ...

    def vision_blocks(self) -> Sequence[Block]:
        """Blocks of the vision tower, first to last."""
        ...

    def vision_tokens(self, x: Tensor) -> Tensor:
        """Input of the first vision block (B, 1 + n, width): CLS, then patches, positions added."""
        ...

    def vision_head(self, hidden: Tensor) -> Tensor:
        """Joint vectors (..., d) of tokens (..., width) that left the last vision block: ln_post, then the projection."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All weights by name, as `torch.nn.Module` gives them."""
        ...
