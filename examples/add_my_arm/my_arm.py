"""My arm's driver."""

import time
from pathlib import Path

import numpy as np

from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.arms.description import describe_arm

NOT_MEASURED = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])  # the arm node computes the end effector from the joints


class MyArm:
    when_process_dies = "keeps its last target: no watchdog"

    def __init__(self, *, host: str, description: str = str(Path(__file__).with_name("my_arm.yaml"))) -> None:
        described = describe_arm(description)
        self.limits, self.description, self.joint_names = described.limits, described.mjcf, described.limits.names
        self.host, self.controller = host, None

    def connect(self) -> None:
        self.controller = Controller(self.host)

    def read(self) -> ArmState:
        if self.controller is None:
            raise ArmLost(f"my arm at {self.host}: not connected")
        q, dq, (pos, quat) = *self.controller.measured(), NOT_MEASURED
        return ArmState(stamp_ns=time.time_ns(), names=self.joint_names, positions=q, velocities=dq, ee_pos=pos, ee_quat=quat)

    def command(self, positions: np.ndarray, period_s: float) -> None:
        self.controller.move_to(positions)

    def stop(self) -> None:
        self.controller.move_to(self.controller.measured()[0])

    def close(self) -> None:
        self.controller = None


class Controller:
    """In place of the vendor's library: joints that are where they were sent."""

    def __init__(self, host: str) -> None:
        self.positions = np.array([0.0, 0.3, 1.2, 0.0, 0.9, 0.0, 0.06])

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        return self.positions.copy(), np.zeros(7)

    def move_to(self, positions: np.ndarray) -> None:
        self.positions = positions.copy()
