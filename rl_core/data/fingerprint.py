"""fingerprint: sha256 over everything a dataset means, the same in whatever format it lies on the disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.episode import Dataset


def fingerprint(dataset: Dataset) -> str:
    """sha256 (hex) over the contract and, in order, every episode's arrays, flags, uuid and meta; `source` doesn't count."""
    digest = hashlib.sha256(dataset.contract.to_json().encode())
    for episode in dataset.episodes:
        facts = [episode.uuid, episode.terminal, episode.truncated, episode.success, dict(episode.meta)]
        digest.update(json.dumps(facts, sort_keys=True).encode())
        arrays: dict[str, NDArray[Any]] = {f"observation/{name}": values for name, values in episode.observations.items()}
        arrays |= {"actions": episode.actions, "rewards": episode.rewards, "stamps_ns": episode.stamps_ns}
        if episode.action_applied is not None:
            arrays["action_applied"] = episode.action_applied
        arrays |= {f"age_ns/{name}": ages for name, ages in episode.observation_age_ns.items()}
        for name in sorted(arrays):
            values = np.ascontiguousarray(arrays[name])
            digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
            digest.update(values.data if values.size else b"")
    return digest.hexdigest()


def content_uuid(actions: NDArray[Any], observations: Mapping[str, NDArray[Any]]) -> str:
    """uuid of an episode whose file gives it none: equal for equal content, whenever and wherever it is read."""
    digest = hashlib.sha256(np.ascontiguousarray(actions).tobytes())
    for name in sorted(observations):
        digest.update(name.encode() + np.ascontiguousarray(observations[name][:1]).tobytes())
    return digest.hexdigest()[:32]
