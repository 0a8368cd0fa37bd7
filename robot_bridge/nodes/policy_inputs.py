"""What a policy node or a teleoperation node has heard: a mailbox that callbacks write and the sender's own thread reads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import String
from tensordict import TensorDict

from rl_core.contract import RobotContract
from robot_bridge.arms.base import ArmState
from robot_bridge.control.any_arm import OPENING, SHARE, share_of_opening
from robot_bridge.control.names import JointNameError
from robot_bridge.control.observe import ObservationAssembler, ObservationError
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.goal_input import TOPIC, GoalInput
from robot_bridge.nodes.messages import MessageError, by_name, image_to_rgb, pose_arrays
from robot_bridge.nodes.qos import EVENTS, LATCHED, SENSOR, STREAM, subscribe
from robot_bridge.nodes.stamps import to_ns
from robot_bridge.nodes.start_gate import StartGate
from robot_bridge.nodes.task_input import TOPIC as TASK_TOPIC
from robot_bridge.nodes.task_input import TaskInput

JOINTS = {"joint_pos": "position", "joint_vel": "velocity", "gripper_pos": "position"}
"""Channel -> field of `joint_states` it is found in, by name."""


@dataclass(frozen=True, kw_only=True)
class ArmStatus:
    """The newest `arm/status`."""

    stamp_ns: int = -1
    state: str = ""
    accepts: bool = False
    authority: str = ""
    sender: str = ""
    rearms: int = 0
    reason: str = ""
    speed_scale: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """What is acted on: one observation row, the stamp of its oldest sample, and where the arm is."""

    observation: TensorDict
    stamp_ns: int
    measured: ArmState


class PolicyInputs:
    """Subscriptions of the policy node and what came on them.

    Args:
        node: the policy node.
        need: contract of the policy.
        offer: what the arm said about itself.
        gate: of another sender than the policy.
        task: what a language-conditioned policy is told; None for another sender.

    Attributes:
        changed: notified with every message.
        episode: newest `episode`; None before the first.
        status: newest `arm/status`.
        goal: newest `goal_pose`; under the lock of `changed`.
        task: newest `task`; likewise.
        unusable: messages that could not be used, per topic.
        gate: whether the sender may ask for authority; under the lock of `changed`.
        frame: of the arm's base, with the node's namespace.
    """

    def __init__(
        self, node: Node, need: RobotContract, offer: ArmOffer, gate: StartGate | None = None, task: TaskInput | None = None
    ) -> None:
        self.changed = threading.Condition()
        self.gate = gate or StartGate("policy", f"call the service {node.get_fully_qualified_name()}/start")
        self.episode: dict[str, Any] | None = None
        self.status = ArmStatus()
        self.unusable: dict[str, int] = {}
        self._node = node
        self._offer = offer
        self._assembler = ObservationAssembler(need)
        prefix = node.get_namespace().strip("/")
        self.frame = f"{prefix}/base" if prefix else "base"
        self._stamps: dict[str, int] = {}
        self._joints: tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64], int] | None = None
        self._pose: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._clock_ns = 0
        self._not_before = -1
        self._subscribe(JointState, "joint_states", self._joint_state)
        self._subscribe(PoseStamped, "ee_pose", self._ee_pose)
        self._subscribe(DiagnosticArray, "arm/status", self._status)
        self._subscribe(String, "arm/authority", self._authority, EVENTS)
        self._subscribe(String, "episode", self._episode, EVENTS)
        self.goal = GoalInput(need, offer.limits, self.frame)
        if self.goal.needed:
            self._subscribe(PoseStamped, TOPIC, self.goal.receive)
        self.task = task
        if task is not None and task.instructions:
            self._subscribe(String, TASK_TOPIC, task.receive, LATCHED)
        if offer.clock == "sim":
            self._subscribe(ClockMessage, "/clock", self._clock)
        for name in sorted({channel.rsplit("_", 1)[0] for channel in self._assembler.channels if self._is_object(channel)}):
            self._subscribe(PoseStamped, f"objects/{name}/pose", self._object(name))
        for channel in need.observation:
            if channel.kind == "image":
                self._subscribe(Image, f"camera/{channel.name.removesuffix('_image')}/image_raw", self._image(channel.name), SENSOR)

    @staticmethod
    def _is_object(channel: str) -> bool:
        return channel.endswith(("_pos", "_quat")) and not channel.startswith("eef_") and channel not in JOINTS

    def _subscribe(self, message_type: type[Any], topic: str, handle: Callable[[Any], None], profile: Any = STREAM) -> None:
        def received(message: Any) -> None:
            try:
                with self.changed:
                    handle(message)
                    self.changed.notify_all()
            except (ValueError, KeyError, TypeError, JointNameError) as error:
                self.unusable[topic] = self.unusable.get(topic, 0) + 1
                self._node.get_logger().error(f"{topic} cannot be used: {error}", throttle_duration_sec=2.0)

        subscribe(self._node, message_type, topic, received, profile)

    # -- callbacks, the lock is held ------------------------------------------------------------------------------------

    def _put(self, channel: str, value: Any, stamp_ns: int, names: tuple[str, ...] | None = None) -> None:
        if stamp_ns >= self._not_before:
            self._assembler.put(channel, value, stamp_ns, names)
            self._stamps[channel] = stamp_ns

    def _joint_state(self, message: JointState) -> None:
        stamp_ns, names = to_ns(message.header.stamp), tuple(message.name)
        positions, velocities = np.array(message.position), np.array(message.velocity)
        for channel, field in JOINTS.items():
            if channel in self._assembler.channels:
                self._put(channel, positions if field == "position" else velocities, stamp_ns, names)
        gripper = self._offer.limits.gripper
        if gripper is not None and OPENING.name in self._assembler.channels:
            position = by_name([gripper.name], names, positions.tolist(), what="joint_states")[0]
            self._put(OPENING.name, np.array([share_of_opening(position, gripper)]), stamp_ns, (SHARE.name,))
        self._joints = names, positions, velocities, stamp_ns

    def _ee_pose(self, message: PoseStamped) -> None:
        position, quaternion = self._pose_in_base(message, "ee_pose")
        self._put("eef_pos", position, to_ns(message.header.stamp))
        self._put("eef_quat", quaternion, to_ns(message.header.stamp))
        self._pose = position, quaternion

    def _object(self, name: str) -> Callable[[PoseStamped], None]:
        def received(message: PoseStamped) -> None:
            position, quaternion = self._pose_in_base(message, f"objects/{name}/pose")
            self._put(f"{name}_pos", position, to_ns(message.header.stamp))
            self._put(f"{name}_quat", quaternion, to_ns(message.header.stamp))

        return received

    def _image(self, channel: str) -> Callable[[Image], None]:
        return lambda message: self._put(channel, image_to_rgb(message), to_ns(message.header.stamp))

    def _pose_in_base(self, message: PoseStamped, topic: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if message.header.frame_id != self.frame:
            raise MessageError(f"{topic}: frame {message.header.frame_id!r}, valid: {self.frame!r}")
        return pose_arrays(message, what=topic)

    def _status(self, message: DiagnosticArray) -> None:
        values = {pair.key: pair.value for pair in message.status[0].values}
        self.status = ArmStatus(
            stamp_ns=to_ns(message.header.stamp),
            state=values["state"],
            accepts=json.loads(values["accepts"]),
            authority=values["authority"],
            sender=values["sender"],
            rearms=int(values["rearms"]),
            reason=values["reason"],
            speed_scale=float(values["speed_scale"]),
        )
        self.gate.status(self.status.state, values["reason"], self.status.rearms)

    def _authority(self, message: String) -> None:
        values = json.loads(message.data)
        self.gate.authority(values["source"], values["released"])

    def _episode(self, message: String) -> None:
        episode = json.loads(message.data)
        news = self.episode is None or any(episode.get(key) != self.episode.get(key) for key in ("index", "stamp_ns"))
        if news and episode["phase"] == "running":
            self._assembler.clear()
            self._stamps.clear()
            self._not_before = int(episode.get("stamp_ns", -1))
            if self.episode is not None and episode.get("start"):
                self.gate.episode()
        self.episode = episode

    def _clock(self, message: ClockMessage) -> None:
        self._clock_ns = to_ns(message.clock)

    # -- for the policy's thread ----------------------------------------------------------------------------------------

    def not_told(self) -> str:
        """Why there is no goal or task to act on; empty where there is, or none is needed."""
        return self.goal.missing or (self.task.missing if self.task is not None else "")

    def now_ns(self) -> int:
        """Now, on the clock of stamps."""
        return self._clock_ns if self._offer.clock == "sim" else time.time_ns()

    def missing(self) -> list[str]:
        """What keeps the policy from acting: empty when all is there and fresh."""
        with self.changed:
            problems = self._assembler.missing(self.now_ns())
            if self._joints is None or self._pose is None:
                problems.append("joint_states or ee_pose: nothing received")
            return problems

    def complete_at(self) -> int | None:
        """Lockstep: the stamp that all channels, the joints and the arm's status share; None while some are on their way."""
        stamps = {self._stamps.get(channel, -1) for channel in self._assembler.channels}
        stamps |= {self.status.stamp_ns, self._joints[3] if self._joints else -1}
        return stamps.pop() if len(stamps) == 1 and -1 not in stamps and self._pose is not None else None

    def snapshot(self) -> Snapshot:
        """What to act on now; `missing` must have been empty.

        Raises:
            ObservationError: something was never received.
        """
        with self.changed:
            if self._joints is None or self._pose is None:
                raise ObservationError("joint_states or ee_pose: nothing received")
            observation, stamp_ns = self._assembler.assemble()
            names, positions, velocities, joint_stamp_ns = self._joints
            ee_pos, ee_quat = self._pose
            measured = ArmState(
                stamp_ns=joint_stamp_ns, names=names, positions=positions, velocities=velocities, ee_pos=ee_pos, ee_quat=ee_quat
            )
        return Snapshot(observation=observation, stamp_ns=stamp_ns, measured=measured)
