"""Calls with arguments: JSON with an `id` on `NAME/request`, the answer with the same `id` on `NAME/response`.

A request may come before the answering side knows the asker, so the client repeats it until it is answered; the server answers a
repeated `id` from memory and never does the work twice.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from rl_core.errors import ArmstackError
from robot_bridge.nodes.qos import STREAM, advertise, subscribe

_REMEMBERED = 256
_REPEAT_S = 0.5


class RequestError(ArmstackError):
    """A request that was refused; the message is the answer's `error`."""


class JsonServer:
    """Answers requests. The handler gets the request and `reply(answer)`, which any thread may call once, at once or later."""

    def __init__(self, node: Node, name: str, handler: Callable[[dict[str, Any], Callable[[Mapping[str, Any]], None]], None]) -> None:
        self._handler = handler
        self._answers: OrderedDict[str, str | None] = OrderedDict()
        self._lock = threading.Lock()
        self._publisher = advertise(node, String, f"{name}/response", STREAM)
        self._subscription = subscribe(node, String, f"{name}/request", self._received, STREAM)
        self._logger = node.get_logger()
        self._name = name

    def _received(self, message: String) -> None:
        try:
            request = json.loads(message.data)
            identity = request["id"]
        except (ValueError, TypeError, KeyError) as error:
            self._logger.warning(f"{self._name}/request: not a JSON object with an id: {error}")
            return
        with self._lock:
            if identity in self._answers:
                known = self._answers[identity]
                if known is not None:
                    self._publisher.publish(String(data=known))
                return
            self._answers[identity] = None
            while len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)

        def reply(answer: Mapping[str, Any]) -> None:
            text = json.dumps({"id": identity, **answer})
            with self._lock:
                self._answers[identity] = text
            self._publisher.publish(String(data=text))

        try:
            self._handler(request, reply)
        except RequestError as error:
            reply({"ok": False, "error": str(error)})


class JsonClient:
    """Asks a `JsonServer`. The node must be spun by another thread than the one that waits."""

    def __init__(self, node: Node, name: str) -> None:
        self._name = name
        self._waiting: dict[str, tuple[threading.Event, list[dict[str, Any]]]] = {}
        self._publisher = advertise(node, String, f"{name}/request", STREAM)
        self._subscription = subscribe(node, String, f"{name}/response", self._received, STREAM)

    def _received(self, message: String) -> None:
        try:
            answer = json.loads(message.data)
            event, answers = self._waiting[answer["id"]]
        except (ValueError, TypeError, KeyError):
            return  # an answer to somebody else
        answers.append(answer)
        event.set()

    def call(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """The answer to `request`.

        Raises:
            RequestError: the answer has `ok: false`.
            TimeoutError: no answer in `timeout_s`.
        """
        identity = uuid.uuid4().hex
        text = json.dumps({"id": identity, **request})
        event, answers = self._waiting[identity] = threading.Event(), []
        try:
            left = timeout_s
            while left > 0:
                self._publisher.publish(String(data=text))
                if event.wait(min(_REPEAT_S, left)):
                    break
                left -= _REPEAT_S
            else:
                raise TimeoutError(f"{self._name}/request: no answer to {dict(request)} in {timeout_s} s; does the node that answers run?")
        finally:
            del self._waiting[identity]
        answer = answers[0]
        if answer.get("ok") is False:
            raise RequestError(f"{self._name}: {answer.get('error', 'refused')}")
        return answer
