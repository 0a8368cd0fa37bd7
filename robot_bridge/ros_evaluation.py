"""Judges a bundle over a real ROS 2 graph: starts the launch file, asks for one episode a seed, collects what the world says."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.errors import ArmstackError
from rl_core.training.evaluation import EpisodeFigures, EvaluationResult
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.ros_environment import prepare_ros_environment

if TYPE_CHECKING:
    from rich.console import Console

LAUNCH_FILE = "sim_policy"
_START_S = 120.0
_EPISODE_S = 600.0
_LINES_KEPT = 40
_FIGURE = re.compile(r"(.+)_(p50|p95|p99)_ms")


class RosRunError(ArmstackError):
    """The graph did not do what was asked; says which node ended and what it said last."""


@dataclass(frozen=True, kw_only=True)
class RosEvaluationResult(EvaluationResult):
    """An evaluation over ROS.

    Attributes:
        latency_ms: stage -> {p50, p95, p99}, milliseconds, warm-up excluded.
        policy_periods: periods the policy node acted in.
        deadline_misses: of those, periods that began late by a whole period.
        skipped_periods: periods without an observation that could be acted on.
        sim_mode: `lockstep` or `realtime`.
    """

    latency_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    policy_periods: int = 0
    deadline_misses: int = 0
    skipped_periods: int = 0
    sim_mode: str = "lockstep"


def evaluate_over_ros(
    bundle: str | Path,
    task: str,
    seeds: Sequence[int],
    *,
    horizon: int = 0,
    sim_mode: Literal["lockstep", "realtime"] = "lockstep",
    record: str | Path | None = None,
    console: Console | None = None,
) -> RosEvaluationResult:
    """One episode a seed, over topics, in a graph of its own.

    Args:
        bundle: folder of the policy bundle.
        task: of the simulated world.
        seeds: see `rl_core.training.evaluation.evaluation_seeds`.
        horizon: policy steps of an episode; 0 takes the task's.
        sim_mode: repeatable step by step, or by the clock.
        record: folder; the bag is written to `record/bag`.
        console: shows the progress.

    Raises:
        BundleError: no bundle there.
        RosRunError: a node ended, or an episode did not.
        LaunchError: the launch file cannot be run.
        RosEnvironmentError: ROS cannot be used here.
    """
    Bundle.load(bundle)
    prepare_ros_environment()
    sha256 = bundle_sha256(bundle)
    arguments = {"bundle": str(bundle), "task": task, "sim_mode": sim_mode, "episodes": "on_request", "horizon": str(horizon)}
    if record is not None:
        Path(record).mkdir(parents=True, exist_ok=True)
        arguments |= {"record": "true", "record_folder": str(Path(record) / "bag")}
    with own_domain() as (env, domain):
        lines: deque[str] = deque(maxlen=_LINES_KEPT)
        launch = Launch(read_launch_file(find_launch_file(LAUNCH_FILE), arguments), env=env, emit=lines.append)
        status = console.status("starting the ROS 2 graph") if console is not None else nullcontext()
        with launch, GraphObserver(domain, launch, lines) as observer, status as shown:
            observer.wait_until_ready(recorded=record is not None)
            rows = []
            for number, seed in enumerate(seeds, start=1):
                if shown is not None:
                    shown.update(f"episode {number} of {len(seeds)} over ROS 2, {sim_mode}")
                rows.append(observer.run_episode(seed))
            figures = observer.figures()
    result = RosEvaluationResult.from_rows(rows, sha256=sha256)
    assert isinstance(result, RosEvaluationResult)
    return dataclasses.replace(result, sim_mode=sim_mode, **figures)


@contextmanager
def own_domain() -> Iterator[tuple[dict[str, str], int]]:
    """An environment in which the graph meets no other one, on this machine or the network."""
    domain = os.getpid() % 30 + 71
    own = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    prepare_ros_environment(own)
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield {**os.environ, "OMP_NUM_THREADS": "1"}, domain
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class GraphObserver:
    """A node of this process that asks for episodes and hears what becomes of them.

    Attributes:
        context: of rclpy, for further nodes of this process in the same graph.
        node: spun while the observer is entered.
    """

    def __init__(self, domain: int, launch: Launch, lines: deque[str]) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from std_msgs.msg import String

        from robot_bridge.nodes.json_requests import JsonClient
        from robot_bridge.nodes.qos import EVENTS, STREAM, subscribe
        from robot_bridge.nodes.spin import SpinThread

        self._launch = launch
        self._lines = lines
        self._changed = threading.Condition()
        self._episode: dict[str, Any] = {}
        self._diagnostics: dict[str, dict[str, str]] = {}
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = Node("evaluation", context=self.context)
        self._client = JsonClient(self.node, "episode")
        subscribe(self.node, String, "episode", self._episode_came, EVENTS)
        subscribe(self.node, DiagnosticArray, "diagnostics", self._diagnostics_came, STREAM)
        self._thread = SpinThread(self.node)

    def __enter__(self) -> Self:
        self._thread.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.__exit__()
        self.node.destroy_node()
        self.context.try_shutdown()

    def _episode_came(self, message: Any) -> None:
        with self._changed:
            self._episode = json.loads(message.data)
            self._changed.notify_all()

    def _diagnostics_came(self, message: Any) -> None:
        with self._changed:
            for status in message.status:
                self._diagnostics[status.name] = {pair.key: pair.value for pair in status.values}
            self._changed.notify_all()

    def _wait(self, condition: Any, timeout_s: float, what: str) -> None:
        with self._changed:
            for _ in range(int(timeout_s / 0.5)):
                if self._changed.wait_for(condition, 0.5):
                    return
                self._raise_if_ended()
        raise RosRunError(f"{what} after {timeout_s:.0f} s; last output:\n{self._output()}")

    def _raise_if_ended(self) -> None:
        ended = {name: code for name, code in self._launch.exit_codes.items()}
        if ended:
            raise RosRunError(f"ended before the evaluation was done: {ended} (name: exit code); last output:\n{self._output()}")

    def _output(self) -> str:
        return "\n".join(f"  {line}" for line in list(self._lines))

    def wait_until_ready(self, *, recorded: bool) -> None:
        """Returns when the policy is active and, where asked for, the recorder listens."""
        self._wait(lambda: "policy latency" in self._diagnostics, _START_S, "the policy node is not active")
        if recorded:
            for topic, others in {"joint_states": 1, "arm/command": 1, "arm/applied": 0, "episode": 2}.items():
                heard = functools.partial(self.node.count_subscribers, topic)
                self._wait(lambda heard=heard, others=others: heard() > others, _START_S, f"the recorder does not listen to {topic}")
            # What counts is whether the sender knows of the recorder: a command sent before that is not in the bag.
            both = "the policy node does not know of arm node and recorder"
            self._wait(lambda: int(self._diagnostics["policy latency"]["listeners"]) >= 2, _START_S, both)

    def run_episode(self, seed: int) -> EpisodeFigures:
        """Asks for a reset and waits for the end of that episode."""
        return self.finish(self.begin(seed), seed)

    def begin(self, seed: int) -> int:
        """Asks for a reset; the episode's index."""
        from robot_bridge.nodes.json_requests import RequestError

        try:
            return int(self._client.call({"op": "reset", "seed": seed}, 30.0)["index"])
        except (RequestError, TimeoutError) as error:
            self._raise_if_ended()
            raise RosRunError(f"no reset to seed {seed}: {error}; last output:\n{self._output()}") from error

    def finish(self, index: int, seed: int) -> EpisodeFigures:
        """Waits for the end of an episode."""
        over = f"episode {index} (seed {seed}) is not over"
        self._wait(lambda: self._episode.get("index") == index and self._episode.get("phase") == "over", _EPISODE_S, over)
        episode = self._episode
        return EpisodeFigures(seed=seed, episode_return=episode["return"], length=episode["steps"], success=episode["success"])

    def figures(self) -> dict[str, Any]:
        """Latencies and deadline misses, from the nodes' newest `diagnostics`."""
        with self._changed:
            self._diagnostics.clear()  # what comes from now on counts the last episode too
        nodes = ("policy latency", "arm latency")
        self._wait(lambda: all(name in self._diagnostics for name in nodes), 10.0, "no diagnostics from policy and arm node")
        latency: dict[str, dict[str, float]] = {}
        for name in nodes:
            for key, value in self._diagnostics.get(name, {}).items():
                if match := _FIGURE.fullmatch(key):
                    latency.setdefault(match[1], {})[match[2]] = float(value)
        policy = self._diagnostics["policy latency"]
        counts = {"policy_periods": "periods", "deadline_misses": "missed", "skipped_periods": "skipped"}
        return {"latency_ms": latency, **{name: int(policy[key]) for name, key in counts.items()}}
