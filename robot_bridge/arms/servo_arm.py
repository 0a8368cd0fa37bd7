"""ServoArm: an arm of bus servos behind the `Arm` protocol; the drivers of the two makers differ in `ServoFamily` and bus."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Gripper
from rl_core.errors import ArmstackError
from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.arms.servo_bus import ServoBus
from robot_bridge.arms.servo_calibration import Calibration
from robot_bridge.arms.servo_family import ServoFamily
from robot_bridge.arms.servo_model import ServoArmModel, load_servo_arm
from robot_bridge.arms.servo_setup import set_up
from robot_bridge.control.clock import Clock, SystemClock
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import ArmLimits
from sim_envs.servo_bus.tables import TICKS

_SILENT_NS = 250_000_000  # a servo that was not heard for this long is lost
_HEALTH_READS = 10  # every tenth read asks for torque and watchdog, too
_JUMP_MARGIN = 1.5  # on the servo's speed: it is not exact, and two reads are not taken at the same phase of a period
_JUMP_FLOOR = 0.02  # share of the range: encoder noise and backlash
_WATCHDOG_TRIPPED = 255


class ServoArm:
    """See `robot_bridge.arms.base.Arm`.

    A reply that is lost or damaged leaves the joint at what was read last, and the state's stamp is that of its oldest joint. A
    position further away than its servo can have turned since is dropped as stale.

    A child says which bus and family of servos it is for.

    Args:
        model: an arm model's name or a YAML file like theirs.
        port: serial port.
        calibration: the file that `armstack calibrate` wrote.
        reply_timeout_s: a read waits no longer for replies.
        clock: of stamps and ages; the system's by default.

    Raises:
        ArmstackError: the model, the port's name or the calibration cannot be used.

    Attributes:
        model: the arm.
        bus: closed until `connect`.
        counts: `stale` positions dropped; the bus has its own.
        description: MJCF text of the arm alone; None where the model has no links: `ee_pos` is then (0, 0, 0), `ee_quat` the identity.
    """

    bus_type: ClassVar[type[ServoBus]]
    family: ClassVar[ServoFamily]

    def __init__(
        self, *, model: str | Path, port: str, calibration: str | Path, reply_timeout_s: float = 0.008, clock: Clock | None = None
    ) -> None:
        self.model = load_servo_arm(model)
        if not port:
            raise ArmstackError("port '', valid: the serial port of the arm, such as /dev/ttyACM0")
        if not str(calibration):
            raise ArmstackError("calibration '', valid: the file that `armstack calibrate` wrote")
        self.bus = self.bus_type(port, self.model.baudrate, reply_timeout_s)
        self._calibration = Calibration.load(Path(calibration), self.model)
        self.joint_names = self.model.names
        self.limits = servo_limits(self.model, self._calibration)
        self.description = self.model.mjcf
        self._kinematics = Kinematics(self.model.mjcf) if self.model.mjcf else None
        self.counts: Counter[str] = Counter()
        self._calibrations = [self._calibration.joints[name] for name in self.model.names]
        self._clock = clock or SystemClock()
        self._low, self._high = np.array(self.limits.position_min), np.array(self.limits.position_max)
        self._units = [joint.servo.velocity_unit for joint in self.model.joints]
        self._registers = self.model.joints[0].servo.registers  # the same for all servos of a maker
        self._ids = [joint.id for joint in self.model.joints]
        self._positions = np.zeros(len(self._ids))
        self._velocities = np.zeros(len(self._ids))
        self._goals = np.zeros(len(self._ids))
        self._heard_ns = np.zeros(len(self._ids), dtype=np.int64)
        self._stamps_ns = np.zeros(len(self._ids), dtype=np.int64)
        self._turns = [0] * len(self._ids)
        self._reads = 0
        self._by_hand = False

    # -- Arm ------------------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Opens the port, checks every servo and the calibration, and holds the arm where it stands.

        Raises:
            ArmLost: says what to check: port, missing servo and those that answered, wrong model, another calibration, a servo with
                an error.
        """
        self.bus.open()
        try:
            raw = set_up(self.bus, self.family, self.model, self._calibration)
        except BaseException:
            self.bus.close()
            raise
        for i, (ticks, calibration) in enumerate(zip(raw, self._calibrations, strict=True)):
            self._turns[i] = calibration.turns(ticks)  # a servo that counts on beyond a turn does so from when its power came on
            self._positions[i] = self._goals[i] = calibration.position(ticks - TICKS * self._turns[i])
        self._velocities[:] = 0.0
        self._heard_ns[:] = self._clock.monotonic_ns()
        self._stamps_ns[:] = self._clock.source_ns()
        self._reads = 0
        self._by_hand = False

    def let_go(self) -> None:
        """Torque goes off: from now on the arm is moved by hand and only read, as a leader, until it is connected anew.

        Raises:
            ArmLost: a servo does not answer.
        """
        self._by_hand = True
        for id in self._ids:
            if self.family.watchdog:
                self.bus.write(id, self._registers[self.family.watchdog], 0)
            self.bus.write(id, self._registers["Torque_Enable"], 0)

    def read(self) -> ArmState:
        """See `Arm.read`; one sync read, every tenth time two.

        Raises:
            ArmLost: the port is gone, a servo has been silent for 250 ms, has an error, has lost its torque, or its watchdog tripped.
        """
        first, last = (self._registers[name] for name in self.family.state)
        now_ns, stamp_ns = self._clock.monotonic_ns(), self._clock.source_ns()
        replies = self.bus.sync_read(self._ids, first.address, last.address + last.size - first.address)
        for i, id in enumerate(self._ids):
            if id in replies:
                if replies[id].error:
                    raise ArmLost(self._error(id, replies[id].error))
                self._take(i, replies[id].data, now_ns, stamp_ns)
        silent = [self._servo(id) for id, heard_ns in zip(self._ids, self._heard_ns, strict=True) if now_ns - heard_ns > _SILENT_NS]
        if silent:
            raise ArmLost(f"no usable answer of {', '.join(silent)} for {_SILENT_NS / 1e9} s; check power and cable")
        if self._reads % _HEALTH_READS == 0:
            self._check_health()
        self._reads += 1
        pos, quat = self._kinematics.fk(self._positions[:-1]) if self._kinematics else (np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))
        return ArmState(
            stamp_ns=int(self._stamps_ns.min()),
            names=self.joint_names,
            positions=self._positions.copy(),
            velocities=self._velocities.copy(),
            ee_pos=pos,
            ee_quat=quat,
        )

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """See `Arm.command`: one sync write to all servos, the gripper's among them; it is not acknowledged.

        Raises:
            ArmLost: the port is gone, or a target is not finite or outside the limits; nothing was sent then.
        """
        outside = ~((positions >= self._low - 1e-9) & (positions <= self._high + 1e-9))  # NaN is outside, too
        if outside.any():
            i = int(np.flatnonzero(outside)[0])
            raise ArmLost(
                f"{self.joint_names[i]}: target {positions[i]}, valid: {self._low[i]:.4f} .. {self._high[i]:.4f}; nothing was sent"
            )
        self._send(positions)

    def stop(self) -> None:
        """Every joint holds where it was last measured, torque on; the gripper keeps its target, so that it drops nothing."""
        self._send(np.append(self._positions[:-1], self._goals[-1]))

    def close(self) -> None:
        """Closes the port; the servos hold."""
        self.bus.close()

    # -- details --------------------------------------------------------------------------------------------------------

    def _servo(self, id: int) -> str:
        return f"servo {id} ({self.model.joint_of(id)})"

    def _send(self, positions: NDArray[np.float64]) -> None:
        if self._by_hand:
            raise ArmLost("the arm is moved by hand (let_go) and takes no target until it is connected anew")
        values = zip(self._ids, self._calibrations, self._turns, positions.tolist(), strict=True)
        goals = {id: calibration.ticks(position) + turns * TICKS for id, calibration, turns, position in values}
        self.bus.sync_write(self._registers["Goal_Position"], goals)
        self._goals = positions.copy()

    def _take(self, i: int, data: bytes, now_ns: int, stamp_ns: int) -> None:
        position, velocity = (self._number(name, self.family.state[0], data) for name in ("Present_Position", "Present_Velocity"))
        calibration, joint = self._calibrations[i], self.model.joints[i]
        measured = calibration.position(position - TICKS * self._turns[i])
        since_s = (now_ns - int(self._heard_ns[i])) / 1e9
        floor = _JUMP_FLOOR * (joint.range_max - joint.range_min)
        fastest = max(joint.velocity, calibration.scale * joint.servo.speed)
        if abs(measured - self._positions[i]) > floor + _JUMP_MARGIN * fastest * since_s:
            self.counts["stale"] += 1
            return
        self._positions[i] = measured
        self._velocities[i] = calibration.direction * calibration.scale * velocity * self._units[i]
        self._heard_ns[i], self._stamps_ns[i] = now_ns, stamp_ns

    def _number(self, name: str, first: str, data: bytes) -> int:
        register = self._registers[name]
        start = register.address - self._registers[first].address
        return register.decode(data[start : start + register.size])

    def _error(self, id: int, bits: int) -> str:
        if self.family.error_register is not None:
            bits = self.bus.read(id, self._registers[self.family.error_register])
        return f"{self._servo(id)}: {self.family.meaning(bits)}; relieve the arm, switch its power off and on, then rearm"

    def _check_health(self) -> None:
        first, last = (self._registers[name] for name in self.family.health)
        replies = self.bus.sync_read(list(self.model.servos), first.address, last.address + last.size - first.address)
        for id, reply in replies.items():
            if reply.error:
                raise ArmLost(self._error(id, reply.error))
            if not (self._by_hand or self._number("Torque_Enable", self.family.health[0], reply.data)):
                raise ArmLost(f"{self._servo(id)}: torque is off; the arm holds again where it stands when it is connected anew")
            watchdog = self.family.watchdog
            if watchdog and self._number(watchdog, self.family.health[0], reply.data) == _WATCHDOG_TRIPPED:
                raise ArmLost(f"{self._servo(id)}: its bus watchdog stopped it, because the bus was silent")


