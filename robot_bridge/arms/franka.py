"""FrankaArm: Franka Emika Panda and Franka Research 3 through franky (libfranka)."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from math import pi
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Gripper
from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.arms.blocking_gripper import BlockingGripper
from robot_bridge.arms.chain import Link, chain_mjcf
from robot_bridge.control.limits import ArmLimits, panda_limits

logger = logging.getLogger(__name__)

Hardware = Literal["panda", "fr3"]

OPEN_M = 0.08
STIFFNESS = (600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0)
"""N m/rad, of libfranka's own joint impedance example; damping is critical."""
_GRIPPER_SPEED = 0.1  # m/s, Franka Hand datasheet
_GRASP_FORCE = 40.0  # N
_GRIPPER_STEP = 0.002  # m: a smaller change on the way is not worth a call that blocks
_GRIPPER_STILL = 1e-5  # m a period: the last of an approach that only ends in the limit
_GRIPPER_REST = 0.0002  # m: likewise once the target rests
# (xyz, roll) of each joint in the one before it: Franka's published Denavit-Hartenberg parameters (frankaemika/docs,
# source/control_parameters.rst), the same for both arms (mujoco_menagerie, franka_fr3/fr3.xml).
_GEOMETRY = (
    ((0.0, 0.0, 0.333), 0.0),
    ((0.0, 0.0, 0.0), -pi / 2),
    ((0.0, -0.316, 0.0), pi / 2),
    ((0.0825, 0.0, 0.0), pi / 2),
    ((-0.0825, 0.384, 0.0), -pi / 2),
    ((0.0, 0.0, 0.0), pi / 2),
    ((0.088, 0.0, 0.0), pi / 2),
)


def franka_limits(hardware: Hardware) -> ArmLimits:
    """Franka's published limits ("Robot and interface specifications"); motion on command takes half of acceleration and jerk.

    Panda: franka_ros, franka_description/robots/panda/joint_limits.yaml, and libfranka 0.9, rate_limiting.h. FR3: the specification's
    ranges; newer descriptions (mujoco_menagerie, franka_fr3) state up to 0.16 rad more at each end, which are not used; acceleration 10
    and jerk 5000 of libfranka 0.10 and later, rate_limiting.h. Its velocity limits are the ones far from the ends of its joints; its
    controller lowers them near the ends.
    """
    if hardware == "panda":
        return panda_limits()
    return ArmLimits(
        names=(*(f"fr3_joint{i}" for i in range(1, 8)), "gripper"),
        position_min=(-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159, 0.0),
        position_max=(2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159, OPEN_M),
        velocity=(2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26, 0.1),
        acceleration=(5.0,) * 7 + (2.0,),
        jerk=(2500.0,) * 7 + (400.0,),
        stop_acceleration=(10.0,) * 7 + (4.0,),
        stop_jerk=(5000.0,) * 7 + (2000.0,),
        max_lead=(1.2,) * 7 + (0.1,),
        workspace_min=(0.1, -0.6, -0.105),
        workspace_max=(0.85, 0.6, 0.9),
        max_orientation_step=1.0,
        max_force=40.0,
        max_torque=12.0,
        gripper=Gripper(name="gripper", open=OPEN_M, closed=0.0),
    )


