"""The geometry of a simulated radar, as it is told on `radar/geometry`."""

from __future__ import annotations

from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarGeometry
from sim_envs.sensors.recordings import RadarScene


def geometry_of(scene: RadarScene, frames: int) -> RadarGeometry:
    """That of windows of `frames` frames in `scene`."""
    array = scene.array
    return RadarGeometry(
        transmitters=tuple(map(tuple, array.transmitters.tolist())),
        receivers=tuple(map(tuple, array.receivers.tolist())),
        frequencies=tuple(array.frequencies.tolist()),
        frames=frames,
        period_s=scene.period_s,
    )
