"""RunFolder: what a run has finished, so that one that was stopped goes on there. JSON and safetensors; each file is whole or not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from rl_core.data.atomic import remove_stale_parts, write_atomically
from rl_core.errors import ArmstackError

_SETTINGS = "settings"


class RunFolder:
    """See the module.

    Args:
        folder: new, or of an interrupted run.
        settings: what the run depends on, JSON-able.

    Raises:
        ArmstackError: the folder holds a run of other settings; names those that differ.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        remove_stale_parts(folder)
        held = self.once(_SETTINGS, lambda: dict(settings))
        if differ := _differences(held, json.loads(json.dumps(dict(settings)))):
            raise ArmstackError(f"{folder}: a run with another {', '.join(differ)}; valid: equal settings and data, or a new --run-dir")

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """JSON of that name, made if it is not there yet.

        Raises:
            ArmstackError: a file that cannot be read.
        """
        file = self._folder / f"{name}.json"
        if file.is_file():
            try:
                return json.loads(file.read_text())
            except ValueError as error:
                raise ArmstackError(f"{file}: not readable: {error}; delete it, and it is made again") from error
        value = json.loads(json.dumps(make()))
        with write_atomically(file) as target:
            target.write((json.dumps(value, indent=1) + "\n").encode())
        return value

    def keep(self, name: str, weights: Mapping[str, Tensor]) -> None:
        """Writes weights."""
        with write_atomically(self._folder / f"{name}.safetensors") as target:
            target.write(save({key: tensor.contiguous() for key, tensor in weights.items()}))

    def kept(self, name: str) -> dict[str, Tensor] | None:
        """Weights of that name; None where there are none.

        Raises:
            ArmstackError: a file that cannot be read.
        """
        file = self._folder / f"{name}.safetensors"
        if not file.is_file():
            return None
        try:
            return load_file(file)
        except SafetensorError as error:
            raise ArmstackError(f"{file}: not readable: {error}; delete it, and it is made again") from error


def _differences(held: Mapping[str, Any], wanted: Mapping[str, Any], within: str = "") -> list[str]:
    """Names of what differs, those of a setting of settings with a dot."""
    found = []
    for name in sorted({*held, *wanted}):
        one, other = held.get(name), wanted.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found += _differences(one, other, f"{within}{name}.")
        elif one != other:
            found.append(within + name)
    return found