class FrankaArm:
    """Streams joint targets to franky's joint impedance controller, which runs in this process at 1 kHz. See `Arm`.

    The robot stops by itself when this process dies: libfranka's controller misses its packets. A reflex ends the control; it is
    cleared by `recover`, which is called by an operator and never by this class.

    Args:
        host: address of the robot.
        hardware: `panda` or `fr3`: names and limits.
        realtime: demand a real-time kernel, as Franka does for its robots; a simulator needs none.
        hand: a Franka Hand is mounted; without it the gripper stays where it is said to be, open.
    """

    def __init__(self, *, host: str, hardware: Hardware = "panda", realtime: bool = False, hand: bool = True) -> None:
        self.limits = franka_limits(hardware)
        self.joint_names = self.limits.names
        self.description = chain_mjcf(
            [
                Link(name=name, xyz=xyz, rpy=(roll, 0.0, 0.0), low=low, high=high)
                for name, (xyz, roll), low, high in zip(
                    self.joint_names, _GEOMETRY, self.limits.position_min, self.limits.position_max, strict=False
                )
            ],
            tool_xyz=(0.0, 0.0, 0.204),  # flange 0.107, and 0.097 to between the fingertips
            tool_rpy=(0.0, 0.0, -pi / 4),
        )
        self._host = host
        self._realtime = realtime
        self._with_hand = hand
        self._connecting = threading.Lock()  # the robot takes one client; an operator's recovery comes on another thread
        self._robot: Any = None
        self._tracker: Any = None
        self._fingers: _Fingers | None = None
        self._last: NDArray[np.float64] | None = None  # target (7,)
        self._velocity = np.zeros(7)
        self._rested = True  # a target at rest was seen since `stop`: braking that still comes in starts nothing
        self._stop_acceleration = np.array(self.limits.stop_acceleration[:-1])

    def connect(self) -> None:
        """Connects to arm and hand.

        Raises:
            ArmLost: no answer, or the robot is in an error that an operator has to `recover`.
        """
        import franky

        with self._connecting:
            self._connect(franky)

    def recover(self) -> None:
        """Clears a reflex or error; for an operator who has looked at the arm.

        Raises:
            ArmLost: not connected, or the error stays.
        """
        with self._connecting:
            if not self._connected().recover_from_errors():
                raise ArmLost(f"franka at {self._host}: {self._errors()} stays after recovery")

    def read(self) -> ArmState:
        """See `Arm.read`."""
        robot = self._connected()
        if self._fingers is not None and self._fingers.lost is not None:
            raise ArmLost(f"franka's hand at {self._host}: {self._fingers.lost}")
        try:
            state = robot.state
        except Exception as error:
            raise ArmLost(f"franka at {self._host}: {error}") from error
        width, speed = (self._fingers.width, self._fingers.speed) if self._fingers else (OPEN_M, 0.0)
        return ArmState(
            stamp_ns=time.time_ns(),
            names=self.joint_names,
            positions=np.append(state.q, width),
            velocities=np.append(state.dq, speed),
            ee_pos=state.O_T_EE.translation.ravel(),
            ee_quat=state.O_T_EE.quaternion.ravel(),
            wrench=np.array(state.K_F_ext_hat_K).ravel(),
        )

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """See `Arm.command`. The controller starts at the measured pose, with the first target that moves.

        Raises:
            ArmLost: not connected, or the controller has ended (a reflex, a lost packet).
        """
        robot, target = self._connected(), positions[:-1]
        if self._fingers is not None:
            self._fingers.command(float(positions[-1]))
        last, self._last = self._last, target.copy()
        still = last is not None and np.array_equal(target, last)
        tracker = self._tracker
        if last is None:
            return
        if tracker is None:
            self._rested |= still
            if still or not self._rested:
                return
            tracker = self._start(robot)
        if not tracker.is_running:
            self._tracker = None
            raise ArmLost(f"franka at {self._host}: the control has ended: {self._why_ended()}")
        # The filter's output starts anew at the measured pose: that step is no velocity.
        change = self._stop_acceleration * period_s
        self._velocity = np.clip((target - last) / period_s, self._velocity - change, self._velocity + change)
        tracker.set_target(target, dq=self._velocity)

    def stop(self) -> None:
        """Brakes by franky's torque stop and leaves the arm to the robot's own position hold; the hand stops too."""
        tracker, self._tracker, self._rested = self._tracker, None, False
        if self._fingers is not None:
            self._fingers.stop()
        if tracker is not None:
            tracker.stop()

    def close(self) -> None:
        """See `Arm.close`."""
        self._end()
        if self._fingers is not None:
            self._fingers.close()
            self._fingers = None

    def _connect(self, franky: Any) -> None:
        self._end()
        if self._fingers is not None and self._fingers.lost is not None:
            self._fingers.close()
            self._fingers = None
        realtime = franky.RealtimeConfig.Enforce if self._realtime else franky.RealtimeConfig.Ignore
        try:
            self._robot = franky.Robot(self._host, realtime_config=realtime)
            if self._with_hand and self._fingers is None:
                self._fingers = _Fingers(franky.Gripper(self._host))
            broken = self._robot.has_errors
        except Exception as error:
            raise ArmLost(f"franka at {self._host}: {error}; is FCI activated, the brakes open, and no other client connected?") from error
        self._rested = True
        if broken:
            raise ArmLost(f"franka at {self._host}: {self._errors()}; look at the arm, then call arm/recover and arm/rearm")

    def _start(self, robot: Any) -> Any:
        import franky

        try:
            self._tracker = franky.JointImpedanceTracker(robot, stiffness=STIFFNESS)
            self._velocity = np.zeros(7)
        except Exception as error:
            raise ArmLost(f"franka at {self._host}: the controller does not start: {error}") from error
        return self._tracker

    def _end(self) -> None:
        with contextlib.suppress(Exception):  # of a connection that is given up
            self.stop()
        self._robot = None
        self._last = None

    def _connected(self) -> Any:
        if self._robot is None:
            raise ArmLost(f"franka at {self._host}: not connected")
        return self._robot

    def _errors(self) -> str:
        return str(self._robot.state.current_errors)

    def _why_ended(self) -> str:
        try:
            self._robot.poll_motion()
        except Exception as error:
            return str(error)
        return self._errors()


class _Fingers:
    """The Franka Hand: its moves block until the fingers stand still, and its state comes at its own pace; both off the arm's path.

    A move that fails is logged; `lost` says why the hand does not answer any more.
    """

    def __init__(self, gripper: Any) -> None:
        self._gripper = gripper
        self.lost: str | None = None
        self.width, self.speed = float(gripper.width), 0.0
        self._mover = BlockingGripper(self._move)
        self._sent = self._asked = self.width
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name="gripper-state", daemon=True)
        self._reader.start()

    def command(self, opening: float) -> None:
        """Returns at once."""
        at_rest, self._asked = abs(opening - self._asked) < _GRIPPER_STILL, opening
        if abs(opening - self._sent) >= (_GRIPPER_REST if at_rest else _GRIPPER_STEP):
            self._sent = opening
            self._mover.command(opening)

    def stop(self) -> None:
        self._gripper.stop_async()

    def close(self) -> None:
        self._closed.set()
        with contextlib.suppress(Exception):  # a move that blocks would keep the connection
            self._gripper.stop()
        self._mover.close()
        self._reader.join(1.0)
        self._gripper = None  # the hand takes one connection; it ends with the object

    def _move(self, opening: float) -> None:
        try:
            if opening < self.width:  # closing ends at an object, which is then held
                self._gripper.grasp(opening, _GRIPPER_SPEED, _GRASP_FORCE, OPEN_M, OPEN_M)
            else:
                self._gripper.move(opening, _GRIPPER_SPEED)
        except Exception as error:
            logger.warning("franka's hand did not move to %.3f m: %s", opening, error)

    def _read(self) -> None:
        before = time.monotonic()
        while not self._closed.wait(0.02):
            try:
                width, now = float(self._gripper.width), time.monotonic()
            except Exception as error:
                self.lost = str(error)
                return
            self.speed = (width - self.width) / (now - before)
            self.width, before = width, now
