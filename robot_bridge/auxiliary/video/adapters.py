"""LoRA on queries, keys and values (arXiv 2106.09685), around the blocks of a frozen vision-language model from outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from robot_bridge.auxiliary.vlm.interface import Block
from robot_bridge.auxiliary.vlm.towers import Towers


class AdaptedBlock(nn.Module):
    """A block whose packed projection to queries, keys and values has a term of low rank; see `interface.Block`.

        [q, k, v] = qkv(x) + B A x,    A (rank, w), B (3w, rank), B = 0 at first

    The weights of the block itself are not among its parameters.

    Args:
        block: frozen.
        width: of its tokens.
        rank: of the term.
    """

    def __init__(self, block: Block, width: int, rank: int) -> None:
        super().__init__()
        self._of = (block,)  # in a tuple, so that its weights stay those of its own model
        self.n_heads = block.n_heads
        self.down = nn.Parameter(torch.empty(rank, width))
        self.up = nn.Parameter(torch.zeros(3 * width, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    @property
    def ln_1(self) -> Callable[[Tensor], Tensor]:
        """See `interface.Block`."""
        return self._of[0].ln_1

    @property
    def ln_2(self) -> Callable[[Tensor], Tensor]:
        """See `interface.Block`."""
        return self._of[0].ln_2

    @property
    def proj(self) -> Callable[[Tensor], Tensor]:
        """See `interface.Block`."""
        return self._of[0].proj

    @property
    def mlp(self) -> Callable[[Tensor], Tensor]:
        """See `interface.Block`."""
        return self._of[0].mlp

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `interface.Block`."""
        added = ((x @ self.down.T) @ self.up.T).chunk(3, dim=-1)
        query, key, value = (plain + more for plain, more in zip(self._of[0].qkv(x), added, strict=True))
        return query, key, value


class AdaptedTowers(Towers):
    """Both towers of a frozen model with adapted blocks; everything else is the model's own.

    Args:
        model: frozen.
        vision_width: of a vision token.
        rank: of every adapter.
    """

    def __init__(self, model: Towers, vision_width: int, rank: int) -> None:
        super().__init__()
        self._model = (model,)
        self.identity, self.embed_dim = model.identity, model.embed_dim
        self.text_width, self.context_length = model.text_width, model.context_length
        self.vision = nn.ModuleList([AdaptedBlock(block, vision_width, rank) for block in model.vision_blocks()])
        self.text = nn.ModuleList([AdaptedBlock(block, model.text_width, rank) for block in model.text_blocks()])

    @property
    def frozen(self) -> Towers:
        """The model itself."""
        return self._model[0]

    def vision_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""
        return list(self.vision)  # type: ignore[arg-type]  # a ModuleList is not typed by what it holds

    def text_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""
        return list(self.text)  # type: ignore[arg-type]

    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """See `interface.VLM`."""
        return self.frozen.tokenize(texts)

    def token_embedding(self, ids: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.frozen.token_embedding(ids)

    def vision_tokens(self, x: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.frozen.vision_tokens(x)

    def vision_head(self, hidden: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.frozen.vision_head(hidden)

    def text_positions(self) -> Tensor:
        """See `towers.Towers`."""
        return self.frozen.text_positions()

    def text_head(self, hidden: Tensor) -> Tensor:
        """See `towers.Towers`."""
        return self.frozen.text_head(hidden)

    def eot(self, ids: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.frozen.eot(ids)
