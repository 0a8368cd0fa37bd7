"""What an episode is beside its arrays, as JSON: the part that every container without a place of its own for it holds alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rl_core.data.episode import Episode

_NAMES = ("uuid", "terminal", "truncated", "success", "meta")


def facts_of(episode: Episode) -> dict[str, Any]:
    """JSON-able uuid, endings, success and meta."""
    return {
        "uuid": episode.uuid,
        "terminal": bool(episode.terminal),
        "truncated": bool(episode.truncated),
        "success": None if episode.success is None else bool(episode.success),
        "meta": dict(episode.meta),
    }


def fields_from(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an `Episode` that `facts_of` wrote; raises KeyError where one is missing."""
    return {name: facts[name] for name in _NAMES}
