"""Configurations: frozen keyword-only dataclasses that go to JSON, come back strictly, and become a command line.

A field's one-line docstring is its help text (tyro reads it). Named presets are overrides over the defaults:

    @dataclass(frozen=True, kw_only=True)
    class BCConfig(Config):
        PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {"demo": {"updates": 3000}}
        updates: int = 100_000
        \"\"\"Gradient steps.\"\"\"

    BCConfig.preset("demo").override(batch_size=64)
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, Union

from rl_core.errors import ArmstackError


class ConfigError(ArmstackError):
    """A configuration value that cannot be used; names the field, what was found and what would be valid."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of every configuration."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able values; `from_dict` gives an equal configuration."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Reads `to_dict`'s value.

        Raises:
            ConfigError: an unknown field (the message lists the valid ones) or a value of the wrong type.
        """
        fields = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(data) - set(fields))
        if unknown:
            raise ConfigError(f"{cls.__name__} has no field {', '.join(map(repr, unknown))}; valid: {', '.join(fields)}")
        hints = typing.get_type_hints(cls)
        return cls(**{name: _coerce(f"{cls.__name__}.{name}", hints[name], value) for name, value in data.items()})

    def override(self, **values: Any) -> Self:
        """A copy with some fields changed; as strict as `from_dict`."""
        return type(self).from_dict({**self.to_dict(), **values})

    @classmethod
    def presets(cls) -> dict[str, Self]:
        """All named presets; `default` is the class's defaults."""
        return {"default": cls(), **{name: cls.from_dict(values) for name, values in cls.PRESETS.items()}}

    @classmethod
    def preset(cls, name: str) -> Self:
        """The preset `name`.

        Raises:
            ConfigError: no such preset; lists those there are.
        """
        presets = cls.presets()
        if name not in presets:
            raise ConfigError(f"{cls.__name__} has no preset {name!r}; valid: {', '.join(presets)}")
        return presets[name]

    def require_least(self, **bounds: float) -> None:
        """Checks that each named field is at least its bound; of a tuple, that it has entries and each of them is.

        Raises:
            ConfigError: names the field, what was found and the bound.
        """
        for name, least in bounds.items():
            found = getattr(self, name)
            values = found if isinstance(found, tuple) else (found,)
            if not values or not all(value >= least for value in values):  # `not all(>=)`, so that NaN is refused
                raise ConfigError(f"{type(self).__name__}.{name}: {found}, valid: {least} or more")

    def require_above_zero(self, *names: str) -> None:
        """Checks that each named field is a finite number above 0.

        Raises:
            ConfigError: names the field and what was found.
        """
        for name in names:
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{type(self).__name__}.{name}: {getattr(self, name)}, valid: finite, above 0")

    def sha256(self) -> str:
        """Hash over the values, equal for equal configurations."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def _coerce(where: str, hint: Any, value: Any) -> Any:
    """`value` as `hint` wants it: lists become tuples, mappings nested configurations, ints floats; the rest is an error."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        errors = []
        for option in arguments:
            try:
                return _coerce(where, option, value)
            except ConfigError as error:
                errors.append(str(error))
        raise ConfigError(errors[0])
    if origin is Literal:
        if value in arguments:
            return value
        raise ConfigError(f"{where}: {value!r}, valid: {', '.join(map(repr, arguments))}")
    if isinstance(hint, type) and issubclass(hint, Config):
        if isinstance(value, hint):
            return value
        if isinstance(value, Mapping):
            return hint.from_dict(value)
    elif origin is tuple and isinstance(value, (list, tuple)):
        if arguments[-1] is Ellipsis:
            return tuple(_coerce(f"{where}[{i}]", arguments[0], item) for i, item in enumerate(value))
        if len(arguments) == len(value):
            return tuple(_coerce(f"{where}[{i}]", kind, item) for i, (kind, item) in enumerate(zip(arguments, value, strict=True)))
    elif origin is not None and isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {key: _coerce(f"{where}[{key!r}]", arguments[1], item) for key, item in value.items()}
    elif hint in (None, type(None)) and value is None:
        return None
    elif hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    elif hint is bool and isinstance(value, bool) or hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    elif hint is str and isinstance(value, str):
        return value
    raise ConfigError(f"{where}: {value!r} is {type(value).__name__}, valid: {getattr(hint, '__name__', hint)}")


@dataclass(frozen=True, kw_only=True)
class TrainerConfig(Config):
    """How long to train and how often to look. What is trained is the method's own configuration."""

    updates: int = 10_000
    """Gradient steps in all."""
    log_every: int = 100
    """Updates between two lines of metrics."""
    eval_every: int = 0
    """Updates between two evaluations while training; 0 = none before the end."""
    checkpoint_every: int = 1_000
    """Updates between two checkpoints; one is also written at the end and when the run is stopped."""
    seed: int = 0
    """Seed of the whole run; every other seed is derived from it."""
    device: str = "cpu"
    """Torch device: cpu, cuda, cuda:1. Resume is bit-exact on cpu."""
    threads: int = 1
    """Torch threads of this process."""

    def __post_init__(self) -> None:
        self.require_least(updates=1, log_every=1, eval_every=0, checkpoint_every=1, seed=0, threads=1)
