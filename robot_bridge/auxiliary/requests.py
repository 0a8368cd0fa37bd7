"""What may be asked of a running method: a table of operations with typed arguments, and the check of what comes.

A request is JSON `{"id": ..., "op": "add_shot", "frame": 1700000000000000000, "label": "mug"}`; the operation is a method of the loaded
object, called with the arguments by name. It gives JSON-able values, frames, or bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from rl_core.errors import ArmstackError

ArgumentKind = Literal["text", "texts", "label", "number", "integer", "mapping", "frame", "bytes"]


@runtime_checkable
class Reader(Protocol):
    """A method that reads texts and may not know all of their words; those it does not know are told in the answer, `unknown_words`."""

    def unknown_words(self, texts: Sequence[str]) -> list[str]:
        """Words of the texts that mean nothing to it."""
        ...


class BadRequest(ArmstackError):
    """A request that is not in the table or does not fit it; says what would."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument.

    Attributes:
        kind: `text`; `texts`, a list of distinct ones; `label`, one of the recogniser's classes; `number`, finite; `integer`; `mapping`;
            `frame`, named in the request by the stamp (ns) of a result and given to the method as (H, W, 3) uint8; `bytes`, named by their
            sha256 (see `payloads`).
        about: what it means.
        needed: False for one that may be left out.
    """

    kind: ArgumentKind
    about: str
    needed: bool = True


@dataclass(frozen=True, kw_only=True)
class Request:
    """One operation: what it does, and its arguments by name."""

    about: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)

    def read(
        self,
        given: Mapping[str, Any],
        *,
        classes: Sequence[str] = (),
        frame: Callable[[int], Any] | None = None,
        payload: Callable[[str], bytes] | None = None,
    ) -> dict[str, Any]:
        """The arguments as the method takes them.

        Args:
            given: the request without `id` and `op`.
            classes: what a label may be.
            frame: stamp -> frame.
            payload: sha256 -> bytes.

        Raises:
            BadRequest: an argument that is unknown, missing or of another kind.
        """
        if unknown := sorted(set(given) - set(self.arguments)):
            raise BadRequest(f"no argument {', '.join(unknown)}, valid: {', '.join(self.arguments) or 'none'}")
        if missing := [name for name, argument in self.arguments.items() if argument.needed and name not in given]:
            raise BadRequest(f"{', '.join(missing)} missing: {'; '.join(f'{name}, {self.arguments[name].about}' for name in missing)}")
        kinds = {name: self.arguments[name].kind for name in given}
        for name, value in given.items():
            kind = kinds[name]
            valid = _VALID[kind](value) if kind != "label" else value in classes
            if not valid:
                raise BadRequest(f"{name}: {value!r}, valid: {', '.join(classes) if kind == 'label' else _WORDS[kind]}")
        named = {"frame": frame, "bytes": payload}
        return {name: value if (find := named.get(kinds[name])) is None else find(value) for name, value in given.items()}

    def texts(self, arguments: Mapping[str, Any]) -> list[str]:
        """All texts among the arguments that `read` gave."""
        found = []
        for name, value in arguments.items():
            found += {"text": [value], "texts": value}.get(self.arguments[name].kind, [])
        return found


def find_request(table: Mapping[str, Request], op: Any) -> Request:
    """The operation `op`.

    Raises:
        BadRequest: lists those there are.
    """
    if not isinstance(op, str) or op not in table:
        raise BadRequest(f"op {op!r}, valid: {', '.join(table) or 'none, this method takes no requests'}")
    return table[op]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_VALID: Mapping[str, Callable[[Any], bool]] = {
    "text": _is_text,
    "texts": lambda value: isinstance(value, list) and bool(value) and all(map(_is_text, value)) and len(set(value)) == len(value),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
    "integer": _is_integer,
    "mapping": lambda value: isinstance(value, dict),
    "frame": _is_integer,
    "bytes": lambda value: isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef"),
}
_WORDS = {
    "text": "text that is not empty",
    "texts": "a list of different texts",
    "number": "a finite number",
    "integer": "an integer",
    "mapping": "a JSON object",
    "frame": "the stamp of a result, in nanoseconds",
    "bytes": "a sha256 in 64 hex digits",
}
