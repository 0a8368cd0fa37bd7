"""Towers: what the small model and CLIP have in common, written once over `interface.Block`."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, overload

import torch
from torch import Tensor, nn

from robot_bridge.auxiliary.vlm.blocks import forward, forward_first, value_path
from robot_bridge.auxiliary.vlm.interface import Block, BlockInput


class Towers(nn.Module, ABC):
    """The encoding half of `interface.VLM`; a model says what its parts are."""

    identity: str
    embed_dim: int
    text_width: int
    context_length: int

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """See `interface.VLM`."""

    @abstractmethod
    def token_embedding(self, ids: Tensor) -> Tensor:
        """See `interface.VLM`."""

    @abstractmethod
    def text_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""

    @abstractmethod
    def vision_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""

    @abstractmethod
    def vision_tokens(self, x: Tensor) -> Tensor:
        """See `interface.VLM`."""

    @abstractmethod
    def vision_head(self, hidden: Tensor) -> Tensor:
        """See `interface.VLM`."""

    @abstractmethod
    def text_positions(self) -> Tensor:
        """Embeddings of the positions (context_length, text_width)."""

    @abstractmethod
    def text_head(self, hidden: Tensor) -> Tensor:
        """Joint vectors (C, d) of EOT tokens (C, text_width): the final norm, then the projection."""

    @abstractmethod
    def eot(self, ids: Tensor) -> Tensor:
        """Place of the EOT (C,) in ids (C, context_length)."""

    def freeze(self) -> None:
        """Weights get no gradients any more, and the model is in evaluation mode; gradients through it still flow."""
        self.requires_grad_(False)
        self.eval()

    def weights_hash(self) -> str:
        """First 16 digits of the sha256 of all weights and their names."""
        digest = hashlib.sha256()
        for name, values in sorted(self.state_dict().items()):
            digest.update(name.encode() + values.detach().cpu().float().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    @overload
    def encode_image(self, x: Tensor, tokens: Literal[False] = False) -> Tensor: ...
    @overload
    def encode_image(self, x: Tensor, tokens: Literal[True]) -> tuple[Tensor, Tensor]: ...
    def encode_image(self, x: Tensor, tokens: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """See `interface.VLM`."""
        hidden = self.vision_tokens(x)
        return self.encode_tokens(hidden) if tokens else self.vision_head(forward_first(self.vision_blocks()[-1], self._body(hidden)))

    def encode_tokens(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """g (B, d) and L (B, n, d) of the first block's input (B, 1 + n, width)."""
        last, hidden = self.vision_blocks()[-1], self._body(hidden)
        return self.vision_head(forward_first(last, hidden)), self.vision_head(value_path(last, hidden[:, 1:]))

    def _body(self, hidden: Tensor) -> Tensor:
        for block in self.vision_blocks()[:-1]:
            hidden = forward(block, hidden)
        return hidden

    def encode_text_embeds(self, emb: Tensor, ids: Tensor, block_input: BlockInput | None = None) -> Tensor:
        """See `interface.VLM`."""
        length = emb.shape[1] if block_input is not None else int(self.eot(ids).max()) + 1
        hidden = (emb + self.text_positions())[:, :length]  # what stands behind the last EOT is seen by nobody
        for index, block in enumerate(self.text_blocks()):
            if block_input is not None:
                hidden = block_input(index, hidden)
            hidden = forward(block, hidden, causal=True)
        return self.text_head(hidden[torch.arange(len(ids)), self.eot(ids)])

    def encode_text(self, texts: Sequence[str]) -> Tensor:
        """See `interface.VLM`."""
        ids = self.tokenize(texts)
        return self.encode_text_embeds(self.token_embedding(ids), ids)
