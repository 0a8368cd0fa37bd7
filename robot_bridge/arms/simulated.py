"""SimulatedArm: the arm of an `ArmWorld`. Time passes in it only by commands, one period each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.control.clock import ManualClock
from robot_bridge.control.limits import ArmLimits, panda_limits
from sim_envs.arm.world import ArmWorld, SimulationFault


class SimulatedArm:
    """Drives a world whose controller is `joint_position`. See `robot_bridge.arms.base.Arm`.

    Args:
        world: the world; whoever made it resets it.
        limits: the arm's limits; the Panda's published ones by default.

    Attributes:
        clock: simulated time, moved on by every command; it never goes back, also when the world is reset.

    Raises:
        ValueError: the limits' names are not the world's.
    """

    def __init__(self, world: ArmWorld, limits: ArmLimits | None = None) -> None:
        self.world = world
        self.clock = ManualClock()
        self.limits = limits or panda_limits()
        self.joint_names = (*world.joint_names, world.gripper_name)
        if self.limits.names != self.joint_names:
            raise ValueError(f"limits are of {self.limits.names}, valid: {self.joint_names}")

    def connect(self) -> None:
        """Nothing to open."""

    def read(self) -> ArmState:
        """See `Arm.read`; the stamp is simulated time."""
        reading = self.world.state()
        return ArmState(
            stamp_ns=self.clock.now_ns,
            names=self.joint_names,
            positions=np.append(reading.joint_pos, reading.gripper_pos),
            velocities=np.append(reading.joint_vel, reading.gripper_vel),
            ee_pos=reading.eef_pos,
            ee_quat=reading.eef_quat,
        )

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """Sets the servos' target and lets `period_s` of physics pass.

        Raises:
            ArmLost: the physics diverged.
        """
        self.world.set_joint_target(positions[:-1], float(positions[-1]))
        try:
            self.world.advance(round(period_s / self.world.model.opt.timestep))
        except SimulationFault as fault:
            raise ArmLost(str(fault)) from fault
        self.clock.advance(period_s)

    def stop(self) -> None:
        """The servos hold their last target by themselves."""

    def close(self) -> None:
        """Nothing to close."""
