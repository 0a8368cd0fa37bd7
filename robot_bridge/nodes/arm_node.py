"""The arm node: the command filter, e-stop, holds and authority around one arm: a driver's, or the simulated one, whose world it owns.

`realtime`: the control loop has its own thread with monotonic deadlines. `lockstep` (simulated arm): physics runs when a command
came, one policy period each; whoever has authority sends one JointTrajectory a step, without points where it has no command.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.control.clock import Clock
from robot_bridge.control.command import JointCommand
from robot_bridge.control.holds import GuardReport
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.loop import ControlLoop
from robot_bridge.control.settings import FilterSettings
from robot_bridge.nodes.arm_listener import ArmListener
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.arm_publisher import ArmPublisher
from robot_bridge.nodes.clocks import ScaledClock
from robot_bridge.nodes.command_messages import command_from
from robot_bridge.nodes.disturbance_requests import DisturbanceServer
from robot_bridge.nodes.driven_arm import DrivenArm, chosen_arm, driven_arm, recovered, tightened
from robot_bridge.nodes.e_stop_listener import EStopListener
from robot_bridge.nodes.episode_requests import End, Reset, end_answer, episode_request
from robot_bridge.nodes.json_requests import JsonServer
from robot_bridge.nodes.latency import Latency
from robot_bridge.nodes.qos import STREAM, subscribe
from robot_bridge.nodes.second_arm import refuse_second_arm, second_arm
from robot_bridge.nodes.simulated_world import WorldArm
from robot_bridge.nodes.spin import Failure, NodeError, run
from robot_bridge.nodes.timed_filter import TimedFilter

_STATE_S = 0.02  # joint_states, poses and the periods' arm/applied go out at this rate
_STATUS_S = 0.1
_QPOS_NS = 10**9 // 30
_WARM_UP = 100
_SECOND_ARM = "second_arm"  # its fault and its hold
_SECOND_ARM_S = 0.5

Reply = Callable[[Mapping[str, Any]], None]


class ArmNode(Node):
    """See the module. Parameters are those declared in `__init__`, with their meaning.

    Args:
        make_arm: makes the simulated arm (tests put a blocking one here).
        options: further arguments of `rclpy.node.Node`.
    """

    def __init__(self, *, make_arm: Callable[..., WorldArm] = WorldArm, **options: Any) -> None:
        super().__init__("arm", **options)
        made = time.monotonic()
        name = chosen_arm(self)
        simulated = name == "simulated"
        mode = self._choice("sim_mode", "realtime", ("realtime", "lockstep"))
        task = str(self.declare_parameter("task", "").value) or ("lift" if simulated else "")
        horizon = int(self.declare_parameter("horizon", 0).value or 0)  # policy steps of an episode; 0: the task's own
        factor = float(self.declare_parameter("realtime_factor", 1.0).value or 0.0)
        self._seed = int(self.declare_parameter("seed", 0).value or 0)
        self._on_request = self._choice("episodes", "forever", ("forever", "on_request")) == "on_request"
        settings = FilterSettings(
            required_guards=self._names("required_guards"),
            required_estops=self._names("required_estops"),  # full node names, e.g. /button
            separation_required=bool(self.declare_parameter("separation_required", False).value),
        )
        if not 0.1 <= factor <= 10.0:
            raise NodeError(f"parameter realtime_factor: {factor}, valid: 0.1 .. 10")
        self._lockstep = mode == "lockstep"
        if not simulated and (self._lockstep or factor != 1.0):
            raise NodeError(f"arm {name}: sim_mode lockstep and realtime_factor are the simulated arm's")
        self.failure = Failure()
        self._sim_time = self._lockstep or factor != 1.0
        scaled = ScaledClock(factor)
        self._time: Clock = scaled
        self._world: WorldArm | None = None
        self.arm: WorldArm | DrivenArm
        if simulated:
            self.arm = self._world = make_arm(task, settings, stamps=None if self._lockstep else scaled, horizon=horizon)
            self.arm.limits = tightened(self, self.arm.limits)
            self._time = self._world.clock if self._lockstep else scaled
        else:
            self.arm = driven_arm(self, name, task)
        self._claim = refuse_second_arm(self, since=made)  # before the filter, whose patience with silent buttons begins then
        self._period_s = settings.control_period_s
        self._filter = TimedFilter(self.arm.limits, settings, forward=Kinematics(self.arm.description).fk, now_ns=self._time.monotonic_ns())
        self._filter.latency = self._latency = Latency(warm_up=_WARM_UP)
        self.loop = ControlLoop(arm=self.arm, filter=self._filter, clock=self._time)
        self._work: queue.Queue[JointCommand | Callable[[], None] | None] = queue.Queue()
        self._closing = threading.Event()
        self._publisher = ArmPublisher(
            self,
            objects=self.arm.object_names,
            world=self._world,
            sim_time=self._sim_time,
            wrench=not simulated and self.arm.limits.max_force is not None,
        )
        self._status_due, self._qpos_due_ns = 0.0, 0
        self._said: tuple[Any, ...] = ()
        self._second_arm, self._followed = False, -1  # index of the last episode that was followed by another
        offer = ArmOffer(
            contracts=self.arm.contracts,
            limits=self.arm.limits,
            tool_frame="ee",
            ik_model=self.arm.description,
            sim_mode="none" if not simulated else "lockstep" if self._lockstep else "realtime",
            clock="sim" if self._sim_time else "system",
            control_period_s=self._period_s,
        )
        self._publisher.contract(offer.to_json(), self.arm.description)
        self._listener = ArmListener(self, self.loop, self._changed)
        self._e_stop = EStopListener(self, self.loop, self.failure)
        self._episodes = JsonServer(self, "episode", self._episode_request)
        self._disturbances = DisturbanceServer(self, self._world)
        self._recovery = JsonServer(self, "arm/recover", lambda request, reply: self._work.put(lambda: reply(recovered(self.arm))))
        subscribe(self, JointTrajectory, "arm/command", self._command, STREAM, with_info=True)
        self.create_timer(1.0, lambda: self._publisher.diagnostics(self._latency, self._time.source_ns()))
        self.create_timer(_SECOND_ARM_S, self._watch_for_second_arm)
        if self._lockstep:
            self.loop.restart()
            self.create_timer(_STATUS_S, lambda: self._publish_status())
        else:
            try:
                self.loop.start(factor=factor)
            except ArmLost as error:
                self._e_stop.close()
                raise NodeError(str(error)) from error
            self.create_timer(_STATE_S, self._publish_realtime)
        self._thread = threading.Thread(target=self._run_world, name="world", daemon=True)
        self._thread.start()
        if not self._on_request:
            self._work.put(lambda: self._reset(self._seed))
        self.get_logger().info(f"{task} ready, {mode}" if simulated else f"{name} ready")

    # -- parameters -----------------------------------------------------------------------------------------------------

    def _choice(self, name: str, default: str, valid: tuple[str, ...]) -> str:
        value = str(self.declare_parameter(name, default).value)
        if value not in valid:
            raise NodeError(f"parameter {name}: {value!r}, valid: {', '.join(valid)}")
        return value

    def _names(self, name: str) -> tuple[str, ...]:
        values: list[str] = list(self.declare_parameter(name, [""]).value or ())
        return tuple(value for value in values if value)

    # -- callbacks: they write a mailbox --------------------------------------------------------------------------------

    def _command(self, message: JointTrajectory, info: dict[str, Any]) -> None:
        sender = bytes(info["publisher_gid"]["data"]).hex()
        if self._lockstep and not message.points:
            holder = self.loop.filter.authority.holder
            if holder is not None and holder.source == message.header.frame_id and holder.sender in (None, sender):
                self._work.put(None)
            return
        command = command_from(message, sender)
        if self._lockstep:
            self._work.put(command)
        else:
            self.loop.receive(command)

    def _episode_request(self, request: dict[str, Any], reply: Reply) -> None:
        match episode_request(request, self.arm.task):
            case Reset(seed):
                self._work.put(lambda: self._reset(seed, reply))
            case End() as end:
                self._work.put(lambda: self._end(end, reply))

    def _watch_for_second_arm(self) -> None:
        """While there is one: a fault, and a hold that refuses the rearm. The fault stays until an operator rearms."""
        found = second_arm(self)
        if found:
            self.get_logger().error(f"{_SECOND_ARM}: {found}", throttle_duration_sec=5.0)
            self.loop.fault(f"{_SECOND_ARM}: {found}")
        if found or self._second_arm:
            self.loop.guard(GuardReport(name=_SECOND_ARM, hold=bool(found), message=found))
        self._second_arm = bool(found)

    def _changed(self) -> None:
        self._publish_status()
        if self._lockstep:
            self._publish_lockstep(self.arm.read())  # who has just taken authority may have come after the last observation

    # -- the world's thread ---------------------------------------------------------------------------------------------

    def _run_world(self) -> None:
        try:
            while not self._closing.is_set():
                try:
                    work = self._work.get(timeout=5 * self._period_s)
                except queue.Empty:
                    self._idle()
                    continue
                if callable(work):
                    work()
                else:
                    self._lockstep_step(work)
        except Exception as error:
            self.failure.report(error if isinstance(error, NodeError) else NodeError(f"world: {type(error).__name__}: {error}"))

    def _idle(self) -> None:
        """Lockstep time stands still between commands, but for an arm that is stopped: it must come to rest and may be rearmed."""
        if self._lockstep and self.loop.status().state in ("stopped", "fault"):
            self._lockstep_step(None)

    def _reset(self, seed: int, reply: Reply | None = None) -> None:
        start = reply is not None and self.loop.status().state not in ("stopped", "fault")
        state = self.arm.begin_episode(seed, self.loop.restart, start=start)
        self._publisher.episode(self.arm.episode)
        if self._lockstep and state is not None:
            self._publish_lockstep(state)
        if reply is not None:
            reply({"ok": True, **self.arm.episode})

    def _end(self, end: End, reply: Reply) -> None:
        reply(end_answer(self.arm, end))
        self._publisher.episode(self.arm.episode)
        self._next_episode()

    def _lockstep_step(self, command: JointCommand | None) -> None:
        if self.arm.episode["phase"] != "running" and command is not None:
            return  # a command that crossed the episode's end
        refusal = self.loop.receive(command) if command is not None else None
        if refusal is not None and refusal.reason == "no_authority":
            return  # only the holder of authority moves time on
        try:
            _, periods = self.loop.lockstep_step()
        except ArmLost as error:
            self.get_logger().error(f"{error}; ask for a reset on episode/request")
            periods = ()
        self._publisher.applied(periods, self.arm.joint_names, self._period_s)
        self._publisher.episode(self.arm.episode)
        self._publish_lockstep(self.arm.read())
        self._next_episode()

    def _next_episode(self) -> None:
        episode = self.arm.episode
        if episode["phase"] == "over" and not self._on_request and episode["index"] > self._followed:
            self._followed = episode["index"]
            self._work.put(lambda: self._reset(episode["seed"] + 1))

    # -- publishing -----------------------------------------------------------------------------------------------------

    def _publish_lockstep(self, state: ArmState) -> None:
        self._publisher.clock(state.stamp_ns)
        self._publish_qpos(state.stamp_ns)
        self._publish_status()
        self._publisher.state(state, self.arm.objects)

    def _publish_realtime(self) -> None:
        periods = self.loop.drain()
        self._publisher.clock(self._time.source_ns())
        self._publisher.applied(periods, self.arm.joint_names, self._period_s)
        if periods:
            self._publisher.state(periods[-1].measured, self.arm.objects)
            self._publish_qpos(periods[-1].measured.stamp_ns)
        self._publish_status(only_news=True)
        self._publisher.episode(self.arm.episode)
        self._next_episode()

    def _publish_qpos(self, stamp_ns: int) -> None:
        # By the world's own time, so that no picture is missing where it runs faster than a clock.
        if self._world is not None and stamp_ns >= self._qpos_due_ns:
            self._qpos_due_ns = stamp_ns + _QPOS_NS
            self._publisher.qpos(self._world.qpos(), stamp_ns)

    def _publish_status(self, *, only_news: bool = False) -> None:
        status = self.loop.status()
        said = (status.state, status.reason, status.accepts, status.authority, tuple(status.holds))
        now = time.monotonic()
        if only_news and said == self._said and now < self._status_due:
            return
        self._said, self._status_due = said, now + _STATUS_S
        self._publisher.status(status, self._time.source_ns())

    def close(self) -> None:
        """Ends the threads; the arm has been told to stay where it is with every period."""
        self._closing.set()
        self._thread.join(1.0)
        self._e_stop.close()
        self.loop.close()
        self._claim.close()


def main() -> int:
    """Entry point of `arm_node`."""
    return run(ArmNode)


if __name__ == "__main__":
    raise SystemExit(main())
