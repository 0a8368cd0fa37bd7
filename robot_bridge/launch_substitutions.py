"""Substitutions in launch files: `$(var NAME)`, `$(env NAME [DEFAULT])`, `$(find-pkg-share PACKAGE)`, `$(dirname)`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from rl_core.errors import ArmstackError
from robot_bridge.launch_places import package_share

_VALID = "$(var NAME), $(env NAME [DEFAULT]), $(find-pkg-share PACKAGE), $(dirname)"


class SubstitutionError(ArmstackError):
    """A substitution that cannot be made; names it and what would be valid."""


def expand(text: str, *, variables: Mapping[str, str], env: Mapping[str, str], folder: Path) -> str:
    """`text` with its `$(...)`, innermost first; `\\$` is a dollar sign.

    Args:
        text: of a launch file.
        variables: arguments and `let`s.
        env: environment.
        folder: of the launch file.

    Raises:
        SubstitutionError: one that is not supported or has no value.
        PlaceError: no such package.
    """
    out, i = "", 0
    while i < len(text):
        if text.startswith("\\$", i):
            out, i = out + "$", i + 2
        elif text.startswith("$(", i):
            depth, end = 1, i + 2
            while depth and end < len(text):
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            if depth:
                raise SubstitutionError(f"`$(` without `)` in {text!r}")
            inner = expand(text[i + 2 : end - 1], variables=variables, env=env, folder=folder)
            out, i = out + _substitute(inner, variables, env, folder), end
        else:
            out, i = out + text[i], i + 1
    return out


def _substitute(inner: str, variables: Mapping[str, str], env: Mapping[str, str], folder: Path) -> str:
    match shlex.split(inner):
        case ["dirname"]:
            return str(folder)
        case ["find-pkg-share", package]:
            return str(package_share(package))
        case ["var", name, *default] if len(default) <= 1:
            if name not in variables and not default:
                raise SubstitutionError(f"$(var {name}): not set; set are {sorted(variables)}")
            return variables[name] if name in variables else default[0]
        case ["env", name, *default] if len(default) <= 1:
            if name not in env and not default:
                raise SubstitutionError(f"$(env {name}): not in the environment, and no default given")
            return env[name] if name in env else default[0]
    raise SubstitutionError(f"$({inner}) is not supported; valid: {_VALID}")
