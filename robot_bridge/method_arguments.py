"""Arguments of a command about one method: its own, and every setting of the method as `--config.NAME`, with a preset's numbers."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Annotated, Any, Protocol

import tyro

from rl_core.training.config import Config


class Configured(Protocol):
    """What has settings: a row of a registry."""

    @property
    def summary(self) -> str:
        """One line."""
        ...

    @property
    def config_class(self) -> type[Config]:
        """Its settings."""
        ...


def method_arguments(method: Configured, bases: tuple[type[Any], ...], argv: list[str], prog: str) -> Any:
    """Reads a command line.

    Args:
        method: what it is about.
        bases: dataclasses of the command's own arguments, that of the command last; its docstring is the help.
        argv: the words after the method.
        prog: how help calls the command.

    Returns:
        The arguments, with `preset` (its name) and `config` (the settings).

    Raises:
        ConfigError: there is no such preset; lists those there are.
    """
    # The preset decides the defaults that --help shows, so it is read first.
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--preset", default="default")
    config = method.config_class.preset(first.parse_known_args(argv)[0].preset)
    there = f"Named settings: {', '.join(method.config_class.presets())}; single ones are changed with --config.NAME."
    fields: list[tuple[str, Any, Any]] = [
        ("preset", Annotated[str, tyro.conf.arg(help=there)], dataclasses.field(default="default")),
        ("config", method.config_class, dataclasses.field(default=config)),
    ]
    kind = dataclasses.make_dataclass("Arguments", fields, bases=bases, frozen=True, kw_only=True)
    kind.__doc__ = f"{method.summary}.\n\n{bases[-1].__doc__}"
    return tyro.cli(kind, args=argv, prog=prog)