def servo_limits(model: ServoArmModel, calibration: Calibration) -> ArmLimits:
    """Limits of one copy of an arm: its calibrated range within the model's, and the model's velocities.

    Nobody publishes accelerations and jerks of these servos; they are ours: full speed within a third of a second.
    """
    joints = [(joint, calibration.joints[joint.name]) for joint in model.joints]
    velocity = [joint.velocity for joint in model.joints]
    gripper = model.joints[-1]
    low, high = np.array(model.workspace_min), np.array(model.workspace_max)
    return ArmLimits(
        names=model.names,
        position_min=tuple(max(joint.range_min, found.range_min) for joint, found in joints),
        position_max=tuple(min(joint.range_max, found.range_max) for joint, found in joints),
        velocity=tuple(velocity),
        acceleration=tuple(3 * v for v in velocity),
        jerk=tuple(1500 * v for v in velocity),
        stop_acceleration=tuple(6 * v for v in velocity),
        stop_jerk=tuple(3000 * v for v in velocity),
        max_lead=(*(1.0 for _ in model.joints[:-1]), gripper.range_max),
        workspace_min=tuple(low.tolist()),
        workspace_max=tuple(high.tolist()),
        max_orientation_step=1.0,
        gripper=Gripper(name=gripper.name, open=gripper.range_max, closed=0.0, unit=model.gripper_unit),
    )
