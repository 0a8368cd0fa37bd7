"""Plans: what `experiments/METHOD.yaml` says.

runs:
  - name: pendulum               # with `seeds`, each is a run of its own: pendulum-s0, pendulum-s1, ...
    function: rl_core.training.run:online_run
    group: SAC                   # row of a table; the name if left out
    seeds: [0, 1, 2]
    config: {world: Pendulum-v1, trainer: {updates: 10000}}
tables:
  pendulum:
    row: method                  # heading of the first column
    groups: [SAC, TD3]           # rows in this order; all groups if left out
    columns: {return_mean: return}
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rl_core.errors import ArmstackError
from rl_core.yaml_text import load_yaml

ALLOWED_PACKAGES = ("rl_core", "sim_envs", "robot_bridge")
RunFunction = Callable[[dict[str, Any], int, Path], dict[str, Any]]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class ExperimentError(ArmstackError):
    """A plan, a result or a document that cannot be used; names the file, what was found and what would be valid."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: `function(config, seed, run_dir)` gives its figures."""

    method: str
    name: str
    function: str
    group: str
    seed: int
    config: Mapping[str, Any]

    def load_function(self) -> RunFunction:
        """The function; only those of our own packages are allowed.

        Raises:
            ExperimentError: another package, or nothing of that name.
        """
        module, _, attribute = self.function.partition(":")
        if module.split(".")[0] not in ALLOWED_PACKAGES or not attribute:
            raise ExperimentError(f"run {self.name!r}: function {self.function!r}, valid: module:function in {', '.join(ALLOWED_PACKAGES)}")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ExperimentError(f"run {self.name!r}: function {self.function!r}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Table:
    """How results become a table: a row a group, mean and standard error over its runs for each column."""

    name: str
    columns: Mapping[str, str]
    row: str = "run"
    groups: tuple[str, ...] = ()
    digits: int = 3


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A method's runs and tables."""

    method: str
    runs: tuple[Run, ...]
    tables: Mapping[str, Table] = field(default_factory=dict)

    def run(self, name: str) -> Run:
        """The run `name`; raises ExperimentError that lists the runs."""
        for run in self.runs:
            if run.name == name:
                return run
        raise ExperimentError(f"experiments/{self.method}.yaml: no run {name!r}, valid: {', '.join(run.name for run in self.runs)}")


def load_plan(method: str, root: Path) -> Plan:
    """Reads `root/experiments/METHOD.yaml`.

    Raises:
        ExperimentError: no such file, an unknown or missing field, a name twice, a table of a group that has no run.
    """
    file = root / "experiments" / f"{method}.yaml"
    if not _NAME.fullmatch(method) or not file.is_file():
        there = sorted(path.stem for path in (root / "experiments").glob("*.yaml"))
        raise ExperimentError(f"no experiments of {method!r}, valid: {', '.join(there) or f'none, {root} has no experiments/*.yaml'}")
    try:
        data = load_yaml(file.read_text())
    except yaml.YAMLError as error:
        raise ExperimentError(f"{file}: not YAML: {error}") from error
    _check_fields(file, "file", data, needed={"runs"}, optional={"tables"})
    runs: list[Run] = []
    for entry in data["runs"]:
        _check_fields(file, "a run", entry, needed={"name", "function"}, optional={"group", "seed", "seeds", "config"})
        seeds = entry.get("seeds", [entry.get("seed", 0)])
        for seed in seeds:
            name = f"{entry['name']}-s{seed}" if "seeds" in entry else entry["name"]
            if not _NAME.fullmatch(name):
                raise ExperimentError(f"{file}: run name {name!r}, valid: letters, digits, '_', '.', '-'")
            group = str(entry.get("group", entry["name"]))
            runs.append(Run(method=method, name=name, function=entry["function"], group=group, seed=seed, config=entry.get("config") or {}))
    names = [run.name for run in runs]
    if len(set(names)) != len(names):
        raise ExperimentError(f"{file}: run names repeat: {sorted({name for name in names if names.count(name) > 1})}")
    groups = {run.group for run in runs}
    tables = {}
    for name, entry in (data.get("tables") or {}).items():
        _check_fields(file, f"table {name!r}", entry, needed={"columns"}, optional={"row", "groups", "digits"})
        unknown = sorted(set(entry.get("groups", ())) - groups)
        if unknown:
            raise ExperimentError(f"{file}: table {name!r} has groups {unknown}, valid: {sorted(groups)}")
        tables[name] = Table(name=name, **{**entry, "groups": tuple(entry.get("groups", ()))})
    return Plan(method=method, runs=tuple(runs), tables=tables)


def _check_fields(file: Path, where: str, entry: Any, *, needed: set[str], optional: set[str]) -> None:
    found = set(entry) if isinstance(entry, dict) else set()
    if not needed <= found or found - needed - optional:
        raise ExperimentError(f"{file}: {where} has fields {sorted(found)}, valid: {sorted(needed)} and optionally {sorted(optional)}")
