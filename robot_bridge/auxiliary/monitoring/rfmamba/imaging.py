"""A CNN on images of the room: it is told by back-projection where each echo comes from, which the other networks have to learn.

echoes -> |back-projection| on a grid of points, of length 1 a frame -> convolutions over the floor -> heads
"""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.rfmamba.backprojection import SHAPE, steering
from robot_bridge.auxiliary.monitoring.rfmamba.config import NetworkConfig
from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS, RadarGeometry
from robot_bridge.auxiliary.monitoring.rfmamba.network import Outputs, PoseHeads, RadarNetwork
from robot_bridge.auxiliary.monitoring.rfmamba.transformer import build_network

_FEATURES = 32


class ImagingTrunk(nn.Module):
    """Echoes to features of the window; heights and frames are channels.

    Args:
        geometry: of the radar.
        width: channels.
    """

    steering: Tensor

    def __init__(self, geometry: RadarGeometry, width: int) -> None:
        super().__init__()
        x, y, z = SHAPE
        self.register_buffer("steering", steering(geometry), persistent=False)  # follows from the geometry, which a bundle holds
        self.convolutions = nn.Sequential(
            nn.Conv2d(geometry.frames * z, width, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(2 * width * math.ceil(x / 2) * math.ceil(y / 2), _FEATURES),
            nn.GELU(),
        )

    def forward(self, echoes: Tensor) -> Tensor:
        """(B, T, antennas, F) complex -> (B, features)."""
        images = F.normalize((echoes.flatten(2) @ self.steering).abs(), dim=-1) * math.sqrt(self.steering.shape[1])
        return self.convolutions(images.unflatten(-1, SHAPE).permute(0, 1, 4, 2, 3).flatten(1, 2))


class ImagingHeads(PoseHeads):
    """Pose, activity and segmentation from a window's features.

    Args:
        grid: antennas and range bins.
        activities: how many.
    """

    def __init__(self, grid: tuple[int, int], activities: int) -> None:
        super().__init__()
        self._grid = grid
        self.pose, self.activity = nn.Linear(_FEATURES, 3 * len(JOINTS)), nn.Linear(_FEATURES, activities)
        self.segmentation = nn.Linear(_FEATURES, math.prod(grid))

    def forward(self, features: Tensor) -> Outputs:
        """(B, features) -> answers."""
        return Outputs(
            joints=self.mean_pose + self.pose(features).unflatten(-1, (-1, 3)),
            activity=self.activity(features),
            body=self.segmentation(features).unflatten(-1, self._grid),
        )


def network_for(geometry: RadarGeometry, config: NetworkConfig, *, current: int, activities: int) -> RadarNetwork:
    """The network of any kind, with weights of torch's global generator.

    Args:
        geometry: of the radar, and so of its windows.
        config: of the network.
        current: frame that the answer is about.
        activities: how many.

    Raises:
        ConfigError: a window that does not divide into patches.
    """
    frames, transmitters, receivers, frequencies = geometry.shape
    antennas = transmitters * receivers
    if config.kind == "imaging":
        return RadarNetwork(ImagingTrunk(geometry, config.imaging_width), ImagingHeads((antennas, frequencies), activities))
    return build_network((frames, antennas, frequencies), config, current=current, activities=activities)
