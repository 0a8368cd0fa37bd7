"""What may be asked for on `sim/disturb`: a force on the simulated arm. It is no command: nothing goes around the command filter.

{"displacement": [0, 0.06, 0], "duration_s": 0.5}                      drags the hand along, metres in frame base
{"force": [0, 40, 0], "duration_s": 0.3, "body": "ee", "at_s": 5.0}    pushes it, N, 5 s after the episode began
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rclpy.node import Node

from robot_bridge.nodes.json_requests import JsonServer, RequestError
from robot_bridge.nodes.simulated_world import WorldArm
from sim_envs.arm.push import MAX_FORCE, Push

NAME = "sim/disturb"
MAX_DISPLACEMENT = 0.15
"""Metres."""
MAX_DURATION_S = 5.0
_FIELDS = {"id", "force", "displacement", "duration_s", "at_s", "body"}


def disturbance(request: Mapping[str, Any]) -> tuple[Push, float | None]:
    """Reads a request: the push, and when it begins, seconds of the arm's time after the episode began (None: now).

    Raises:
        RequestError: a field that is unknown or wrong; says what would be valid.
    """
    if unknown := sorted(set(request) - _FIELDS):
        raise RequestError(f"fields {unknown}, valid: {', '.join(sorted(_FIELDS - {'id'}))}")
    if request.get("body", "ee") != "ee":
        raise RequestError(f"body {request['body']!r}, valid: ee")
    if ("force" in request) == ("displacement" in request):
        raise RequestError(f"found {sorted(set(request) - {'id'})}, valid: either force or displacement")
    duration_s = _number(request, "duration_s", 0.01, MAX_DURATION_S)
    at_s = None if request.get("at_s") is None else _number(request, "at_s", 0.0, math.inf)
    if "force" in request:
        return Push(force=_vector(request, "force", MAX_FORCE, "N"), duration_s=duration_s), at_s
    return Push(displacement=_vector(request, "displacement", MAX_DISPLACEMENT, "m"), duration_s=duration_s), at_s


def _number(request: Mapping[str, Any], name: str, least: float, most: float) -> float:
    value = request.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (math.isfinite(value) and least <= value <= most):
        raise RequestError(
            f"{name} {value!r}, valid: a number of seconds, {least:g} or more" + (f", at most {most:g}" if most < math.inf else "")
        )
    return float(value)


def _vector(request: Mapping[str, Any], name: str, most: float, unit: str) -> np.ndarray:
    values = request[name]
    numbers = isinstance(values, list) and len(values) == 3 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if not numbers or not np.isfinite(values).all() or not 0.0 < float(np.linalg.norm(values)) <= most:
        raise RequestError(f"{name} {values!r}, valid: x, y, z in frame base, together above 0 and at most {most:g} {unit}")
    return np.array(values, np.float64)


class DisturbanceServer:
    """Answers `sim/disturb` of an arm node: {ok, at_s} of a push that will be, or why it will not.

    Args:
        node: the arm node.
        world: the simulated one; None for an arm that nothing but a person can push.
    """

    def __init__(self, node: Node, world: WorldArm | None) -> None:
        self._world = world
        self._server = JsonServer(node, NAME, self._asked)

    def _asked(self, request: dict[str, Any], reply: Callable[[Mapping[str, Any]], None]) -> None:
        if self._world is None:
            raise RequestError("this arm is no simulated one: nothing here can push it")
        push, at_s = disturbance(request)
        reply({"ok": True, "at_s": self._world.disturb(push, at_s)})
