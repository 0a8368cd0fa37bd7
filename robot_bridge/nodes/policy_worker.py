"""The policy's own thread: infers, decodes and sends, every policy period or (lockstep) at every new observation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from rclpy.impl.rcutils_logger import RcutilsLogger
from sensor_msgs.msg import JointState
from tensordict import TensorDict
from torch import Tensor
from trajectory_msgs.msg import JointTrajectory

from rl_core.errors import ArmstackError
from rl_core.policy import Policy
from robot_bridge.control.command import JointCommand
from robot_bridge.control.decode import ActionDecoder, ActionError
from robot_bridge.control.kinematics import IKError
from robot_bridge.control.runner import PolicyRunner
from robot_bridge.nodes.command_messages import action_message, command_message, no_command_message
from robot_bridge.nodes.latency import Latency
from robot_bridge.nodes.policy_inputs import PolicyInputs
from robot_bridge.nodes.policy_monitor import PolicyMonitor
from robot_bridge.nodes.spin import NodeError
from robot_bridge.nodes.task_input import TOPIC as TASK_TOPIC
from robot_bridge.nodes.timed_policy import TimedPolicy

WARM_UP_CALLS = 5
WARM_UP_PERIODS = 10
_RETRY_S = 0.2
_PATIENCE = 0.5
"""Share of a period that a chunk's next action is kept back for a newer chunk."""

Take = Callable[[], bool]
"""Asks for authority; whether it was granted. May take a while."""


