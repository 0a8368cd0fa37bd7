"""What a teleoperator asks the arm node for: authority and episodes. Asked on a thread of its own, so that commands go on meanwhile."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node

from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.teleop.target import SOURCE

_ANSWER_S = 2.0
_RESET_S = 20.0
_RETRY_S = 0.2
Outcome = Literal["success", "failure", "discard"]


class TeleopRequests:
    """Requests in the order they were made.

    Args:
        node: the teleoperation node.
        seed: of the first episode; each further one has the next.

    Attributes:
        said: what was answered last, for the person.
        marked: episodes ended so far, by outcome.
        ending: requests to end an episode that are not answered yet.
        ended: index of the last episode that was ended here; None before the first.
    """

    def __init__(self, node: Node, seed: int) -> None:
        self.said = ""
        self.marked: dict[str, int] = {"success": 0, "failure": 0, "discard": 0}
        self.ending = 0
        self.ended: int | None = None
        self._logger: RcutilsLogger = node.get_logger()
        self._authority, self._episode = JsonClient(node, "arm/authority"), JsonClient(node, "episode")
        self._seed = seed
        self._taking = threading.Event()
        self._work: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="teleop requests", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; what waits is not asked any more."""
        while not self._work.empty():
            self._work.get_nowait()
        self._work.put(None)
        self._thread.join(_ANSWER_S + 1.0)

    def say(self, text: str) -> None:
        """Tells the person."""
        self.said = text
        if text:
            self._logger.info(text)

    def take(self, sender: str) -> None:
        """Asks for authority, unless that is under way."""
        if not self._taking.is_set():
            self._taking.set()
            self._work.put(lambda: self._take(sender))

    def release(self) -> None:
        """Gives authority back; a policy goes on by itself then."""
        self._work.put(lambda: self._ask(self._authority, {"op": "release", "source": SOURCE}, "the arm is handed back"))

    def begin(self) -> None:
        """Asks for the next episode."""
        self._work.put(self._begin)

    def end(self, outcome: Outcome) -> None:
        """Says that the episode is over, and how it went."""
        self.ending += 1
        self._work.put(lambda: self._end(outcome))

    # -- the thread -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def _take(self, sender: str) -> None:
        if not self._ask(self._authority, {"op": "take", "source": SOURCE, "sender": sender}, "you have the arm"):
            time.sleep(_RETRY_S)
        self._taking.clear()

    def _begin(self) -> None:
        if self._ask(self._episode, {"op": "reset", "seed": self._seed}, f"episode of seed {self._seed} runs", _RESET_S):
            self._seed += 1

    def _end(self, outcome: Outcome) -> None:
        request = {"op": "end", "success": outcome == "success", "discard": outcome == "discard"}
        if answer := self._ask(self._episode, request, f"episode over: {outcome}"):
            self.marked[outcome] += 1
            self.ended = answer["index"]
        self.ending -= 1

    def _ask(self, client: JsonClient, request: dict[str, Any], done: str, timeout_s: float = _ANSWER_S) -> dict[str, Any] | None:
        try:
            answer = client.call(request, timeout_s)
        except (RequestError, TimeoutError) as error:
            self.say(str(error))
            return None
        self.say(done)
        return answer
