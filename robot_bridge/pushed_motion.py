"""Episodes over a real ROS 2 graph in which something pushes the arm on its way; recorded into a bag."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_core.training.evaluation import EpisodeFigures
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.ros_environment import prepare_ros_environment
from robot_bridge.ros_evaluation import GraphObserver, RosRunError, own_domain

if TYPE_CHECKING:
    from rclpy import Context

    from robot_bridge.nodes.policy_node import PolicyNode

LAUNCH_FILE = "contractive_draw"
_LINES_KEPT = 40
_ANSWER_S = 20.0
_TRIES = 3


class PushedGraph(GraphObserver):
    """Asks for episodes, and for pushes in them."""

    def __init__(self, domain: int, launch: Launch, lines: deque[str]) -> None:
        from robot_bridge.nodes.disturbance_requests import NAME
        from robot_bridge.nodes.json_requests import JsonClient

        super().__init__(domain, launch, lines)
        self._pushes = JsonClient(self.node, NAME)

    def greet(self) -> None:
        """Asks for a push that is none, so that arm node and observer know each other before one is due; waits until a certificate, told
        from the first inference on, is recorded."""
        from robot_bridge.nodes.json_requests import RequestError
        from robot_bridge.nodes.policy_monitor import TOPIC

        told = f"the recorder does not listen to {TOPIC}"
        self._wait(lambda: not self.node.count_publishers(TOPIC) or self.node.count_subscribers(TOPIC) > 0, _ANSWER_S, told)
        try:
            self._pushes.call({}, _ANSWER_S)
        except RequestError:
            return

    def pushed_episode(self, seed: int, push: Mapping[str, Any] | None) -> EpisodeFigures:
        """One episode from `seed`; `push` is a request of `sim/disturb`, None lets the arm alone.

        Raises:
            RosRunError: a node ended, or the push came too late three times.
        """
        from robot_bridge.nodes.json_requests import RequestError

        for _ in range(_TRIES):
            index, late = self.begin(seed), ""
            if push is not None:
                try:
                    self._pushes.call(push, _ANSWER_S)
                except (RequestError, TimeoutError) as error:
                    late = str(error)
            figures = self.finish(index, seed)
            if not late:
                return figures
        raise RosRunError(f"no push in an episode from seed {seed}: {late}")


@contextmanager
def pushed_graph(
    bag: Path, arguments: Mapping[str, str], make_policy: Callable[[Context], PolicyNode] | None = None
) -> Iterator[PushedGraph]:
    """The graph of `launch/contractive_draw` with the simulated arm, in a ROS domain of its own, each episode asked for.

    Args:
        bag: folder it is recorded into.
        arguments: of the launch file.
        make_policy: makes the policy node in this process instead of the launched one.

    Raises:
        RosRunError: a node ended before all were ready.
    """
    prepare_ros_environment()
    bag.parent.mkdir(parents=True, exist_ok=True)
    file = find_launch_file(LAUNCH_FILE)
    given = {"record": "true", "record_folder": str(bag), "episodes": "on_request", "arm_config": str(file.parent / "config/sim_arm.yaml")}
    given |= arguments
    if make_policy is not None:
        given |= {"policy": "false"}
    with own_domain() as (env, domain), ExitStack() as stack:
        lines: deque[str] = deque(maxlen=_LINES_KEPT)
        launch = Launch(read_launch_file(file, given), env=env, emit=lines.append)
        stack.enter_context(launch)
        graph = stack.enter_context(PushedGraph(domain, launch, lines))
        if make_policy is not None:
            stack.enter_context(_spun(make_policy(graph.context)))
        graph.wait_until_ready(recorded=True)
        graph.greet()
        yield graph


@contextmanager
def _spun(node: PolicyNode) -> Iterator[None]:
    from robot_bridge.nodes.spin import SpinThread

    try:
        with SpinThread(node, failure=node.failure):
            yield
            node.failure.raise_reported()
    finally:
        node.close()
        node.destroy_node()


def run_pushes(
    bag: Path,
    arguments: Mapping[str, str],
    episodes: Sequence[tuple[int, Mapping[str, Any] | None]],
    *,
    make_policy: Callable[[Context], PolicyNode] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[EpisodeFigures]:
    """Plays (seed, push) one after the other; see `pushed_graph`. The bag is closed when it returns."""
    with pushed_graph(bag, arguments, make_policy) as graph:
        figures = []
        for number, (seed, push) in enumerate(episodes, start=1):
            say(f"episode {number} of {len(episodes)}")
            figures.append(graph.pushed_episode(seed, push))
        return figures
