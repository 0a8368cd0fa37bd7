"""Bundle: a trained thing as a folder. Loading needs nothing else, and nothing in it is unpickled.

bundle.json            format, kind, method, config, contract, normaliser, fingerprint of the data, parents, metrics, versions,
                       sha256 of each tensor file
weights.safetensors    the model's parameters
arrays.safetensors     optional arrays (a certificate, states for inference)
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load_file, save_file
from torch import Tensor

from rl_core.contract import ContractError, RobotContract
from rl_core.errors import ArmstackError

BUNDLE_VERSION = 1
_TENSOR_FILES = ("weights.safetensors", "arrays.safetensors")
_LIBRARIES = ("armstack", "torch", "numpy", "tensordict", "mujoco")


class BundleError(ArmstackError):
    """A bundle that cannot be loaded; names the file, the field, what was found and what would be valid."""


def library_versions() -> dict[str, str]:
    """Installed versions of the libraries that decide what a bundle computes."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """What `bundle.json` and the tensor files hold.

    Attributes:
        kind: `policy` or an auxiliary kind.
        method: name in `rl_core.methods` (policies) or in the auxiliary registry.
        config: the method's configuration as JSON-able values.
        weights: name -> tensor.
        contract: for policies what they need; None for other kinds.
        normalizer: `Normalizer.to_dict()`, None where the method uses none.
        arrays: optional extra tensors.
        data_fingerprint: sha256 of the training data, empty where there was none.
        parents: sha256 of bundles this one was made from.
        metrics: figures measured when it was made.
    """

    kind: str
    method: str
    config: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    contract: RobotContract | None = None
    normalizer: Mapping[str, Any] | None = None
    arrays: Mapping[str, Tensor] = field(default_factory=dict)
    data_fingerprint: str = ""
    parents: tuple[str, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=library_versions)

    def save(self, folder: str | Path) -> Path:
        """Writes the bundle; an older one at `folder` is replaced in one rename, so a reader never sees half of it."""
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists() and not (folder / "bundle.json").is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise BundleError(f"{folder}: exists and is no bundle; give a new folder or an older bundle to replace")
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        tensors = {"weights.safetensors": self.weights, **({"arrays.safetensors": self.arrays} if self.arrays else {})}
        for name, group in tensors.items():
            save_file({key: tensor.detach().contiguous().clone() for key, tensor in group.items()}, part / name)
        header = {
            "version": BUNDLE_VERSION,
            "kind": self.kind,
            "method": self.method,
            "config": dict(self.config),
            "contract": json.loads(self.contract.to_json()) if self.contract else None,
            "normalizer": self.normalizer,
            "data_fingerprint": self.data_fingerprint,
            "parents": list(self.parents),
            "metrics": dict(self.metrics),
            "versions": dict(self.versions),
            "files": {name: _file_sha256(part / name) for name in tensors},
        }
        (part / "bundle.json").write_text(json.dumps(header, indent=1, sort_keys=True) + "\n")
        part.chmod(0o755)
        if folder.exists():
            old = folder.with_name(f".{folder.name}.old.part")
            shutil.rmtree(old, ignore_errors=True)
            os.rename(folder, old)
            os.rename(part, folder)
            shutil.rmtree(old)
        else:
            os.rename(part, folder)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Bundle:
        """Reads a bundle.

        Raises:
            BundleError: no bundle there, a file missing or damaged, or a version this code does not know.
        """
        folder = Path(folder)
        header_file = folder / "bundle.json"
        if not header_file.is_file():
            raise BundleError(f"{folder}: no bundle.json; give the folder that `armstack train` or `armstack export` wrote")
        try:
            header = json.loads(header_file.read_text())
            if not isinstance(header, dict):
                raise ValueError("not a JSON object")
        except ValueError as error:
            raise BundleError(f"{header_file}: not readable: {error}") from error
        if header.get("version") != BUNDLE_VERSION:
            raise BundleError(f"{header_file}: bundle version {header.get('version')!r}; this Armstack reads version {BUNDLE_VERSION}")
        try:
            contract = RobotContract.from_json(json.dumps(header["contract"])) if header["contract"] else None
            tensors = {name: _load_tensors(folder / name, sha256) for name, sha256 in header["files"].items()}
            return cls(
                kind=header["kind"],
                method=header["method"],
                config=header["config"],
                weights=tensors["weights.safetensors"],
                contract=contract,
                normalizer=header["normalizer"],
                arrays=tensors.get("arrays.safetensors", {}),
                data_fingerprint=header["data_fingerprint"],
                parents=tuple(header["parents"]),
                metrics=header["metrics"],
                versions=header["versions"],
            )
        except KeyError as error:
            raise BundleError(f"{header_file}: field {error} is missing") from error
        except (OSError, safetensors.SafetensorError) as error:
            raise BundleError(f"{folder}: weights are missing or damaged: {error}") from error
        except ContractError as error:
            raise BundleError(f"{header_file}: {error}") from error


def bundle_sha256(folder: str | Path) -> str:
    """Hash over the bundle's files in name order; two bundles with equal hashes act equally."""
    digest = hashlib.sha256()
    for file in sorted(Path(folder).iterdir()):
        if file.suffix in (".json", ".safetensors"):
            digest.update(file.name.encode() + b"\0")
            digest.update(bytes.fromhex(_file_sha256(file)))
    return digest.hexdigest()


def _file_sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _load_tensors(file: Path, sha256: str) -> dict[str, Tensor]:
    if file.name not in _TENSOR_FILES:
        raise BundleError(f"{file.parent / 'bundle.json'}: field files names {file.name!r}, valid: {', '.join(_TENSOR_FILES)}")
    if file.is_file() and _file_sha256(file) != sha256:
        raise BundleError(f"{file}: sha256 is {_file_sha256(file)}, but bundle.json has {sha256}; the file was damaged or exchanged")
    return load_file(file)
