"""What the registries of arms, cameras and teleoperation sources check alike: settings that are given, a library that is there."""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
from collections.abc import Collection, Mapping
from typing import Any

from rl_core.errors import ArmstackError
from rl_core.training.config import Config, ConfigError


def make_settings(who: str, kind: type[Config], values: Mapping[str, Any], error: type[ArmstackError]) -> Any:
    """The settings `kind` of `who`, from `values`; an empty text is a value that was not given.

    Raises:
        error: a setting is unknown, missing or of another type; lists the valid ones.
    """
    fields = dataclasses.fields(kind)
    missing = [field.name for field in fields if _required(field) and values.get(field.name, "") == ""]
    if missing:
        valid = ", ".join(field.name for field in fields)
        raise error(f"{who}: setting {', '.join(missing)} is missing; settings: {valid}")
    try:
        return kind.from_dict(values)
    except ConfigError as found:
        raise error(f"{who}: {found}") from found


def require_library(who: str, library: str, extra: str, error: type[ArmstackError]) -> None:
    """Checks that `library`, which `who` needs, is installed.

    Raises:
        error: it is not; says which extra of armstack brings it.
    """
    if importlib.util.find_spec(library) is None:
        raise error(f"{who} needs {library}, which is not installed: pip install 'armstack[{extra}]'")


def not_known(unknown: Collection[str], valid: Collection[str]) -> str:
    """`no parameter sped (speed?); valid: ...`."""
    near = {name: difflib.get_close_matches(name, valid, 1) for name in unknown}
    return f"no parameter {', '.join(f'{n} ({near[n][0]}?)' if near[n] else n for n in unknown)}; valid: {', '.join(sorted(valid))}"


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
