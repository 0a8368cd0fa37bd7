"""What an arm node says: state of the arm and the world, what went to the driver, why the arm does not move."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, WrenchStamped
from numpy.typing import NDArray
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.arms.base import ArmState
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.loop import LoopStatus, Period
from robot_bridge.control.names import order_by_name
from robot_bridge.nodes.latency import Latency
from robot_bridge.nodes.messages import diagnostic, joint_state, pose, trajectory
from robot_bridge.nodes.qos import EVENTS, LATCHED, SENSOR, STREAM, advertise
from robot_bridge.nodes.simulated_world import WorldArm
from robot_bridge.nodes.stamps import to_time

_OK, _WARN, _ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
_LEVELS = {"moving": _OK, "holding": _WARN, "stopped": _ERROR, "fault": _ERROR}

Poses = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


class ArmPublisher:
    """Publishers of the arm node, all made at once, so that a recorder finds them before the first message.

    Frames carry the node's namespace, so that two arms in one graph are told apart.

    Args:
        node: the arm node.
        objects: names of the objects whose poses are known.
        world: the simulated one, with positions to render and rewards; None for a real arm.
        sim_time: stamps are simulated time, told on /clock.
        wrench: the arm measures it.
    """

    def __init__(
        self, node: Node, *, objects: Iterable[str] = (), world: WorldArm | None = None, sim_time: bool = False, wrench: bool = False
    ) -> None:
        prefix = node.get_namespace().strip("/")
        self._frame = f"{prefix}/base" if prefix else "base"
        self._joints = advertise(node, JointState, "joint_states", STREAM)
        self._pose = advertise(node, PoseStamped, "ee_pose", STREAM)
        self._wrench = advertise(node, WrenchStamped, "wrench", STREAM) if wrench else None
        self._applied = advertise(node, JointTrajectory, "arm/applied", STREAM)
        self._target = advertise(node, JointTrajectory, "arm/target", STREAM)
        self._target_pose = advertise(node, PoseStamped, "arm/target_pose", STREAM)
        self._status = advertise(node, DiagnosticArray, "arm/status", STREAM)
        self._contract = advertise(node, String, "arm/contract", LATCHED)
        self._description = advertise(node, String, "robot_description", LATCHED)
        self._authority = advertise(node, String, "arm/authority", EVENTS)
        self._diagnostics = advertise(node, DiagnosticArray, "diagnostics", STREAM)
        self._objects = {name: advertise(node, PoseStamped, f"objects/{name}/pose", STREAM) for name in objects}
        self._episode = advertise(node, String, "episode", EVENTS)
        self._world = world
        self._qpos = advertise(node, JointState, "sim/qpos", SENSOR) if world else None
        self._reward = advertise(node, JointState, "sim/reward", STREAM) if world else None
        self._disturbance = advertise(node, WrenchStamped, "sim/disturbance", STREAM) if world else None
        self._clock = advertise(node, ClockMessage, "/clock", STREAM) if sim_time else None
        self._kinematics: Kinematics | None = None
        self._said_target: NDArray[np.float64] | None = None
        self._said_authority: str | None = None
        self._said_episode: tuple[Any, ...] | None = None

    def contract(self, offer: str, description: str) -> None:
        """`arm/contract` and `robot_description`, once; `description` is also what poses of targets are worked out with."""
        self._kinematics = Kinematics(description)
        self._contract.publish(String(data=offer))
        self._description.publish(String(data=description))

    def clock(self, now_ns: int) -> None:
        """`/clock`, where stamps are simulated time."""
        if self._clock is not None:
            self._clock.publish(ClockMessage(clock=to_time(now_ns)))

    def state(self, state: ArmState, objects: Poses) -> None:
        """Objects, end effector, then joints, all with the reading's stamp; a reading that is not finite is a fault and not published."""
        if not (np.isfinite(state.positions).all() and np.isfinite(state.ee_pos).all()):
            return
        for name, publisher in self._objects.items():
            publisher.publish(pose(*objects[name], frame=self._frame, stamp_ns=state.stamp_ns))
        self._pose.publish(pose(state.ee_pos, state.ee_quat, frame=self._frame, stamp_ns=state.stamp_ns))
        if self._wrench is not None and state.wrench is not None:
            self._wrench.publish(self._wrench_message(state.wrench, state.stamp_ns, self._frame.removesuffix("base") + "ee"))
        self._joints.publish(joint_state(state.names, state.positions, state.velocities, state.stamp_ns))

    @staticmethod
    def _wrench_message(wrench: NDArray[np.float64], stamp_ns: int, frame: str) -> WrenchStamped:
        message = WrenchStamped()
        message.header.stamp = to_time(stamp_ns)
        message.header.frame_id = frame
        force, torque = message.wrench.force, message.wrench.torque
        force.x, force.y, force.z, torque.x, torque.y, torque.z = (float(value) for value in wrench)
        return message

    def applied(self, periods: Sequence[Period], names: Sequence[str], period_s: float) -> None:
        """`arm/applied`, one message a control period, and `arm/target`, `arm/target_pose` where the target is another one."""
        for period in periods:
            point = period.output.positions[None]
            self._applied.publish(trajectory(names, point, np.array([period_s]), stamp_ns=period.stamp_ns, source="filter"))
            target = period.output.target
            if self._said_target is None or not np.array_equal(target, self._said_target):
                self._said_target = target
                self._publish_target(target, names, period.stamp_ns)

    def _publish_target(self, target: NDArray[np.float64], names: Sequence[str], stamp_ns: int) -> None:
        self._target.publish(trajectory(names, target[None], np.zeros(1), stamp_ns=stamp_ns, source="filter"))
        if self._kinematics is not None:
            position, quaternion = self._kinematics.fk(target[order_by_name(names, self._kinematics.joint_names, allow_more=True)])
            self._target_pose.publish(pose(position, quaternion, frame=self._frame, stamp_ns=stamp_ns))

    def status(self, status: LoopStatus, stamp_ns: int) -> None:
        """`arm/status`, and `arm/authority` where it changed."""
        refusal = status.last_refusal
        values = {
            "state": status.state,
            "reason": status.reason,
            "accepts": json.dumps(status.accepts),
            "holds": json.dumps(dict(status.holds)),
            "counts": json.dumps(dict(status.counts)),
            "last_refusal": f"{refusal.reason}: {refusal.detail}" if refusal else "",
            "authority": status.authority.source if status.authority else "",
            "sender": status.authority.sender or "" if status.authority else "",
            "speed_scale": f"{status.speed_scale:g}",
            "rearms": status.rearms,
        }
        entry = diagnostic("arm", values, level=_LEVELS[status.state], message=status.reason or status.state)
        message = DiagnosticArray(status=[entry])
        message.header.stamp = to_time(stamp_ns)
        self._status.publish(message)
        authority = json.dumps({"source": values["authority"], "sender": values["sender"], "released": status.released})
        if authority != self._said_authority:
            self._said_authority = authority
            self._authority.publish(String(data=authority))

    def episode(self, episode: Mapping[str, Any]) -> None:
        """`episode`, where index, phase or success changed; `sim/reward` and `sim/disturbance` of what passed since the last call."""
        self._publish_rewards()
        self._publish_forces()
        said = (episode["index"], episode["phase"], episode["success"])
        if said == self._said_episode:
            return
        self._said_episode = said
        self._said_target = None  # an episode says it anew: a recorder keeps episodes apart
        self._episode.publish(String(data=json.dumps(dict(episode))))

    def _publish_rewards(self) -> None:
        while self._world is not None and self._reward is not None and self._world.rewards:
            stamp_ns, reward = self._world.rewards.popleft()
            self._reward.publish(joint_state(["reward"], np.array([reward]), np.empty(0), stamp_ns))

    def _publish_forces(self) -> None:
        while self._world is not None and self._disturbance is not None and self._world.forces:
            stamp_ns, force = self._world.forces.popleft()
            self._disturbance.publish(self._wrench_message(np.append(force, np.zeros(3)), stamp_ns, self._frame))

    def qpos(self, qpos: NDArray[np.float64], stamp_ns: int) -> None:
        """`sim/qpos`: MuJoCo's positions for renderers; a JointState without names."""
        message = JointState(position=qpos.tolist())
        message.header.stamp = to_time(stamp_ns)
        if self._qpos is not None:
            self._qpos.publish(message)

    def diagnostics(self, latency: Latency, now_ns: int) -> None:
        """`diagnostics`: p50, p95 and p99 of the filter, in milliseconds."""
        values = {f"{stage}_{key}_ms": value for stage, figures in latency.milliseconds().items() for key, value in figures.items()}
        values |= {"periods": latency.periods, "missed": latency.missed}
        message = DiagnosticArray(status=[diagnostic("arm latency", values)])
        message.header.stamp = to_time(now_ns)
        self._diagnostics.publish(message)
