"""Requests to the auxiliary node: checked against the registry's table, done on the worker's thread, answered by the payload rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import UInt8MultiArray

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.payloads import PayloadStore, to_json
from robot_bridge.auxiliary.requests import Reader, Request, find_request
from robot_bridge.nodes.auxiliary_messages import byte_message
from robot_bridge.nodes.auxiliary_worker import AuxiliaryWorker, Busy
from robot_bridge.nodes.json_requests import JsonServer, RequestError
from robot_bridge.nodes.messages import rgb_image
from robot_bridge.nodes.qos import STREAM, advertise, subscribe

Reply = Callable[[Mapping[str, Any]], None]


class AuxiliaryRequests:
    """`~/request` and `~/response` of a node; bytes come on `~/upload` and go on `~/download`, images go on `aux/METHOD/image`.

    Args:
        node: the auxiliary node.
        method: its row, whose `asked` is the table.
        worker: gives the worker, None while the node is not active.
        images: publisher of `aux/METHOD/image`.
        store: folder for what is too large for a message; None refuses that.
    """

    def __init__(
        self, node: Node, method: AuxiliaryMethod, worker: Callable[[], AuxiliaryWorker | None], images: Any, store: Path | None
    ) -> None:
        self._method, self._worker, self._images = method, worker, images
        self._logger = node.get_logger()
        self._payloads = PayloadStore(store)
        self._download = None
        if method.carries_bytes:
            self._download = advertise(node, UInt8MultiArray, "~/download", STREAM)
            subscribe(node, UInt8MultiArray, "~/upload", self._uploaded, STREAM)
        self._server = JsonServer(node, "~", self._asked)

    def _uploaded(self, message: UInt8MultiArray) -> None:
        try:
            self._payloads.put(bytes(message.data))
        except ArmstackError as error:
            self._logger.error(f"upload: {error}", throttle_duration_sec=2.0)

    def _asked(self, request: dict[str, Any], reply: Reply) -> None:
        worker = self._worker()
        if worker is None:
            raise RequestError("the node is not active, or still waits for its camera")
        try:
            operation = find_request(self._method.asked, request.get("op"))
            given = {name: value for name, value in request.items() if name not in ("id", "op")}
            worker.ask(lambda: self._do(worker, request["op"], operation, given, reply))
        except (ArmstackError, Busy) as error:
            raise RequestError(str(error)) from error

    def _do(self, worker: AuxiliaryWorker, op: str, operation: Request, given: Mapping[str, Any], reply: Reply) -> None:
        try:
            classes = getattr(worker.loaded, "classes", ())
            arguments = operation.read(given, classes=classes, frame=worker.frames.get, payload=self._payloads.get)
            answer = self._told(getattr(worker.loaded, op)(**arguments))
            if isinstance(worker.loaded, Reader) and (unknown := worker.loaded.unknown_words(operation.texts(arguments))):
                answer["unknown_words"] = unknown
            to_json(answer)
        except ArmstackError as error:
            reply({"ok": False, "error": str(error)})
        except Exception as error:
            reply({"ok": False, "error": f"{type(error).__name__}: {error}; the node ends"})
            raise
        else:
            reply({"ok": True, **answer})

    def _told(self, result: Any) -> dict[str, Any]:
        """What the answer's JSON says of a result; images and bytes go out on their topics."""
        if isinstance(result, np.ndarray):
            stamp_ns = time.time_ns()
            for index, picture in enumerate(result):
                self._images.publish(rgb_image(picture, frame="", stamp_ns=stamp_ns + index))
            return {"images": [stamp_ns + index for index in range(len(result))]}
        if isinstance(result, bytes):
            told = self._payloads.put(result)
            if told["place"] == "message" and self._download is not None:
                self._download.publish(byte_message(result))
            return {"bytes": told}
        return {} if result is None else {"result": result}
