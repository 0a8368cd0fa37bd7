"""An emulated servo arm on a bench: servos mounted at odd angles, its calibration, and a clock by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from robot_bridge.arms.base import ArmState
from robot_bridge.arms.calibration_sweep import Sweep
from robot_bridge.arms.dynamixel import DynamixelArm
from robot_bridge.arms.feetech import FeetechArm
from robot_bridge.arms.servo_arm import ServoArm
from robot_bridge.arms.servo_calibration import Calibration, calibrate
from robot_bridge.arms.servo_model import ServoArmModel, ServoJoint, load_servo_arm
from robot_bridge.control.clock import Clock, ManualClock
from sim_envs.servo_bus.bus import EmulatedBus
from sim_envs.servo_bus.faults import Faults
from sim_envs.servo_bus.servo import Servo

TICKS_PER_RAD = 4096 / math.tau
GRIPPER_WAY = 800  # ticks from closed to open
PATIENCE_S = 3.0  # for replies: a busy machine may not run the emulator's thread for a while


def zeros(model: ServoArmModel) -> dict[str, int]:
    """Encoder ticks at zero: some close to the wrap, so that a joint's range passes 4095 -> 0."""
    return {joint.name: (2048, 4000, 100)[i % 3] for i, joint in enumerate(model.joints)}


def way(model: ServoArmModel, name: str, gripper_sense: int = 1) -> list[int]:
    """Ticks relative to zero while a joint is moved through its range, beginning at zero."""
    joint = next(joint for joint in model.joints if joint.name == name)
    if joint is model.joints[-1]:
        ends = [0, gripper_sense * GRIPPER_WAY, 0]
    else:
        low, high = (joint.direction * end * TICKS_PER_RAD for end in (joint.range_min, joint.range_max))
        ends = [0, round(low), round(high), 0]
    samples = [np.linspace(a, b, 60)[:-1] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return [round(ticks) for ticks in np.concatenate(samples)]


def sweep(model: ServoArmModel, gripper_sense: int = 1) -> Sweep:
    """A whole sweep as the encoders of new servos show it."""
    positions = {name: [(zero + ticks) % 4096 for ticks in way(model, name, gripper_sense)] for name, zero in zeros(model).items()}
    return Sweep(arm=model.name, positions=positions, register_offsets=dict.fromkeys(positions, 0))


class Bench:
    """The bus (plug it in), the arm, and where its joints are. `seconds` moves time on where the clock is manual."""

    def __init__(
        self, folder: Path, arm: str, *, patience_s: float = PATIENCE_S, clock: Clock | None = None, gripper_sense: int = 1
    ) -> None:
        self.model = load_servo_arm(arm)
        self.clock = clock or ManualClock()
        self.calibration: Calibration = calibrate(self.model, sweep(self.model, gripper_sense))
        self.file = folder / "calibration.json"
        self.calibration.save(self.file)
        self.faults = Faults(seed=3)
        self.bus = EmulatedBus(self.model.servos, folder / "ttyACM0", faults=self.faults, clock=lambda: self.clock.monotonic_ns() / 1e9)
        for joint in self.model.joints:
            found = self.calibration.joints[joint.name]
            servo = self.bus.servos[joint.id]
            servo.set("Homing_Offset", found.register_offset)
            for register, value in joint.registers.items():  # set up before, when it was calibrated
                servo.set(register, value)
            servo.turn_by_hand(self.shaft(joint.name, self.middle(joint.name)) - servo.shaft)
        make = FeetechArm if self.model.protocol == "feetech" else DynamixelArm
        self.arm: ServoArm = make(model=arm, port=self.bus.port, calibration=self.file, reply_timeout_s=patience_s, clock=self.clock)

    def middle(self, name: str) -> float:
        """Where a joint stands at first."""
        joint = self.joint(name)
        return (joint.range_min + joint.range_max) / 2

    def shaft(self, name: str, position: float) -> float:
        """Ticks of the servo's shaft at a joint's position."""
        found = self.calibration.joints[name]
        shown = zeros(self.model)[name] + found.direction * position / found.scale * TICKS_PER_RAD
        return -shown if self.joint(name).registers.get("Drive_Mode") else shown

    def joint(self, name: str) -> ServoJoint:
        """The model's joint."""
        return next(joint for joint in self.model.joints if joint.name == name)

    def send(self, target: np.ndarray) -> None:
        """Commands, and waits until the servos have it: the answer to a read comes after."""
        self.arm.command(target, 0.01)
        self.arm.read()

    def servo(self, name: str) -> Servo:
        """The servo of a joint."""
        return self.bus.servos[self.calibration.joints[name].id]

    def seconds(self, seconds: float) -> None:
        """Lets time pass; nothing is on the bus meanwhile."""
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(seconds)

    def drive(self, seconds: float) -> ArmState:
        """Lets time pass, reading ten times a second."""
        for _ in range(round(seconds * 10)):
            self.seconds(0.1)
            state = self.arm.read()
        return state
