"""The opponent: attention over the same complex tokens, all frames and phase included (RadarFormer had two frames and amplitudes)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from robot_bridge.auxiliary.monitoring.rfmamba.branches import Grid
from robot_bridge.auxiliary.monitoring.rfmamba.complex_layers import ComplexLayerNorm, PatchMerging, as_complex, as_real
from robot_bridge.auxiliary.monitoring.rfmamba.config import NetworkConfig
from robot_bridge.auxiliary.monitoring.rfmamba.network import Heads, RadarNetwork, RFMambaTrunk, token_grid


class TransformerTrunk(nn.Module):
    """Embedding and first down-sampling as in RFMamba, pre-norm attention over all tokens of the window, and its second down-sampling.

    Args:
        shape: (T, antennas, F) of an echo window.
        config: of the network.
        current: frame that the answer is about.
    """

    def __init__(self, shape: Grid, config: NetworkConfig, current: int) -> None:
        super().__init__()
        frames, antennas, frequencies = token_grid(shape, config, stages=1)
        width = config.attention_width
        self.embedding = PatchMerging(config.patch, 1, config.embedding)
        self.norm, self.merging = ComplexLayerNorm(config.embedding), PatchMerging(config.merge, config.embedding, config.widths[0])
        self.into_attention = nn.Linear(2 * config.widths[0], width)
        self.position = nn.Parameter(0.02 * torch.randn(frames * antennas * frequencies, width))
        layer = nn.TransformerEncoderLayer(
            width, config.attention_heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.attention = nn.TransformerEncoder(layer, config.attention_layers, enable_nested_tensor=False)
        self.back = nn.Linear(width, 2 * config.widths[0])
        self.last_norm = ComplexLayerNorm(config.widths[0])
        self.last_merging = PatchMerging(config.merge, config.widths[0], config.widths[1])
        self._grid, self._current = (frames, antennas, frequencies), current

    def forward(self, echoes: Tensor) -> Tensor:
        """(B, T, antennas, F) complex -> the current frame's tokens (B, antennas', F', width)."""
        x = self.merging(self.norm(self.embedding(echoes[..., None])))
        tokens = self.into_attention(as_real(x).flatten(1, 3)) + self.position
        back = self.back(self.attention(tokens)).unflatten(1, self._grid)[:, self._current, None]
        return self.last_merging(self.last_norm(as_complex(back)))[:, 0]


def build_network(shape: Grid, config: NetworkConfig, *, current: int, activities: int) -> RadarNetwork:
    """The network of a configuration, with weights of torch's global generator.

    Args:
        shape: (T, antennas, F) of an echo window.
        config: of the network.
        current: frame that the answer is about.
        activities: how many.

    Raises:
        ConfigError: a window that does not divide into patches.
    """
    trunk = (TransformerTrunk if config.kind == "transformer" else RFMambaTrunk)(shape, config, current)
    _, antennas, bins = token_grid(shape, config, stages=2)
    patch = shape[1] // antennas, shape[2] // bins
    return RadarNetwork(trunk, Heads((antennas, bins, config.widths[1]), patch, activities, config.head))
