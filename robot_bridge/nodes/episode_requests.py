"""What may be asked for on `episode/request`, and how an episode ends because somebody said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robot_bridge.nodes.json_requests import RequestError


@dataclass(frozen=True)
class Reset:
    """The next episode begins, from `seed`."""

    seed: int


@dataclass(frozen=True)
class End:
    """The episode that runs is over: it was a success or not; a recorder keeps none that is to be discarded."""

    success: bool
    discard: bool


def episode_request(request: Mapping[str, Any], task: str) -> Reset | End:
    """Reads a request to an arm node whose world has `task`.

    Raises:
        RequestError: an unknown `op`, or a field that is wrong; says what would be valid.
    """
    if request.get("op") == "end":
        success, discard = request.get("success", False), request.get("discard", False)
        if not isinstance(success, bool) or not isinstance(discard, bool):
            raise RequestError(f"success {success!r}, discard {discard!r}, valid: true or false")
        return End(success, discard)
    if request.get("op") != "reset":
        raise RequestError(f"op {request.get('op')!r}, valid: reset, end")
    if request.get("task", task) != task:
        raise RequestError(f"task {request['task']!r}; this world has {task!r}: start the launch with task:={request['task']}")
    seed = request.get("seed")
    if not isinstance(seed, int) or seed < 0:
        raise RequestError(f"seed {seed!r}, valid: an integer, 0 or more")
    return Reset(seed)


def ended(episode: Mapping[str, Any], end: End) -> dict[str, Any]:
    """The record of an episode after `end`.

    Raises:
        RequestError: none runs.
    """
    if episode["phase"] != "running":
        raise RequestError("no episode runs; valid: op reset begins one")
    return {**episode, "phase": "over", "success": end.success, **({"discarded": True} if end.discard else {})}


def end_answer(arm: Any, end: End) -> dict[str, Any]:
    """Ends the episode of `arm`; gives the answer to whoever asked."""
    try:
        arm.end_episode(end)
    except RequestError as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True, **arm.episode}
