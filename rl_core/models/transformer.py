"""Transformer encoder over a short context: pre-norm blocks, learned positions, no causal mask.

    x <- x + Attention(LayerNorm(x)),   x <- x + MLP(LayerNorm(x))       (GPT-2's order of the norms)

Without a mask every position sees the whole context, which is what a policy wants whose context lies in the past.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    """Multi-head self-attention, softmax(Q K^T / sqrt(d)) V (arXiv 1706.03762, eq. 1)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} for {heads} heads, valid: a multiple of the heads")
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, L, width) -> the same shape."""
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=self.dropout if self.training else 0.0)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """One layer: attention and an MLP four times as wide, each behind a norm and beside a shortcut."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, L, width) -> the same shape."""
        x = x + self.drop(self.attention(self.attention_norm(x)))
        return x + self.drop(self.mlp(self.mlp_norm(x)))


class Transformer(nn.Module):
    """Tokens in, features out.

    Args:
        length: L, tokens in a sequence.
        width: size of a token.
        layers: blocks.
        heads: attention heads; `width` is a multiple of it.
        dropout: share of values that are dropped while training.
    """

    def __init__(self, length: int, width: int, *, layers: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, L, width) -> (B, L, width)."""
        x = self.drop(tokens + self.positions)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)
