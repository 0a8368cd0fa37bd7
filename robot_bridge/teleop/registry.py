"""The sources there are: name -> what it is, its settings, and what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from rl_core.training.config import Config
from rl_core.yaml_text import load_yaml
from robot_bridge.driver_settings import make_settings
from robot_bridge.teleop.base import SourceError, TeleopSource
from robot_bridge.teleop.settings import KeyboardSettings, LeaderSettings, ScriptSettings, SpaceMouseSettings


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """A source.

    Attributes:
        make: `module:callable`; takes the fields of `settings` as keywords.
        settings: its configuration.
        about: for people.
    """

    make: str
    settings: type[Config]
    about: str


SOURCES: Mapping[str, SourceEntry] = {
    "keyboard": SourceEntry(
        make="robot_bridge.teleop.keyboard:Keyboard", settings=KeyboardSettings, about="the keys of this terminal move the end effector"
    ),
    "spacemouse": SourceEntry(
        make="robot_bridge.teleop.spacemouse:SpaceMouse", settings=SpaceMouseSettings, about="a SpaceMouse moves the end effector"
    ),
    "leader": SourceEntry(
        make="robot_bridge.teleop.leader:make_leader", settings=LeaderSettings, about="a servo arm moved by hand; the joints follow it"
    ),
    "script": SourceEntry(make="robot_bridge.teleop.script:read_script", settings=ScriptSettings, about="a list of keys and motions"),
}


def find_source(name: str) -> SourceEntry:
    """The entry of `name`.

    Raises:
        SourceError: there is none; lists the names.
    """
    if name not in SOURCES:
        raise SourceError(f"no source {name!r}; sources: {', '.join(SOURCES)}")
    return SOURCES[name]


def make_source(name: str, config: str | Path = "") -> TeleopSource:
    """The source `name`, not yet open.

    Args:
        name: of the registry.
        config: YAML file with its settings; of a script, also the script itself.

    Raises:
        SourceError: no such source, or its settings cannot be used; says what would be valid.
    """
    entry = find_source(name)
    values = _values(config) if config else {}
    if entry.settings is ScriptSettings and isinstance(values, list):
        values = {"script": str(config)}
    if not isinstance(values, Mapping):
        raise SourceError(f"{config}: {type(values).__name__}, valid: the settings of {name}")
    where = (
        f"source {name} in {config}"
        if config
        else f"source {name} without a file of settings (--source-config FILE; of the node and its launch file: source_config)"
    )
    settings = make_settings(where, entry.settings, values, SourceError)
    module, _, make = entry.make.partition(":")
    arguments = {"path": settings.script} if isinstance(settings, ScriptSettings) else vars(settings)
    return cast(TeleopSource, getattr(importlib.import_module(module), make)(**arguments))


def _values(config: str | Path) -> Any:
    try:
        return load_yaml(Path(config).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SourceError(f"{config}: not readable as YAML: {error}") from error
