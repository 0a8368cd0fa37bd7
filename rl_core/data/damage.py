"""What an exception of a library says to somebody who doesn't read Python."""

from __future__ import annotations

_LENGTH = 200
"""Some libraries say all the bytes they could not read."""


def describe(error: BaseException) -> str:
    """One line without names of Python's types where there is something else to say."""
    text = " ".join(str(error).split())[:_LENGTH]
    if isinstance(error, KeyError) and error.args:
        return f"{str(error.args[0])[:_LENGTH]!r} is missing"
    if isinstance(error, TypeError | AttributeError | IndexError):
        return f"not built as expected ({text})"
    return text or type(error).__name__
