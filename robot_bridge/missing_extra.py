"""A package that is not installed, told as the extra that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rl_core.errors import ArmstackError

_OWN = ("rl_core", "sim_envs", "robot_bridge")


@contextmanager
def named_extra(what: str, extra: str) -> Iterator[None]:
    """Some packages are imported where they are first used, deep inside; one that is missing or broken then ends the block.

    Args:
        what: needs it.
        extra: of the distribution that brings it, several joined by commas; empty where none is known.

    Raises:
        ArmstackError: a package cannot be imported; says which and why.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] in _OWN:
            raise
        install = f": pip install 'armstack[{extra}]'" if extra else ""
        raise ArmstackError(f"{what} needs a package that cannot be imported ({error}){install}") from error
