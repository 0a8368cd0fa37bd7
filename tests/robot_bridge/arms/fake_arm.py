"""An arm that follows perfectly, whose calls can be made to block or fail."""

from __future__ import annotations

import threading

import numpy as np

from robot_bridge.arms.base import ArmLost, ArmState
from tests.robot_bridge.control.rig import bench_limits, planar


class FakeArm:
    def __init__(self) -> None:
        self.limits = bench_limits()
        self.joint_names = self.limits.names
        self.position = np.array([0.0, 0.0, 0.04])
        self.commands: list[np.ndarray] = []
        self.stopped = threading.Event()
        self.free = threading.Event()
        self.free.set()
        self.blocked = threading.Event()
        self.lost = False
        self.connects = 0

    def connect(self) -> None:
        self.connects += 1
        self._check()

    def read(self) -> ArmState:
        self._check()
        position, quaternion = planar(self.position[:2])
        return ArmState(
            stamp_ns=0,
            names=self.joint_names,
            positions=self.position.copy(),
            velocities=np.zeros(3),
            ee_pos=position,
            ee_quat=quaternion,
        )

    def command(self, positions: np.ndarray, period_s: float) -> None:
        self._check()
        if not self.free.is_set():
            self.blocked.set()
            self.free.wait(10.0)
            self.blocked.clear()
        self.commands.append(positions)
        self.position = positions.copy()

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self.lost:
            raise ArmLost("cable out")
