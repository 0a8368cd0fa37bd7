"""Transformer blocks of both towers: how one is run, and the value path that gives local tokens aligned with text."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from robot_bridge.auxiliary.vlm.interface import Block


class QuickGELU(nn.Module):
    """x * sigmoid(1.702 x), CLIP's activation."""

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return x * torch.sigmoid(1.702 * x)


class PreNormBlock(nn.Module):
    """The small model's block; see `interface.Block`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.n_heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.to_qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), QuickGELU(), nn.Linear(4 * width, width))

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `interface.Block`."""
        query, key, value = self.to_qkv(x).chunk(3, dim=-1)
        return query, key, value


class ClipBlock:
    """A layer of transformers' CLIP encoder behind `interface.Block`; holds no weights of its own."""

    def __init__(self, layer: nn.Module) -> None:
        attention: nn.Module = layer.self_attn  # type: ignore[assignment]
        self.n_heads: int = attention.num_heads  # type: ignore[assignment]
        self.ln_1: nn.Module = layer.layer_norm1  # type: ignore[assignment]
        self.ln_2: nn.Module = layer.layer_norm2  # type: ignore[assignment]
        self.proj: nn.Module = attention.out_proj  # type: ignore[assignment]
        self.mlp: nn.Module = layer.mlp  # type: ignore[assignment]
        self._projections: tuple[Callable[[Tensor], Tensor], ...] = (attention.q_proj, attention.k_proj, attention.v_proj)  # type: ignore[assignment]

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `interface.Block`."""
        query, key, value = (project(x) for project in self._projections)
        return query, key, value


def attention(query: Tensor, key: Tensor, value: Tensor, n_heads: int, *, causal: bool = False, bias: Tensor | None = None) -> Tensor:
    """softmax(Q K^T / sqrt(width / heads) + bias) V, heads apart; (B, T, width) each -> (B, T, width).

    Args:
        query: as `Block.qkv` gives it, as are `key` and `value`.
        key: see above.
        value: see above.
        n_heads: heads.
        causal: a token sees itself and those before it.
        bias: added to the logits, broadcast to (B, heads, T, T), e.g. log(size) of merged tokens.
    """
    q, k, v = (x.unflatten(-1, (n_heads, -1)).transpose(1, 2) for x in (query, key, value))
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal)
    return mixed.transpose(1, 2).flatten(2)


def forward(block: Block, x: Tensor, *, causal: bool = False) -> Tensor:
    """The block's output (B, T, width) of its input (B, T, width)."""
    x = x + block.proj(attention(*block.qkv(block.ln_1(x)), block.n_heads, causal=causal))
    return x + block.mlp(block.ln_2(x))


def forward_first(block: Block, x: Tensor) -> Tensor:
    """The first token (B, width) of `forward(block, x)`, without working out the others."""
    query, key, value = block.qkv(block.ln_1(x))
    first = x[:, :1] + block.proj(attention(query[:, :1], key, value, block.n_heads))
    return (first + block.mlp(block.ln_2(first)))[:, 0]


def value_path(block: Block, x: Tensor) -> Tensor:
    """The last block without its query-key attention: every token keeps its own place (LoCoOp, Local-Prompt's released code).

        v = proj(V(ln_1(x))),   v <- v + x,   v <- v + mlp(ln_2(v))

    Plain patch outputs of a CLIP are not aligned with text; these are, as the CLS output is a mixture of such values.
    """
    value = x + block.proj(block.qkv(block.ln_1(x))[2])
    return value + block.mlp(block.ln_2(value))
