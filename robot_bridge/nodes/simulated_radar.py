"""The radar of a simulated person: the echoes of their whole walk are made beforehand, and told as they go."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float32MultiArray, String

from robot_bridge.nodes.qos import LATCHED, SENSOR, advertise
from robot_bridge.nodes.radar_messages import WINDOW, echo_message
from robot_bridge.separation.radar_geometry import geometry_of
from sim_envs.sensors.recordings import RadarScene, Recorder
from sim_envs.sensors.visit import record_visit
from sim_envs.sensors.walker import Walker


class SimulatedRadar:
    """Publishes `radar/geometry` and `radar/background` once, and `radar/echo` whenever `show` finds a frame that is new.

    Args:
        node: of its publishers.
        walker: who is seen.
        frames: of a window.
        repeat: the walk begins anew after its end.
        seed: of cell, fading and noise.
    """

    def __init__(self, node: Node, walker: Walker, *, frames: int, repeat: bool, seed: int) -> None:
        recorder = Recorder(RadarScene(), np.random.default_rng(seed))
        self._visit = record_visit(recorder, walker, np.random.default_rng(seed + 1))
        self._frames, self._repeat, self._newest = frames, repeat, -1
        geometry = advertise(node, String, "radar/geometry", LATCHED)
        background = advertise(node, Float32MultiArray, "radar/background", LATCHED)
        self._echoes = advertise(node, Float32MultiArray, "radar/echo", SENSOR)
        geometry.publish(String(data=geometry_of(recorder.scene, frames).to_json()))
        background.publish(echo_message(self._visit.background, WINDOW[1:]))

    def show(self, seconds: float) -> None:
        """What there is to see `seconds` after the walk began."""
        newest = int(seconds / self._visit.period_s)
        if newest != self._newest:
            self._newest = newest
            self._echoes.publish(echo_message(self._visit.window(seconds, self._frames, repeat=self._repeat)))
