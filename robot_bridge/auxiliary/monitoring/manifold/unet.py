"""The network of a pixel-space prior: a small U-Net that works on 2 x 2 blocks of pixels, so that a CPU can train it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.models.time_embedding import TimeEmbedding

_GROUPS, _TIME, _FEATURES = 8, 128, 32
_BLOCK = 2


class UNet(nn.Module):
    """A function of x_t and t: blocks of 2 x 2 pixels as channels, three resolutions, skips between them, attention on the coarsest.

    Args:
        side: pixels of width and height, a multiple of 8.
        width: channels of the finest resolution, a multiple of 8; the others have twice as many.
    """

    def __init__(self, side: int = 32, width: int = 32) -> None:
        super().__init__()
        self.side, wide = side, 2 * width
        self.time = TimeEmbedding(_TIME, features=_FEATURES)
        self.first = nn.Conv2d(3 * _BLOCK**2, width, 3, padding=1)
        self.down1, self.down2 = _Residual(width, width), _Residual(width, wide)
        self.middle1, self.attention, self.middle2 = _Residual(wide, wide), _Attention(wide), _Residual(wide, wide)
        self.up2, self.up1 = _Residual(2 * wide, wide), _Residual(wide + width, width)
        self.last = nn.Sequential(nn.GroupNorm(_GROUPS, width), nn.SiLU(), _zero(nn.Conv2d(width, 3 * _BLOCK**2, 3, padding=1)))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """Noisy images (n, 3 side^2) in channel order, steps (n,) -> (n, 3 side^2)."""
        time = self.time(t)
        fine = self.first(F.pixel_unshuffle(x.unflatten(1, (3, self.side, self.side)), _BLOCK))
        fine = self.down1(fine, time)
        coarse = self.down2(F.avg_pool2d(fine, 2), time)
        middle = self.middle1(F.avg_pool2d(coarse, 2), time)
        middle = self.middle2(self.attention(middle), time)
        coarse = self.up2(torch.cat((coarse, F.interpolate(middle, scale_factor=2.0)), dim=1), time)
        fine = self.up1(torch.cat((fine, F.interpolate(coarse, scale_factor=2.0)), dim=1), time)
        return F.pixel_shuffle(self.last(fine), _BLOCK).flatten(1)


class _Residual(nn.Module):
    """Two convolutions beside a shortcut; the step shifts and scales what is between them."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(_GROUPS, before), nn.Conv2d(before, after, 3, padding=1)
        self.step = nn.Linear(_TIME, 2 * after)
        self.norm2, self.conv2 = nn.GroupNorm(_GROUPS, after), _zero(nn.Conv2d(after, after, 3, padding=1))
        self.shortcut = nn.Identity() if before == after else nn.Conv2d(before, after, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        scale, shift = self.step(time)[:, :, None, None].chunk(2, dim=1)
        hidden = self.norm2(self.conv1(F.silu(self.norm1(x)))) * (1 + scale) + shift
        return self.shortcut(x) + self.conv2(F.silu(hidden))


class _Attention(nn.Module):
    """One head over all places."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(_GROUPS, width), nn.Conv2d(width, 3 * width, 1), _zero(nn.Conv2d(width, width, 1))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, dim=2)
        seen = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).unflatten(2, x.shape[2:])
        return x + self.out(seen)


def _zero(layer: nn.Conv2d) -> nn.Conv2d:
    """Starts as nothing, so that each block starts as its shortcut."""
    nn.init.zeros_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
