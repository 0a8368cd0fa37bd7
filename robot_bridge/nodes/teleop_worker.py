"""The teleoperator's own thread: reads the source every period, follows its events, and sends what it asks for."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.impl.rcutils_logger import RcutilsLogger
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rl_core.contract import Action
from robot_bridge.nodes.command_messages import action_message, command_message
from robot_bridge.nodes.policy_inputs import PolicyInputs
from robot_bridge.nodes.spin import NodeError
from robot_bridge.nodes.teleop_requests import TeleopRequests
from robot_bridge.teleop.base import Event, Reading, SourceError, TeleopSource, View
from robot_bridge.teleop.target import SOURCE, TeleopTarget

SPEEDS = (0.05, 0.1, 0.2, 0.3, 0.45, 0.7, 1.0)
_LATE_PERIODS = 2.0  # a period that took longer moves the target no further


class TeleopWorker:
    """Sends commands while the person has the arm, every period, until `close`.

    Args:
        sources: the first one moves the arm; events are taken from all.
        targets: of each kind of action the arm understands, with that action; the one to act in by itself first. While a policy acts,
            its kind is taken, so that both are of one dataset.
        inputs: what was heard.
        requests: asks the arm node.
        unheard: why an episode that began now would not be recorded; empty where it would, or nobody wants it recorded.
        send: publishes a message on `arm/command`.
        tell: publishes a message on `policy/action`, before the command.
        sender: gid of the publisher of commands, hex.
        speed: share of the highest at first.
        logger: of the node.
        failed: told an error that ends the node.
        quit: called when the person wants to end.

    Attributes:
        speed: share of the highest.
        engaged: the person wants the arm.
        following: the arm follows.
        refused: why what is asked for is not followed; empty where it is.
    """

    def __init__(
        self,
        sources: Sequence[TeleopSource],
        targets: Sequence[tuple[Action, TeleopTarget]],
        inputs: PolicyInputs,
        requests: TeleopRequests,
        *,
        unheard: Callable[[], str],
        send: Callable[[JointTrajectory], None],
        tell: Callable[[JointState], None],
        sender: str,
        speed: float,
        logger: RcutilsLogger,
        failed: Callable[[BaseException], None],
        quit: Callable[[], None],
    ) -> None:
        self.speed = speed
        self.engaged = False
        self.following = False
        self.refused = ""
        self._sources, self._targets, self._chosen = sources, targets, targets[0]
        self._inputs, self._requests, self._unheard = inputs, requests, unheard
        self._send, self._tell, self._sender = send, tell, sender
        self._logger, self._failed, self._quit = logger, failed, quit
        self._acting: tuple[Action, TeleopTarget] | None = None
        self._gripper: float | None = None  # where it was sent last in this episode, by whoever
        self._episode: Any = None
        self._events: list[Event] = []
        self._beginning = False  # an episode was asked for that waits until it is heard
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="teleop", daemon=True)

    def start(self) -> None:
        """Reads and sends until `close`."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread and gives the sources back."""
        self._closing.set()
        self._thread.join(5.0)
        for source in self._sources:
            source.close()

    def ask(self, event: Event) -> None:
        """An event that came over ROS, followed in the next period."""
        self._events.append(event)

    def heard(self, names: tuple[str, ...], last: float | None) -> None:
        """Another sender's action: what it is of, and its last value, which is the gripper's where there is one."""
        for action, target in self._targets:
            if sorted(action.names) == sorted(names):
                self._chosen, self._gripper = (action, target), last if action.gripper is not None else None
                return

    # -- the thread -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        period_s = min(action.period_s for action, _ in self._targets)
        deadline = before = time.monotonic()
        try:
            while True:
                deadline = max(deadline + period_s, time.monotonic())
                if self._closing.wait(deadline - time.monotonic()):
                    return
                now = time.monotonic()
                self._step(now, min(now - before, _LATE_PERIODS * period_s))
                before = now
        except SourceError as error:
            self._failed(NodeError(f"{error}. No command follows: the arm holds. Start teleoperation again, and take the arm anew"))
        except Exception as error:
            self._failed(error if isinstance(error, NodeError) else NodeError(f"teleop: {type(error).__name__}: {error}"))
        finally:
            self.following = False

    def _step(self, now_s: float, period_s: float) -> None:
        episode = self._inputs.episode
        which = None if episode is None else (episode["index"], episode.get("stamp_ns"))
        if which != self._episode:
            self._episode, self._gripper = which, None
        view = View(now_s=now_s, following=self.following, recording=self._recording)
        readings = [source.read(view) for source in self._sources]
        asked, self._events = self._events, []
        toggle = False
        for event in [*asked, *(event for reading in readings for event in reading.events)]:
            if event == "gripper":
                toggle = not toggle
            else:
                self._follow(event)
        if self._beginning:
            self._begin()
        if not self._may_act():
            self._acting = None
            self.following = False
            return
        self._act(readings[0], period_s, toggle)

    @property
    def _recording(self) -> bool:
        episode = self._inputs.episode
        return episode is not None and bool(episode["phase"] == "running")

    def _follow(self, event: Event) -> None:
        match event:
            case "take":
                with self._inputs.changed:
                    refused = self._inputs.gate.start()
                self.engaged = refused is None
                self._requests.say(refused or "")
            case "release":
                self.engaged = False
                self._requests.release()
            case "begin" if self._recording:
                self._requests.say("an episode runs: end it first (y success, n failure, x discard)")
            case "begin":
                self._beginning = True
            case "success" | "failure" | "discard":
                self._beginning = False
                self._requests.end(event)
            case "faster" | "slower":
                near = min(range(len(SPEEDS)), key=lambda i: abs(SPEEDS[i] - self.speed))
                self.speed = SPEEDS[min(max(near + (1 if event == "faster" else -1), 0), len(SPEEDS) - 1)]
            case "quit":
                self._quit()

    def _begin(self) -> None:
        """Asks for the episode as soon as it would be recorded."""
        unheard = self._unheard()
        self._beginning = bool(unheard)
        if not unheard:
            self._requests.begin()
        elif (waiting := f"the episode begins once it is recorded: {unheard}") != self._requests.said:
            self._requests.say(waiting)

    def _may_act(self) -> bool:
        """Whether the arm would follow a command; asks for authority where the person wants it and does not have it."""
        status = self._inputs.status
        if self._inputs.gate.waits:
            self.engaged = False  # after an e-stop, a fault or a lost arm it is taken anew, by a person
        if not self.engaged:
            return False
        if (status.authority, status.sender) != (SOURCE, self._sender):
            if status.state in ("moving", "holding"):
                self._requests.take(self._sender)
            return False
        if not status.accepts:
            return False
        problems = self._inputs.missing()
        if problems:
            self._logger.warning(f"no command: {'; '.join(problems)}", throttle_duration_sec=2.0)
        return not problems

    def _act(self, reading: Reading, period_s: float, toggle: bool) -> None:
        measured = self._inputs.snapshot().measured
        if self._acting is None:
            self._acting = self._chosen
            self._acting[1].start(measured, self._gripper)
        action, target = self._acting
        if toggle:
            reading = dataclasses.replace(reading, gripper=target.other_gripper)
        values, command = target.command(
            reading, measured, speed=self.speed, period_s=period_s, stamp_ns=measured.stamp_ns, sender=self._sender
        )
        if target.refused and target.refused != self.refused:
            self._logger.warning(target.refused, throttle_duration_sec=2.0)
        self.refused = target.refused
        self._gripper = float(values[-1]) if action.gripper is not None else None
        self._tell(action_message(action.names, values, stamp_ns=measured.stamp_ns, source=SOURCE))
        self._send(command_message(command))
        self.following = True
