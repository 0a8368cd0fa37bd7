"""GraphStage: the stage of the faults in a ROS graph: this process is sender, guard, button, operator and second publisher."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from rl_core.errors import ArmstackError
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.settings import FilterSettings
from robot_bridge.faults.arm_node import INJECT
from robot_bridge.faults.catalogue import Fault
from robot_bridge.faults.ros_sender import RosSender
from robot_bridge.faults.sender import Measured, Sender
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.messages import by_name, diagnostic
from robot_bridge.nodes.qos import EVENTS, STREAM, advertise, subscribe
from robot_bridge.nodes.spin import SpinThread

if TYPE_CHECKING:
    from robot_bridge.faults.graph import KilledSender

GUARD = "fault_guard"
_GUARD_S = 0.2
_ANSWER_S = 20.0
_EVEN_OUTPUTS = 40


class GraphStage:
    """See `robot_bridge.faults.run.Stage`; a context manager around the threads.

    Args:
        node: of this process; nobody else spins it.
        killed: the sender that is killed.
        parameters: of the arm node, where a ros2_control controller's topic is named.
    """

    def __init__(self, node: Node, killed: KilledSender | None, parameters: dict[str, Any]) -> None:
        self.settings = FilterSettings()
        self._node, self._killed, self._parameters = node, killed, parameters
        self._ros, self._second = RosSender(node), RosSender(node, joint=1)
        self._guard: bytes | None = DiagnosticStatus.OK
        self._guards = advertise(node, DiagnosticArray, "safety/holds", EVENTS)
        self._button = advertise(node, Bool, "/e_stop", EVENTS)
        self._authority, self._inject = JsonClient(node, "arm/authority"), JsonClient(node, INJECT)
        self._rearm: Any = node.create_client(Trigger, "arm/rearm")
        self._changed = threading.Condition()
        self._status: dict[str, str] = {}
        self._outputs: deque[JointTrajectory] = deque(maxlen=_EVEN_OUTPUTS)
        subscribe(node, DiagnosticArray, "arm/status", self._status_came, STREAM)
        subscribe(node, JointTrajectory, "arm/applied", self._applied_came, STREAM)
        node.create_timer(_GUARD_S, self._say_guard)
        self._intruder: Any = None
        self._spinning = SpinThread(node)

    def __enter__(self) -> GraphStage:
        self._spinning.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ros.close()
        self._second.close()
        self._spinning.__exit__()

    def wait_arm(self, timeout_s: float) -> None:
        """Returns once the arm is heard.

        Raises:
            ArmstackError: it is not in time.
        """
        for sender in (self._ros, self._second):
            sender.wait(timeout_s)

    # -- Stage ----------------------------------------------------------------------------------------------------------

    @property
    def limits(self) -> ArmLimits:
        """Of the arm, as its node says."""
        return self._ros.offer.limits

    @property
    def sender(self) -> Sender:
        """Of this process."""
        return self._ros.sender

    def now_ns(self) -> int:
        """Wall time, the arm node's clock of stamps."""
        return time.time_ns()

    def measured(self) -> Measured:
        """See `Stage.measured`."""
        return self._ros.measured()

    def wait(self, seconds: float) -> None:
        """See `Stage.wait`."""
        time.sleep(seconds)

    def wait_motion(self, timeout_s: float) -> bool:
        """See `Stage.wait_motion`; even motion, not the stutter of a machine that is busy."""
        with self._changed:
            self._outputs.clear()
        return self._wait(self._even, timeout_s)

    def ready(self, fault: Fault) -> None:
        """See `Stage.ready`.

        Raises:
            ArmstackError: the arm cannot be rearmed, or gives no authority.
        """
        deadline = time.monotonic() + _ANSWER_S
        while (refused := self._ready()) and time.monotonic() < deadline:
            time.sleep(0.1)
        if refused:
            raise ArmstackError(f"before {fault.name!r}: {refused}")

    def start(self, fault: Fault) -> None:
        """See `Stage.start`."""
        if fault.place == "sender":
            assert self._killed is not None
            self.sender.start(self.measured(), self.now_ns())  # for its direction
            self.sender.stop()
            self._killed.start()  # once more: it starts anew
        else:
            self.sender.start(self.measured(), self.now_ns())

    def inject(self, fault: Fault) -> int:
        """See `Stage.inject`."""
        now_ns = self.now_ns()
        match fault.place:
            case "command":
                self.sender.spoil(fault.spoil)
            case "sender":
                assert self._killed is not None
                self._killed.kill()
            case "second_sender":
                self._second.sender.start(self.measured(), now_ns)
            case "guard":
                self._guard = None if fault.mode == "silent" else DiagnosticStatus.ERROR
                self._say_guard()
            case "button":
                self._button.publish(Bool(data=True))
            case "controller":
                self._inject.call({"mode": ""}, _ANSWER_S)  # what is told once is told anew
                controller = str(self._parameters.get("controller", "/joint_trajectory_controller")).rstrip("/")
                forward = self._parameters.get("interface") == "forward"
                kind, topic = (Float64MultiArray, "commands") if forward else (JointTrajectory, "joint_trajectory")
                self._intruder = advertise(self._node, kind, f"{controller}/{topic}", STREAM)
            case "arm":
                return int(self._inject.call({"mode": fault.mode}, _ANSWER_S)["stamp_ns"])
        return now_ns

    def clear(self, fault: Fault) -> None:
        """See `Stage.clear`."""
        self.sender.spoil(None)
        self._second.sender.stop()
        self._guard = DiagnosticStatus.OK
        if fault.place == "arm":
            self._inject.call({"mode": ""}, _ANSWER_S)
        if self._intruder is not None:
            self._node.destroy_publisher(self._intruder)
            self._intruder = None

    # -- details --------------------------------------------------------------------------------------------------------

    def _ready(self) -> str:
        """Takes a step towards being ready; empty once it is, else what is in the way."""
        with self._changed:
            status = dict(self._status)
        if status.get("state") in ("stopped", "fault"):
            if not self._rearm.wait_for_service(1.0):
                return "no service arm/rearm"
            answer = self._rearm.call(Trigger.Request(), timeout_sec=_ANSWER_S)
            if answer is None or not answer.success:
                return f"rearm: {answer.message if answer else 'no answer'}"
        try:
            if status.get("authority"):
                self._authority.call({"op": "release", "source": status["authority"]}, _ANSWER_S)
            self._authority.call({"op": "take", "source": "policy"}, _ANSWER_S)
        except RequestError as error:
            return str(error)
        return "" if self._wait(lambda: self._status.get("accepts") == "true", 1.0) else f"the arm takes no commands: {self._status}"

    def _even(self) -> bool:
        """Whether the last outputs moved with the sweep."""
        if len(self._outputs) < _EVEN_OUTPUTS:
            return False
        name = self.limits.names[self.sender.joint]
        first, last = (
            by_name([name], message.joint_names, message.points[0].positions, what="arm/applied")[0]
            for message in (self._outputs[0], self._outputs[-1])
        )
        way = self.sender.speed * self.settings.control_period_s * (len(self._outputs) - 1)
        return bool(abs(last - first) > 0.8 * way)

    def _wait(self, condition: Any, timeout_s: float) -> bool:
        with self._changed:
            return bool(self._changed.wait_for(condition, timeout_s))

    def _status_came(self, message: DiagnosticArray) -> None:
        with self._changed:
            self._status = {pair.key: pair.value for pair in message.status[0].values}
            self._changed.notify_all()

    def _applied_came(self, message: JointTrajectory) -> None:
        with self._changed:
            self._outputs.append(message)
            self._changed.notify_all()

    def _say_guard(self) -> None:
        level = self._guard
        if level is not None:
            self._guards.publish(DiagnosticArray(status=[diagnostic(GUARD, {}, level=level)]))
