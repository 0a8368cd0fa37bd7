"""Goals over a real ROS 2 graph in lockstep: each is told on `goal_pose`, an episode is played, and the hand's way is kept."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.errors import ArmstackError
from rl_core.policy import Policy
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.ros_evaluation import GraphObserver, RosRunError, own_domain

LAUNCH_FILE = "dvfb_goals"
_LINES_KEPT = 40
_ANSWER_S = 30.0
_UNTURNED = (0.0, 0.0, 0.0, 1.0)

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class GoalMotion:
    """What became of one goal.

    Attributes:
        goal: (3,) metres, frame base.
        seed: of the episode.
        hand: (T, 3) its positions, metres, the start first; empty where the goal was refused.
        prepared_s: how long the policy took to take the goal up.
        refused: why it did not; empty where it did.
    """

    goal: Array
    seed: int
    hand: Array
    prepared_s: float
    refused: str = ""


class ToldPolicy:
    """A policy, and what became of each condition that it was told.

    Attributes:
        answers: how long `prepare` took, seconds, and why it refused; empty where it did not.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.contract, self.reset, self.reset_rows, self.act = policy.contract, policy.reset, policy.reset_rows, policy.act
        self.example_condition: Mapping[str, Any] = getattr(policy, "example_condition", {})
        self.answers: queue.Queue[tuple[float, str]] = queue.Queue()

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """See `Policy.prepare`."""
        started, refused = time.perf_counter(), ""
        try:
            return self._policy.prepare(condition)
        except ArmstackError as error:
            refused = str(error)
            raise
        finally:
            self.answers.put((time.perf_counter() - started, refused))


class GoalGraph(GraphObserver):
    """Tells goals and asks for episodes.

    Args:
        policy: of the policy node, which runs in this process.
    """

    def __init__(self, domain: int, launch: Launch, lines: deque[str], policy: ToldPolicy) -> None:
        from geometry_msgs.msg import PoseStamped

        from robot_bridge.nodes.goal_input import TOPIC
        from robot_bridge.nodes.qos import STREAM, advertise, subscribe

        super().__init__(domain, launch, lines)
        self._policy = policy
        self._hand: dict[int, Array] = {}
        self._arrived = threading.Condition()
        self._goals = advertise(self.node, PoseStamped, TOPIC, STREAM)
        subscribe(self.node, PoseStamped, "ee_pose", self._pose_came, STREAM)

    def _pose_came(self, message: Any) -> None:
        from robot_bridge.nodes.messages import pose_arrays
        from robot_bridge.nodes.stamps import to_ns

        with self._arrived:
            self._hand[to_ns(message.header.stamp)] = pose_arrays(message, what="ee_pose")[0]
            self._arrived.notify_all()

    def send_to(self, goal: Array, seed: int) -> GoalMotion:
        """Tells a goal (3,), metres in frame base, and plays the episode of `seed`.

        Raises:
            RosRunError: a node ended, or the policy node heard no goal.
        """
        from robot_bridge.nodes.messages import pose

        self._wait(lambda: self._goals.get_subscription_count() > 0, _ANSWER_S, "the policy node does not listen to goal_pose")
        while not self._policy.answers.empty():  # what it was warmed up with
            self._policy.answers.get()
        self._goals.publish(pose(goal, np.array(_UNTURNED), frame="base", stamp_ns=0))
        try:
            # Time stands still in lockstep: the policy knows the goal before the episode begins.
            prepared_s, refused = self._policy.answers.get(timeout=_ANSWER_S)
        except queue.Empty as error:
            raise RosRunError(
                f"the policy node did not take up the goal {goal.round(3).tolist()}; valid: a place in the workspace"
            ) from error
        if refused:
            return GoalMotion(goal=goal, seed=seed, hand=np.zeros((0, 3)), prepared_s=prepared_s, refused=refused)
        index = self.begin(seed)
        self.finish(index, seed)
        begin, period = int(self._episode["stamp_ns"]), round(self._policy.contract.action.period_s * 1e9)
        end = begin + int(self._episode["steps"]) * period
        with self._arrived:
            if not self._arrived.wait_for(lambda: end in self._hand, _ANSWER_S):
                raise RosRunError(f"no ee_pose at the end of episode {index} (seed {seed})")
            hand = np.array([self._hand[stamp] for stamp in sorted(self._hand) if begin <= stamp <= end])
            self._hand.clear()
        return GoalMotion(goal=goal, seed=seed, hand=hand, prepared_s=prepared_s)


def play_goals(
    policy: Policy,
    goals: Sequence[Array],
    seeds: Sequence[int],
    *,
    task: str,
    horizon: int,
    say: Callable[[str], None] = lambda line: None,
) -> list[GoalMotion]:
    """Sends the simulated arm's hand to one goal after the other, an episode each, in a ROS domain of its own.

    Args:
        policy: is told goals; its node runs in this process.
        goals: (3,) each, metres in frame base, inside the arm's workspace.
        seeds: one for each goal, which decides where the hand starts.
        task: world of the simulated arm.
        horizon: policy steps for each goal.
        say: told of the progress.

    Raises:
        RosRunError: a node ended, or an episode did not.
    """
    file = find_launch_file(LAUNCH_FILE)
    arguments = {"task": task, "sim_mode": "lockstep", "episodes": "on_request", "horizon": str(horizon), "policy": "false"}
    arguments |= {"arm_config": str(file.parent / "config/sim_arm.yaml")}
    with own_domain() as (env, domain), ExitStack() as stack:
        from robot_bridge.nodes.policy_node import PolicyNode
        from robot_bridge.nodes.spin import SpinThread

        lines: deque[str] = deque(maxlen=_LINES_KEPT)
        launch = stack.enter_context(Launch(read_launch_file(file, arguments), env=env, emit=lines.append))
        told = ToldPolicy(policy)
        graph = stack.enter_context(GoalGraph(domain, launch, lines, told))
        node = PolicyNode(policy=told, context=graph.context)
        stack.callback(node.destroy_node)
        stack.callback(node.close)
        stack.enter_context(SpinThread(node, failure=node.failure))
        graph.wait_until_ready(recorded=False)
        motions = []
        for number, (goal, seed) in enumerate(zip(goals, seeds, strict=True), start=1):
            say(f"goal {number} of {len(goals)}")
            motions.append(graph.send_to(np.asarray(goal, np.float64), seed))
            node.failure.raise_reported()
        return motions
