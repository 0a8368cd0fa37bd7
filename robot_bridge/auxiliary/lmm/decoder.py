"""CaptionDecoder: a small causal transformer that reads visual tokens, then a prompt, and writes an answer.

[visual tokens | prompt words, mark | answer words, end]        each position predicts the next; all see the visual tokens
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from robot_bridge.auxiliary.vlm.blocks import PreNormBlock, attention, forward


@dataclass(frozen=True, kw_only=True)
class DecoderSizes:
    """The decoder's sizes."""

    width: int = 192
    """Size of a token."""
    blocks: int = 4
    """Transformer blocks."""
    heads: int = 6
    """Attention heads."""
    length: int = 112
    """Most words of a prompt and its answer together, marks included."""


class KeyValues:
    """Keys and values of the positions so far, for every block; room for `slots` of them is taken at once.

    Attributes:
        filled: positions that are there.
        hidden: (rows, slots) bool, true where a slot is padding that nobody may see.
    """

    def __init__(self, rows: int, slots: int, sizes: DecoderSizes) -> None:
        self.keys = [torch.zeros(rows, slots, sizes.width) for _ in range(sizes.blocks)]
        self.values = [torch.zeros(rows, slots, sizes.width) for _ in range(sizes.blocks)]
        self.hidden = torch.zeros(rows, slots, dtype=torch.bool)
        self.filled = 0

    def repeated(self, n: int) -> KeyValues:
        """Every row `n` times, one after the other."""
        self.keys = [each.repeat_interleave(n, dim=0) for each in self.keys]
        self.values = [each.repeat_interleave(n, dim=0) for each in self.values]
        self.hidden = self.hidden.repeat_interleave(n, dim=0)
        return self


class CaptionDecoder(nn.Module):
    """See the module.

    Args:
        sizes: of the decoder.
        words: ids in its vocabulary.
        visual_width: size of a visual token.
        visual_count: visual tokens of a picture.
    """

    def __init__(self, sizes: DecoderSizes, words: int, visual_width: int, visual_count: int) -> None:
        super().__init__()
        self.sizes, self.visual_count = sizes, visual_count
        self.connector = nn.Sequential(nn.LayerNorm(visual_width), nn.Linear(visual_width, sizes.width))
        self.embedding = nn.Embedding(words, sizes.width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.positions = nn.Parameter(0.02 * torch.randn(visual_count + sizes.length, sizes.width))
        self.blocks = nn.ModuleList([PreNormBlock(sizes.width, sizes.heads) for _ in range(sizes.blocks)])
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, visual: Tensor, ids: Tensor) -> Tensor:
        """Logits (B, T, words) of what follows each of the words `ids` (B, T) behind visual tokens (B, visual_count, visual_width).

        The embedding is the output layer too. Padding behind a row's words does no harm: words see only what is before them.
        """
        hidden = torch.cat([self.connector(visual), self.embedding(ids)], dim=1)
        hidden = hidden + self.positions[: hidden.shape[1]]
        for block in self.blocks:
            hidden = forward(block, hidden, causal=True)  # type: ignore[arg-type]  # a ModuleList is not typed by what it holds
        return self._logits(hidden[:, self.visual_count :])

    def prefill(self, visual: Tensor, ids: Tensor, lengths: Tensor, room: int) -> tuple[Tensor, KeyValues]:
        """Logits (B, words) of the first answer word, and keys and values with room for `room` words.

        Args:
            visual: as for `forward`.
            ids: prompts (B, T), padded on the right.
            lengths: words of each prompt, (B,).
            room: answer words that will come.
        """
        seen = KeyValues(len(ids), self.visual_count + ids.shape[1] + room, self.sizes)
        hidden = torch.cat([self.connector(visual), self.embedding(ids)], dim=1)
        seen.filled = hidden.shape[1]
        hidden = hidden + self.positions[: seen.filled]
        for index, block in enumerate(self.blocks):
            query, key, value = block.qkv(block.ln_1(hidden))  # type: ignore[operator]
            seen.keys[index][:, : seen.filled], seen.values[index][:, : seen.filled] = key, value
            hidden = hidden + block.proj(attention(query, key, value, self.sizes.heads, causal=True))  # type: ignore[operator]
            hidden = hidden + block.mlp(block.ln_2(hidden))  # type: ignore[operator]
        place = torch.arange(seen.filled) - self.visual_count
        seen.hidden[:, : seen.filled] = place[None] >= lengths[:, None]
        return self._logits(hidden[torch.arange(len(ids)), self.visual_count + lengths - 1]), seen

    def step(self, words: Tensor, places: Tensor, seen: KeyValues) -> Tensor:
        """Logits (B, words) of what follows.

        Args:
            words: the newest word of each row, (B,).
            places: how many words of its row come before it, (B,).
            seen: of everything before; the word is added.
        """
        hidden = (self.embedding(words) + self.positions[self.visual_count + places])[:, None]
        slot, seen.filled = seen.filled, seen.filled + 1
        bias = torch.zeros(len(words), 1, 1, seen.filled).masked_fill_(seen.hidden[:, None, None, : seen.filled], -torch.inf)
        for index, block in enumerate(self.blocks):
            query, key, value = block.qkv(block.ln_1(hidden))  # type: ignore[operator]
            seen.keys[index][:, slot], seen.values[index][:, slot] = key[:, 0], value[:, 0]
            keys, values = seen.keys[index][:, : seen.filled], seen.values[index][:, : seen.filled]
            hidden = hidden + block.proj(attention(query, keys, values, self.sizes.heads, bias=bias))  # type: ignore[operator]
            hidden = hidden + block.mlp(block.ln_2(hidden))  # type: ignore[operator]
        return self._logits(hidden[:, 0])

    def _logits(self, hidden: Tensor) -> Tensor:
        return self.norm(hidden) @ self.embedding.weight.T
