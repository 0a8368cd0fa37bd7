"""The policy node: a lifecycle node that loads a bundle, checks it against the arm's contract, and drives the arm with it.

It configures and activates itself unless `autostart` is false. Configuring loads the bundle; once active it waits for `arm/contract`,
warms up, takes authority at every episode and acts at the contract's period. After an e-stop, a fault, a lost arm or a take-over it waits
until a person starts it again (`StartGate`), by the service `~/start` or by activating it anew.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.camera_channel import channel_from_json
from rl_core.contract import Channel, ContractMismatch, RobotContract
from rl_core.contractive import Certificate
from rl_core.errors import ArmstackError
from rl_core.policy import Policy
from robot_bridge.control.decode import ActionDecoder
from robot_bridge.control.explored_box import kept_inside
from robot_bridge.control.hand_policy import fitted
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.goal_input import GOAL
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.policy_inputs import PolicyInputs
from robot_bridge.nodes.policy_monitor import TOPIC, PolicyMonitor, carried_certificate
from robot_bridge.nodes.policy_subgoal import SubgoalPublisher
from robot_bridge.nodes.policy_worker import PolicyWorker
from robot_bridge.nodes.qos import LATCHED, STREAM, advertise, subscribe
from robot_bridge.nodes.second_arm import own_gid, refuse_two_arms
from robot_bridge.nodes.self_starting import SelfStartingNode
from robot_bridge.nodes.spin import NodeError, run
from robot_bridge.nodes.stamps import to_time
from robot_bridge.nodes.task_input import TOPIC as TASK_TOPIC
from robot_bridge.nodes.task_input import TaskInput

_ANSWER_S = 2.0
_SOURCE = "policy"
_SECOND_ARM_S = 0.5
_OK = TransitionCallbackReturn.SUCCESS


class PolicyNode(SelfStartingNode):
    """Parameters besides a `SelfStartingNode`'s: `bundle`, folder of the policy bundle; `threads` of torch; `instruction`, what a
    language-conditioned policy does until a `task` says otherwise (empty: its own default).

    Args:
        policy: used instead of a bundle's (tests).
        certificate: what `policy` is held to.
        options: further arguments of `SelfStartingNode`.
    """

    def __init__(self, *, policy: Policy | None = None, certificate: Certificate | None = None, **options: Any) -> None:
        super().__init__("policy", **options)
        self.declare_parameter("bundle", "")
        self.declare_parameter("threads", 1)
        self.declare_parameter("instruction", "")
        self._given = policy
        self._policy: Policy | None = policy
        self._certificate = certificate
        self._monitor: PolicyMonitor | None = None
        self._subgoals: SubgoalPublisher | None = None
        self._sha256 = ""
        self._active = False
        self._waiting: threading.Thread | None = None
        self._worker: PolicyWorker | None = None
        self._inputs: PolicyInputs | None = None
        self._offer_text = ""
        self._cameras: dict[str, Channel] = {}
        self._heard = threading.Condition()
        self._commands = advertise(self, JointTrajectory, "arm/command", STREAM)
        self._actions = advertise(self, JointState, "policy/action", STREAM)
        self._diagnostics = advertise(self, DiagnosticArray, "diagnostics", STREAM)
        self._authority = JsonClient(self, "arm/authority")
        subscribe(self, String, "arm/contract", self._contract_came, LATCHED)
        self._camera_subscriptions: list[Any] = []
        self.create_service(Trigger, "~/start", self._start)
        self.create_timer(1.0, self._publish_diagnostics)
        self.create_timer(_SECOND_ARM_S, self._watch_for_second_arm)
        self._start_itself()

    # -- lifecycle ------------------------------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Loads the bundle."""
        if self._given is not None:
            return _OK
        bundle = str(self.get_parameter("bundle").value)
        try:
            if not bundle:
                raise ArmstackError("parameter bundle is empty; give the folder that `armstack train` or `armstack export` wrote")
            import torch

            from rl_core.methods import load_policy

            torch.set_num_threads(int(self.get_parameter("threads").value or 1))
            loaded = Bundle.load(bundle)
            self._policy, self._certificate = kept_inside(load_policy(loaded), loaded), carried_certificate(loaded)
            self._sha256 = bundle_sha256(bundle)
        except (ArmstackError, ValueError, OSError, ImportError) as error:
            return self._refuse(f"bundle {bundle!r} cannot be used: {error}")
        self.get_logger().info(f"bundle {bundle} loaded, sha256 {self._sha256[:12]}")
        for channel in self._policy.contract.observation:
            if channel.kind == "image":
                topic = f"camera/{channel.name.removesuffix('_image')}/contract"
                self._camera_subscriptions.append(subscribe(self, String, topic, self._camera_came, LATCHED))
        return _OK

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Waits for the arm's contract in a thread, then drives."""
        self._active = True
        self._waiting = threading.Thread(target=self._begin, name="policy start", daemon=True)
        self._waiting.start()
        return super().on_activate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forgets the bundle."""
        self._policy, self._monitor = self._given, None
        return _OK

    # -- start and end --------------------------------------------------------------------------------------------------

    def _contract_came(self, message: String) -> None:
        with self._heard:
            known, self._offer_text = bool(self._offer_text), message.data
            self._heard.notify_all()
        inputs = self._inputs
        if known and inputs is not None:
            with inputs.changed:
                inputs.gate.lost()

    def _camera_came(self, message: String) -> None:
        with self._heard:
            channel = channel_from_json(message.data)
            self._cameras[channel.name] = channel
            self._heard.notify_all()

    def _begin(self) -> None:
        try:
            assert self._policy is not None
            need = self._policy.contract
            images = {channel.name for channel in need.observation if channel.kind == "image"}
            with self._heard:
                while self._active and not (self._offer_text and images <= set(self._cameras)):
                    if not self._heard.wait(5.0):
                        waiting = "arm/contract" if not self._offer_text else f"camera contracts of {sorted(images - set(self._cameras))}"
                        self.get_logger().warning(f"waiting for {waiting}; does the node that publishes it run?")
                text, cameras = self._offer_text, tuple(self._cameras.values())
            if self._active:
                self._drive(self._policy, _completed(ArmOffer.from_json(text), cameras))
        except ContractMismatch as error:
            what_to_do = "The arm holds. Use a bundle trained for this arm and task, or start the matching task."
            if "condition.skill" in str(error):
                what_to_do = (
                    "The arm holds. Nobody tells skills here: armstack solve BUNDLE --goal-channel eef_pos makes one that is told goals."
                )
            self.failure.report(NodeError(f"{error}\n{what_to_do}"))
        except Exception as error:
            self.failure.report(error if isinstance(error, NodeError) else NodeError(f"{type(error).__name__}: {error}"))

    def _drive(self, policy: Policy, offer: ArmOffer) -> None:
        policy = fitted(policy, offer.contracts)
        need: RobotContract = policy.contract
        offer.contract_for(need)
        refuse_two_arms(self)
        first = str(self.get_parameter("instruction").value)
        inputs = self._inputs or PolicyInputs(self, need, offer, task=TaskInput(policy, first))
        with inputs.changed:
            inputs.gate.start()  # activating is a start
        sender = own_gid(self, "arm/command")
        if self._certificate is not None and self._monitor is None:
            self._monitor = PolicyMonitor(self._certificate, tell=advertise(self, String, TOPIC).publish, logger=self.get_logger())
        self._subgoals = self._subgoals or SubgoalPublisher(self, policy, inputs.frame)
        worker = PolicyWorker(
            policy,
            ActionDecoder(need.action, Kinematics(offer.ik_model, site=offer.tool_frame), gripper=offer.limits.gripper),
            inputs,
            send=self._commands.publish,
            tell=self._actions.publish,
            sender=sender,
            take=lambda: self._take(sender),
            lockstep=offer.sim_mode == "lockstep",
            logger=self.get_logger(),
            failed=self.failure.report,
            monitor=self._monitor,
            subgoals=self._subgoals.tell,
        )
        self._inputs, self._worker = inputs, worker
        worker.start()
        self.get_logger().info(f"active: {need.robot}, {1 / need.action.period_s:.0f} Hz, {offer.sim_mode}")

    def _watch_for_second_arm(self) -> None:
        if self._worker is None:
            return
        try:
            refuse_two_arms(self)
        except NodeError as error:
            self._worker.close()
            self.failure.report(error)

    def _start(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        inputs = self._inputs
        if self._worker is None or inputs is None:
            refused: str | None = "the policy node is not active, or still waits for the arm"
        else:
            with inputs.changed:
                refused = inputs.gate.start()
                inputs.changed.notify_all()
        response.success = refused is None
        response.message = refused or "the policy asks for authority and acts"
        self.get_logger().info(f"start: {response.message}")
        return response

    def _take(self, sender: str) -> bool:
        try:
            self._authority.call({"op": "take", "source": _SOURCE, "sender": sender}, _ANSWER_S)
            return True
        except (RequestError, TimeoutError) as error:
            self.get_logger().warning(f"no authority: {error}", throttle_duration_sec=2.0)
            return False

    def _end(self) -> None:
        self._active = False
        with self._heard:
            self._heard.notify_all()
        if self._waiting is not None:
            self._waiting.join(5.0)
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    # -- diagnostics ----------------------------------------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        worker, inputs = self._worker, self._inputs
        if worker is None or inputs is None:
            return
        latency = worker.latency
        values: dict[str, Any] = {
            f"{stage}_{key}_ms": value for stage, figures in latency.milliseconds().items() for key, value in figures.items()
        }
        values |= {"periods": latency.periods, "missed": latency.missed, "skipped": worker.skipped, "bundle": self._sha256}
        values |= worker.chunks()
        values["listeners"] = self._commands.get_subscription_count()  # to whom a command goes: the arm node, a recorder
        values["waits"] = inputs.gate.waits or inputs.not_told()
        values |= {f"unusable {topic}": count for topic, count in inputs.unusable.items()}
        level = DiagnosticStatus.WARN if inputs.unusable or values["waits"] else DiagnosticStatus.OK
        message = DiagnosticArray(status=[diagnostic("policy latency", values, level=level, message=values["waits"])])
        if self._monitor is not None and (figures := self._monitor.figures()):
            level = DiagnosticStatus.OK if figures["verdict"] == "ok" else DiagnosticStatus.WARN
            message.status = [*message.status, diagnostic("policy certificate", figures, level=level, message=figures["reason"])]
        message.header.stamp = to_time(time.time_ns())
        self._diagnostics.publish(message)


def _completed(offer: ArmOffer, cameras: tuple[Channel, ...]) -> ArmOffer:
    """The arm's offer with what others give: cameras their channels, and the user of this node a goal and a task."""
    told = (*GOAL, Channel(name=TASK_TOPIC, kind="text"))
    contracts = tuple(dataclasses.replace(c, observation=(*c.observation, *cameras), condition=told) for c in offer.contracts)
    return dataclasses.replace(offer, contracts=contracts)


def main() -> int:
    """Entry point of `policy_node`."""
    return run(PolicyNode)


if __name__ == "__main__":
    raise SystemExit(main())
