"""Checkpoints: a folder a step, written atomically, without pickle.

    checkpoints/step-0000001000/
        state.json            the state's tree; tensors and arrays are named in it
        tensors.safetensors   their values
        manifest.json         step and sha256 of the two, written last

A folder appears by one rename after everything in it is on disk, so a crash leaves the previous checkpoint whole. A
damaged one is found by its hashes, and the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor

from rl_core.errors import ArmstackError

_log = logging.getLogger(__name__)
_STATE, _TENSORS, _MANIFEST = "state.json", "tensors.safetensors", "manifest.json"


class CheckpointError(ArmstackError):
    """A checkpoint that cannot be written or read; names the file and what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A state and the step it belongs to."""

    step: int
    state: dict[str, Any]


class CheckpointStore:
    """The checkpoints of one run.

    Args:
        folder: where they lie.
        keep: how many of the newest stay; at least 2, so that a damaged one has a predecessor.
    """

    def __init__(self, folder: str | Path, *, keep: int = 2) -> None:
        if keep < 2:
            raise CheckpointError(f"keep is {keep}, valid: 2 or more (a damaged checkpoint needs a predecessor)")
        self.folder = Path(folder)
        self.keep = keep

    def steps(self) -> list[int]:
        """Steps that have a checkpoint, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(int(path.name.removeprefix("step-")) for path in self.folder.glob("step-*") if path.name[5:].isdigit())

    def path(self, step: int) -> Path:
        """Folder of the checkpoint of `step`."""
        return self.folder / f"step-{step:010d}"

    def save(self, step: int, state: Mapping[str, Any]) -> Path:
        """Writes a checkpoint in one rename and drops those beyond `keep`.

        Raises:
            CheckpointError: the state holds something that is neither a tensor, an array, nor a plain value.
        """
        tensors: dict[str, Tensor] = {}
        tree = json.dumps(_encode(dict(state), tensors, "state")).encode()
        files = {_STATE: tree, _TENSORS: save(tensors)}
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        files[_MANIFEST] = json.dumps({"step": step, "sha256": hashes}).encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        final = self.path(step)
        part = final.with_name(f".{final.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for name, content in files.items():
            with open(part / name, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _sync_folder(part)
        if final.exists():
            shutil.rmtree(final)
        os.rename(part, final)
        _sync_folder(self.folder)
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self.path(old))
        return final

    def load(self, step: int) -> Checkpoint:
        """The checkpoint of `step`.

        Raises:
            CheckpointError: missing or damaged.
        """
        folder = self.path(step)
        try:
            manifest = json.loads((folder / _MANIFEST).read_text())
            contents = {name: (folder / name).read_bytes() for name in (_STATE, _TENSORS)}
            for name, content in contents.items():
                if hashlib.sha256(content).hexdigest() != manifest["sha256"][name]:
                    raise CheckpointError(f"{folder / name}: damaged, its sha256 is not the one in {_MANIFEST}")
            state = _decode(json.loads(contents[_STATE]), load(contents[_TENSORS]))
            return Checkpoint(step=int(manifest["step"]), state=state)
        except CheckpointError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{folder}: damaged or incomplete: {error}") from error

    def load_newest(self) -> Checkpoint | None:
        """The newest whole checkpoint; damaged ones are named in a warning and removed. None where there was never one.

        Raises:
            CheckpointError: there are checkpoints and every one is damaged.
        """
        problems = []
        for step in reversed(self.steps()):
            try:
                checkpoint = self.load(step)
            except CheckpointError as error:
                problems.append(str(error))
                _log.warning("%s; falling back to the checkpoint before it", error)
                continue
            for damaged in self.steps():
                if damaged > step:
                    shutil.rmtree(self.path(damaged))
            return checkpoint
        if problems:
            raise CheckpointError("no checkpoint can be read:\n" + "\n".join(f"  - {problem}" for problem in problems))
        return None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _encode(value: Any, tensors: dict[str, Tensor], where: str) -> Any:
    """JSON form of a state. JSON objects are tags: {"dict": pairs}, {"tuple": items}, {"tensor": name}, {"array": name, ...}."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Tensor):
        name = f"t{len(tensors)}"
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        if array.dtype.hasobject:
            raise CheckpointError(f"{where}: an object array cannot be saved, valid: numbers")
        name = f"t{len(tensors)}"
        tensors[name] = torch.frombuffer(bytearray(array.tobytes()), dtype=torch.uint8) if array.size else torch.empty(0, dtype=torch.uint8)
        return {"array": name, "dtype": array.dtype.str, "shape": list(array.shape)}
    if isinstance(value, Mapping):
        return {"dict": [[_encode(key, tensors, where), _encode(item, tensors, f"{where}.{key}")] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_encode(item, tensors, f"{where}[{i}]") for i, item in enumerate(value)]}
    if isinstance(value, list):
        return [_encode(item, tensors, f"{where}[{i}]") for i, item in enumerate(value)]
    raise CheckpointError(f"{where}: {type(value).__name__} cannot be saved, valid: tensors, arrays, dicts, lists, tuples, numbers, text")


def _decode(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "array" in value:
        raw = tensors[value["array"]].numpy().tobytes()
        return np.frombuffer(raw, dtype=np.dtype(value["dtype"])).reshape(value["shape"]).copy()
    if "tuple" in value:
        return tuple(_decode(item, tensors) for item in value["tuple"])
    return {_decode(key, tensors): _decode(item, tensors) for key, item in value["dict"]}
