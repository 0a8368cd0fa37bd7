"""The teleoperation node: a person's keyboard, SpaceMouse or leader arm, or a script, moves the arm and marks episodes.

It sends on `arm/command` as a policy does and is judged by the same command filter. It takes authority when it is told to, gives it back
when it is told to, and never by itself; after an e-stop, a fault or a lost arm it is taken anew. What it is told comes from the source,
from the keys of the terminal it runs in, or as a request {op: take, release, begin, success, failure, discard} on `teleop/request`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from rl_core.contract import Action, ContractError
from robot_bridge.control.decode import ActionDecoder
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.json_requests import JsonServer, RequestError
from robot_bridge.nodes.policy_inputs import PolicyInputs
from robot_bridge.nodes.qos import LATCHED, STREAM, advertise, subscribe
from robot_bridge.nodes.recorder_watch import RecorderWatch
from robot_bridge.nodes.second_arm import own_gid, refuse_two_arms
from robot_bridge.nodes.spin import Failure, NodeError, run
from robot_bridge.nodes.start_gate import StartGate
from robot_bridge.nodes.teleop_requests import TeleopRequests
from robot_bridge.nodes.teleop_worker import TeleopWorker
from robot_bridge.teleop.base import SourceError, TeleopSource
from robot_bridge.teleop.keyboard import Keyboard
from robot_bridge.teleop.keys import ACTION_HELP, MOVE_HELP
from robot_bridge.teleop.registry import make_source
from robot_bridge.teleop.target import SOURCE, TeleopTarget

_REQUESTS = ("take", "release", "begin", "success", "failure", "discard")
_START = "take the arm (key t)"
_SECOND_ARM_S = 0.5
_OWN_SUBSCRIPTIONS = 1  # on policy/action: this node's, which hears a policy there


@dataclass(frozen=True, kw_only=True)
class TeleopStatus:
    """What a person wants to see.

    Attributes:
        state, reason, authority, speed_scale: of the arm's newest status.
        yours: this node has authority.
        following: the arm follows it.
        speed: share of the highest.
        episode: newest record on `episode`; None before the first.
        marked: episodes ended here, by outcome.
        recorder: values of the episode recorder's diagnostics; empty where none is heard.
        said: what was asked for last, or why it is not followed.
    """

    state: str
    reason: str
    authority: str
    speed_scale: float
    yours: bool
    following: bool
    speed: float
    episode: dict[str, Any] | None
    marked: dict[str, int]
    recorder: Mapping[str, str]
    said: str


class TeleopNode(Node):
    """Parameters: `source` (keyboard, spacemouse, leader, script) and `source_config`, the YAML file of its settings; `speed`, share of
    the highest; `action`, `end_effector` or `joint` (empty: the source's own; while a policy acts, its kind is taken); `seed` of the first
    episode; `record`, no episode begins before an episode recorder listens.

    Args:
        source: used instead of the parameters' (tests).
        quit: called when the person wants to end; ends the process by default.
        options: further arguments of `rclpy.node.Node`.
    """

    def __init__(self, *, source: TeleopSource | None = None, quit: Callable[[], None] | None = None, **options: Any) -> None:
        super().__init__("teleop", **options)
        name = str(self.declare_parameter("source", "keyboard").value)
        config = str(self.declare_parameter("source_config", "").value)
        self._speed = float(self.declare_parameter("speed", 0.3).value or 0.0)
        self._action = str(self.declare_parameter("action", "").value)
        seed = int(self.declare_parameter("seed", 0).value or 0)
        self._record = bool(self.declare_parameter("record", False).value)
        self._recorder = RecorderWatch(expected=self._record)
        if not 0.0 < self._speed <= 1.0:
            raise NodeError(f"parameter speed: {self._speed}, valid: above 0, at most 1")
        if self._action not in ("", "end_effector", "joint"):
            raise NodeError(f"parameter action: {self._action!r}, valid: end_effector, joint, or empty")
        self.failure = Failure()
        self._quit = quit or (lambda: os.kill(os.getpid(), signal.SIGINT))
        self._inputs: PolicyInputs | None = None
        self._worker: TeleopWorker | None = None
        self._sources = self._open(source, name, config)
        self._commands = advertise(self, JointTrajectory, "arm/command", STREAM)
        self._actions = advertise(self, JointState, "policy/action", STREAM)
        self._requests = TeleopRequests(self, seed)
        self._server = JsonServer(self, "teleop", self._asked)
        self._offers: list[str] = []
        self._heard = threading.Condition()
        self._closing = False
        subscribe(self, JointState, "policy/action", self._action_came, STREAM)
        subscribe(self, DiagnosticArray, "diagnostics", self._recorder.hear, STREAM)
        subscribe(self, String, "arm/contract", self._contract_came, LATCHED)
        self.create_timer(_SECOND_ARM_S, self._watch_for_second_arm)
        self._waiting = threading.Thread(target=self._begin, name="teleop start", daemon=True)
        self._waiting.start()

    @staticmethod
    def _open(given: TeleopSource | None, name: str, config: str) -> list[TeleopSource]:
        sources: list[TeleopSource] = []
        try:
            sources.append(given if given is not None else make_source(name, config))
            if given is None and name != "keyboard" and sys.stdin.isatty():
                sources.append(Keyboard(moves=False))
            for source in sources:
                source.open()
        except SourceError as error:
            for source in sources:
                source.close()
            raise NodeError(str(error)) from error
        return sources

    def status(self) -> TeleopStatus | None:
        """What a person wants to see; None before the arm was heard."""
        inputs, worker = self._inputs, self._worker
        if inputs is None or worker is None:
            return None
        arm = inputs.status
        return TeleopStatus(
            state=arm.state,
            reason=arm.reason,
            authority=arm.authority,
            speed_scale=arm.speed_scale,
            yours=worker.engaged and arm.authority == SOURCE,
            following=worker.following,
            speed=worker.speed,
            episode=inputs.episode,
            marked=dict(self._requests.marked),
            recorder=self._recorder.values,
            said=inputs.gate.waits or worker.refused or self._requests.said,
        )

    def recorded(self) -> bool:
        """Whether the recorder wrote, or lost, every episode that is over, so that ending it loses nothing and its counts are the last."""
        inputs, requests = self._inputs, self._requests
        if inputs is None or not self._record:
            return True
        episode = inputs.episode
        marked_later = episode is not None and episode["phase"] == "running" and episode["index"] == requests.ended  # its end is on its way
        return not requests.ending and not marked_later and self._recorder.has(episode)

    @property
    def recorder_heard(self) -> bool:
        """Whether the recorder said something lately."""
        return self._recorder.heard

    # -- callbacks ------------------------------------------------------------------------------------------------------

    def _contract_came(self, message: String) -> None:
        with self._heard:
            self._offers.append(message.data)
            self._heard.notify_all()
        inputs = self._inputs
        if inputs is not None:
            with inputs.changed:
                inputs.gate.lost()

    def _action_came(self, message: JointState) -> None:
        worker = self._worker
        if worker is None or message.header.frame_id == SOURCE:
            return
        worker.heard(tuple(message.name), float(message.position[-1]) if message.position else None)

    def _asked(self, request: dict[str, Any], reply: Callable[[Any], None]) -> None:
        operation, worker = request.get("op"), self._worker
        if operation not in _REQUESTS:
            raise RequestError(f"op {operation!r}, valid: {', '.join(_REQUESTS)}")
        if worker is None:
            raise RequestError("the teleoperation node still waits for the arm")
        worker.ask(operation)
        reply({"ok": True})

    def _watch_for_second_arm(self) -> None:
        if self._worker is not None:
            try:
                refuse_two_arms(self)
            except NodeError as error:
                self._worker.close()
                self.failure.report(error)

    # -- start and end --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        try:
            with self._heard:
                while not self._offers and not self._closing:
                    if not self._heard.wait(5.0):
                        self.get_logger().warning("waiting for arm/contract; does the arm node run?")
            if not self._closing:
                self._drive(ArmOffer.from_json(self._offers[0]))
        except Exception as error:
            self.failure.report(error if isinstance(error, NodeError) else NodeError(f"{type(error).__name__}: {error}"))

    def _drive(self, offer: ArmOffer) -> None:
        if offer.sim_mode == "lockstep":
            raise NodeError("a person cannot move an arm whose time stands still between commands; valid: sim_mode:=realtime")
        refuse_two_arms(self)
        space = self._action or self._sources[0].space
        targets = [(contract.action, _target(contract.action, offer)) for contract in offer.contracts]
        targets.sort(key=lambda each: each[0].space != space)
        if targets[0][0].space != space:
            raise NodeError(f"the arm offers no {space} actions; valid: parameter action, {' or '.join(each.space for each, _ in targets)}")
        inputs = PolicyInputs(self, offer.contracts[0].select(("joint_pos",)), offer, StartGate(SOURCE, _START))
        self._worker = TeleopWorker(
            self._sources,
            targets,
            inputs,
            self._requests,
            unheard=self._unheard,
            send=self._commands.publish,
            tell=self._actions.publish,
            sender=own_gid(self, "arm/command"),
            speed=self._speed,
            logger=self.get_logger(),
            failed=self.failure.report,
            quit=self._quit,
        )
        self._inputs = inputs
        self._worker.start()
        self.get_logger().info(f"teleoperation ready: {offer.contracts[0].robot}, {space} actions")
        if any(isinstance(source, Keyboard) for source in self._sources):
            self.get_logger().info("; ".join(f"{key}: {text}" for key, text in {**MOVE_HELP, **ACTION_HELP}.items()))

    def _unheard(self) -> str:
        """Why an episode that began now would be lost; empty where it would not."""
        waits = self._recorder.waits()
        if not waits and self._record and self._actions.get_subscription_count() < _OWN_SUBSCRIPTIONS + 1:
            waits = "the episode recorder does not hear the actions of this node yet"
        return waits

    def close(self) -> None:
        """Ends the threads and gives the source back. The arm holds; authority is only given back where a person said so."""
        with self._heard:
            self._closing = True
            self._heard.notify_all()
        self._waiting.join(6.0)
        if self._worker is not None:
            self._worker.close()
        for source in self._sources:
            source.close()
        self._requests.close()


def _target(action: Action, offer: ArmOffer) -> TeleopTarget:
    kinematics = Kinematics(offer.ik_model, site=offer.tool_frame)
    try:
        return TeleopTarget(ActionDecoder(action, kinematics, gripper=offer.limits.gripper), kinematics, offer.limits)
    except ContractError as error:
        raise NodeError(str(error)) from error


def main() -> int:
    """Entry point of `teleop_node`."""
    return run(TeleopNode)


if __name__ == "__main__":
    raise SystemExit(main())