class PolicyWorker:
    """Runs a policy over what `inputs` has heard. In real time a policy that gives chunks infers on another thread (`PolicyRunner`).

    Args:
        policy: fits the arm's contract.
        decoder: for the arm.
        inputs: what was heard.
        send: publishes a message on `arm/command`.
        tell: publishes a message on `policy/action`, before the command.
        sender: gid of that publisher, hex.
        take: asks for authority.
        lockstep: act once at every new observation instead of by the clock.
        logger: of the node.
        failed: told an error that ends the node.
        monitor: judges every inference; after its hold the policy waits until it is started again. None for a policy without certificate.
        subgoals: told what each inference was said to act towards (`PolicyRunner.info`) and the stamp of its observation, ns.

    Attributes:
        latency: observation age, inference, decode, publish; deadline misses.
        skipped: periods without an observation that could be acted on.
    """

    def __init__(
        self,
        policy: Policy,
        decoder: ActionDecoder,
        inputs: PolicyInputs,
        *,
        send: Callable[[JointTrajectory], None],
        tell: Callable[[JointState], None],
        sender: str,
        take: Take,
        lockstep: bool,
        logger: RcutilsLogger,
        failed: Callable[[BaseException], None],
        monitor: PolicyMonitor | None = None,
        subgoals: Callable[[Mapping[str, Tensor], int], None] = lambda info, stamp_ns: None,
    ) -> None:
        self.latency = Latency(warm_up=WARM_UP_PERIODS)
        self.skipped = 0
        self._policy = TimedPolicy(policy, self.latency)
        self._runner = PolicyRunner(self._policy, decoder, sender=sender)
        self._period_s = policy.contract.action.period_s
        self._inputs = inputs
        self._send = send
        self._tell = tell
        self._action_names = policy.contract.action.names
        self._sender = sender
        self._take = take
        self._lockstep = lockstep
        self._logger = logger
        self._failed = failed
        self._monitor = monitor
        self._subgoals = subgoals
        self._example: Mapping[str, Any] = getattr(policy, "example_condition", {})
        self._episode = (-1, -1)  # index and stamp: the index of another arm node begins anew
        self._acted: tuple[tuple[int, int], int] | None = None
        self._goal: Any = None
        self._said: dict[str, str] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="policy", daemon=True)

    def start(self) -> None:
        """Warms up, then runs until `close`."""
        self._thread.start()

    def chunks(self) -> dict[str, int]:
        """Chunks that came late, and those that came too late to be used."""
        return {"late_chunks": self._runner.late, "stale_chunks": self._runner.stale}

    def close(self) -> None:
        """Ends the thread."""
        self._closing.set()
        with self._inputs.changed:
            self._inputs.changed.notify_all()
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            with torch.no_grad():
                if self._warm_up() > 1 and not self._lockstep:
                    self._runner.infer_in_background(_PATIENCE * self._period_s)
                (self._run_lockstep if self._lockstep else self._run_realtime)()
        except ActionError as error:
            self._failed(NodeError(f"the policy gave no action that can be sent: {error}; the arm holds. Retrain or check the bundle"))
        except Exception as error:
            self._failed(error if isinstance(error, NodeError) else NodeError(f"policy: {type(error).__name__}: {error}"))
        finally:
            self._runner.close()

    def _warm_up(self) -> int:
        """The first calls, which take longest; returns how many actions a chunk has."""
        contract = self._policy.contract
        shapes = {c.name: (1, *((c.history,) if c.history > 1 else ()), *c.shape) for c in contract.observation}
        kinds = {c.name: torch.uint8 if c.kind == "image" else torch.float32 for c in contract.observation}
        zeros = TensorDict({name: torch.zeros(shape, dtype=kinds[name]) for name, shape in shapes.items()}, batch_size=[1])
        numbers = [c for c in contract.condition if c.kind != "text"]
        nowhere: dict[str, Any] = {c.name: np.eye(c.size)[-1] if c.kind == "quaternion" else np.zeros(c.size) for c in numbers}
        task = self._inputs.task
        if task is not None and task.instructions:
            nowhere[TASK_TOPIC] = task.instructions[0]
        state, condition = self._policy.reset([0]), self._policy.prepare({**nowhere, **self._example})
        for _ in range(WARM_UP_CALLS):
            chunk, state = self._policy.act(zeros, condition, state)
        return int(chunk.values.shape[1])

    # -- real time ------------------------------------------------------------------------------------------------------

    def _run_realtime(self) -> None:
        deadline = time.monotonic()
        while not self._closing.is_set():
            deadline += self._period_s
            if self._closing.wait(max(0.0, deadline - time.monotonic())):
                return
            missed = int((time.monotonic() - deadline) / self._period_s)
            deadline += missed * self._period_s
            if not self._may_act():
                self._runner.drop()
                deadline = max(deadline, time.monotonic())  # waiting for an episode or for authority misses no deadline
                continue
            problems = self._inputs.missing()
            if problems:
                self.skipped += 1
                self._runner.drop()
                self._logger.warning(f"no action: {'; '.join(problems)}", throttle_duration_sec=2.0)
                continue
            self.latency.period(missed)
            command = self._step()
            if command is not None:
                self._publish(command_message(command))

    # -- lockstep -------------------------------------------------------------------------------------------------------

    def _run_lockstep(self) -> None:
        inputs = self._inputs
        while not self._closing.is_set():
            acts = self._may_act()
            if not acts and not inputs.gate.held:  # held, it lets time pass without a command: the arm brakes, the episode ends
                with inputs.changed:
                    inputs.changed.wait(_RETRY_S)
                continue
            with inputs.changed:
                stamp_ns = inputs.complete_at()
                if stamp_ns is None or (self._episode, stamp_ns) == self._acted or not self._has_authority():
                    inputs.changed.wait(_RETRY_S)
                    continue
                self._acted = self._episode, stamp_ns
            self.latency.period(0)
            command = self._step() if acts else None
            message = command_message(command) if command is not None else no_command_message("policy", stamp_ns)
            self._publish(message)

    # -- shared ---------------------------------------------------------------------------------------------------------

    def _has_authority(self) -> bool:
        status = self._inputs.status
        return status.authority == "policy" and status.sender == self._sender

    def _may_act(self) -> bool:
        """Follows goals and episodes; asks for authority where the policy may have it. True when the policy may act."""
        if not self._is_told():
            return False
        episode = self._inputs.episode
        if episode is None or episode["phase"] != "running":
            return False
        which = episode["index"], episode["stamp_ns"]
        if which != self._episode:
            self._runner.reset(int(episode["seed"]))
            if self._monitor is not None:
                self._monitor.reset()
            self._episode, self._acted = which, None
            return not self._waits() and self._ask()
        if self._waits():
            return False
        if self._has_authority():
            return True
        return self._inputs.status.state in ("moving", "holding") and self._ask()

    def _is_told(self) -> bool:
        """Takes up a new goal or task. Without one that is needed the policy neither acts nor asks for authority."""
        with self._inputs.changed:
            goal, task, missing = self._inputs.goal.value, self._inputs.task, self._inputs.not_told()
            said = dict(task.condition) if task is not None else {}
        if missing:
            self._logger.warning(f"no action: {missing}", throttle_duration_sec=2.0)
            return False
        if goal is not self._goal or said != self._said:
            condition: dict[str, Any] = {**(goal or {}), **said}
            try:
                self._runner.set_condition(condition)
            except ArmstackError as error:
                if goal is None:
                    raise
                with self._inputs.changed:
                    self._inputs.goal.refuse(goal, str(error))
                return self._is_told()
            shown = {name: value if isinstance(value, str) else value.round(3).tolist() for name, value in condition.items()}
            self._logger.info(f"goal: {', '.join(f'{name} {value}' for name, value in shown.items())}")
        self._goal, self._said = goal, said
        return True

    def _waits(self) -> bool:
        reason = self._inputs.gate.waits
        if reason:
            self._logger.warning(reason, throttle_duration_sec=5.0)
        elif self._monitor is not None and self._monitor.held:
            self._monitor.resume()
        return bool(reason)

    def _ask(self) -> bool:
        if self._take():
            self._acted = None
            return True
        self._closing.wait(_RETRY_S)
        return False

    def _step(self) -> JointCommand | None:
        snapshot, status = self._inputs.snapshot(), self._inputs.status
        self.latency.add("observation_age", max(0, self._inputs.now_ns() - snapshot.stamp_ns) * 1e-9)
        start, command = time.perf_counter(), None
        try:
            command = self._runner.step(
                snapshot.observation, snapshot.stamp_ns, snapshot.measured, accepts=status.accepts, moving=status.state == "moving"
            )
            return command if self._certified(snapshot.stamp_ns) else None
        except IKError as error:
            self._logger.warning(f"no action: {error}", throttle_duration_sec=2.0)
            return None
        finally:
            self.latency.add("decode", time.perf_counter() - start - self._runner.waited_s)
            if self._runner.inferred:
                self._subgoals(self._runner.info, snapshot.stamp_ns if command is None else command.stamp_ns)
            if self._runner.action is not None:
                stamp_ns, source = snapshot.measured.stamp_ns, self._runner.source
                self._tell(action_message(self._action_names, self._runner.action, stamp_ns=stamp_ns, source=source))

    def _certified(self, stamp_ns: int) -> bool:
        """Whether the certificate lets what was just inferred be sent; from a hold on the policy waits."""
        if self._monitor is None or not self._runner.inferred:
            return True
        reason = self._monitor.judge(self._runner.info, stamp_ns)
        if reason:
            with self._inputs.changed:
                self._inputs.gate.hold(reason)
        return not reason

    def _publish(self, message: Any) -> None:
        start = time.perf_counter()
        self._send(message)
        self.latency.add("publish", time.perf_counter() - start)
