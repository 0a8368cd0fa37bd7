"""Hash of a run: its function, configuration and seed, and the code that decides its result.

The code is the method's own modules and all modules of rl_core and robot_bridge.auxiliary they import, directly or not, plus the module of
the run's function. Comments, docstrings and formatting do not count, so rewording a sentence makes no result stale.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from rl_core.experiments.plan import Run


def run_hash(run: Run, root: Path) -> str:
    """sha256 of `run` with the code under `root`."""
    facts = json.dumps({"function": run.function, "config": run.config, "seed": run.seed}, sort_keys=True)
    digest = hashlib.sha256(facts.encode())
    function = run.function.partition(":")[0]
    own = [module for method in methods_of(run) for module in method_modules(method, root)]
    modules = {**imported_modules(own, root), function: _sources([function], root)[function]}
    for name in sorted(modules):
        digest.update(f"\0{name}\0".encode() + code_text(modules[name]).encode())
    return digest.hexdigest()


def methods_of(run: Run) -> list[str]:
    """Methods whose code decides `run`: its own, or those its configuration names, one or a list, where an experiment compares several."""
    named = run.config.get("method", run.method)
    return [str(each) for each in named] if isinstance(named, list) else [str(named)]


def method_modules(method: str, root: Path) -> list[str]:
    """A method's own modules: what the registry names, or else the folder `rl_core/METHOD` or `robot_bridge/auxiliary/METHOD`."""
    from rl_core.method_list import METHODS  # here, so that a worker and the docs' check start without torch

    if method in METHODS:
        entry = METHODS[method]
        return sorted({name.partition(":")[0] for name in (entry.config, entry.learner, entry.policy, entry.train, entry.select) if name})
    files = [file for room in ("rl_core", "robot_bridge/auxiliary") for file in (root / room / method).glob("*.py")]
    return sorted(".".join(file.relative_to(root).with_suffix("").parts) for file in files)


def imported_modules(start: Iterable[str], root: Path) -> dict[str, Path]:
    """`start` and all modules of rl_core and of the auxiliary methods reached from them: name -> file."""
    found: dict[str, Path] = {}
    waiting, seen = list(start), set[str]()
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        for name, file in _sources([asked], root).items():
            if _followed(name) and name not in found:
                found[name] = file
                waiting += filter(_followed, _imports(file.read_text()))
    return found


def _followed(name: str) -> bool:
    return f"{name}.".startswith(("rl_core.", "robot_bridge.auxiliary."))


def _sources(names: Iterable[str], root: Path) -> dict[str, Path]:
    """Files of modules and of the packages they lie in; names that are no module (a class, say) are left out."""
    files = {}
    for name in names:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            path = root.joinpath(*parts[:end])
            for file in (path / "__init__.py", path.with_suffix(".py")):
                if file.is_file():
                    files[".".join(parts[:end])] = file
    return files


@cache
def _imports(source: str) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


def code_text(file: Path) -> str:
    """The file's code alone: without comments, docstrings and formatting."""
    return _stripped(file.read_text())


@cache
def _stripped(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                kept = [statement for statement in statements if not _is_text(statement)]
                setattr(node, block, kept or ([ast.Pass()] if statements else []))
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, or a field's docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
