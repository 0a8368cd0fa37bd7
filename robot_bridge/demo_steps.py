"""What a demo folder is and how far it has come: the settings it was started with, and the figures of its finished steps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rl_core.data.atomic import write_atomically
from rl_core.errors import ArmstackError

SETTINGS_FILE = "demo.json"
STEPS_FILE = "steps.json"

BUDGET_S = {"collect": 110, "train BC and DAC": 260, "evaluate": 110, "ROS 2 episodes": 60, "report": 30}
"""What each step may take on two cores, seconds; together below ten minutes."""


class OtherDemo(ArmstackError):
    """The folder holds a demo of other settings, or something else; lists the differences."""


def _read(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text())
    except ValueError as error:
        raise ArmstackError(f"{file}: not readable: {error}; give another --out") from error


def _write(file: Path, values: Mapping[str, Any]) -> None:
    with write_atomically(file) as opened:
        opened.write((json.dumps(values, indent=1, default=float) + "\n").encode())


def _differences(held: Any, wanted: Any, name: str = "") -> list[str]:
    if isinstance(held, dict) and isinstance(wanted, dict):
        return [line for key in wanted for line in _differences(held.get(key), wanted[key], f"{name}.{key}" if name else key)]
    return [] if held == wanted else [f"{name}: there {held!r}, asked for {wanted!r}"]


def check_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Checks that `folder` is free, or holds a demo that was started with these (JSON-able) settings.

    Raises:
        OtherDemo: it does not; lists both sides of each difference.
    """
    file = folder / SETTINGS_FILE
    if file.is_file():
        differences = _differences(_read(file), json.loads(json.dumps(settings)))
        if differences:
            raise OtherDemo(f"{folder}: holds a demo of other settings; {'; '.join(differences)}; give another --out")
        return
    found = [name for name in ("data", "bc", "dac") if (folder / name).exists()]
    if found:
        raise OtherDemo(f"{folder}: holds {', '.join(found)}, but no {SETTINGS_FILE} that says of what settings; give another --out")


def claim(folder: Path, settings: Mapping[str, Any]) -> None:
    """Notes the settings in a folder that `check_settings` let pass."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / SETTINGS_FILE).is_file():
        _write(folder / SETTINGS_FILE, settings)


class Steps:
    """Runs a demo's steps, each once: figures and seconds of the finished ones are kept in the folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / STEPS_FILE
        self._kept: dict[str, Any] = _read(self._file) if self._file.is_file() else {}
        self._rows: list[dict[str, Any]] = []

    def run(self, name: str, work: Callable[[], Any], state: Callable[[], Mapping[str, Any]] | None = None) -> Any:
        """The figures that `work()` gives, or gave in an earlier run.

        Args:
            name: of the step; see `BUDGET_S`.
            work: does it; gives JSON-able figures.
            state: what the figures belong to, e.g. hashes of bundles; looked at again after the work. An equal state means that
                nothing is to be done. None: the step is done in every run.
        """
        kept = self._kept.get(name)
        if state is not None and kept is not None and kept["state"] == json.loads(json.dumps(state())):
            self._rows.append({"step": name, "budget": BUDGET_S[name], "seconds": kept["seconds"], "reused": True})
            return kept["figures"]
        start = time.monotonic()
        figures = work()
        seconds = time.monotonic() - start
        self._rows.append({"step": name, "budget": BUDGET_S[name], "seconds": seconds, "reused": False})
        if state is not None:
            self._kept[name] = {"state": dict(state()), "seconds": seconds, "figures": figures}
            _write(self._file, self._kept)
        return figures

    def rows(self) -> list[dict[str, Any]]:
        """A row a step, with the seconds of the run that did the work and whether that was an earlier one, and their sum."""
        seconds = sum(row["seconds"] for row in self._rows)
        return [*self._rows, {"step": "together", "budget": sum(BUDGET_S.values()), "seconds": seconds, "reused": False}]
