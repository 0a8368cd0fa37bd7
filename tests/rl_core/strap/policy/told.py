"""Small datasets whose tasks differ in their instruction alone, and a sentence encoder without weights."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode

CONTRACT = RobotContract(
    robot="point",
    observation=(Channel(name="position", names=("x", "y"), unit="m", frame="base"),),
    action=Action(names=("x", "y"), meaning="delta", space="joint", scale=(0.1, 0.1), units=("m", "m")),
)
CAMERA = Channel(name="front_image", kind="image", shape=(40, 72, 3), encoding="rgb8", row_order="top_down")


class Hashed:
    """A vector of noise a sentence, the same in every process."""

    name, size = "hashed", 8

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        seeds = [int.from_bytes(hashlib.sha256(sentence.encode()).digest()[:4], "little") for sentence in sentences]
        return np.stack([np.random.default_rng(seed).standard_normal(self.size) for seed in seeds]).astype(np.float32)


def episode(steps: int, *, uuid: str = "e", first: float = 0.0, lang: str = "", action: Sequence[float] = (), **meta: Any) -> Episode:
    """x counts the steps from `first` on, and so does the action's x (in hundredths), where it is not given."""
    x = first + np.arange(steps + 1, dtype=np.float32)
    actions = np.tile(np.asarray(action, np.float32), (steps, 1)) if len(action) else np.stack([x[:-1] / 100, -x[:-1] / 100], 1)
    said = {"lang": lang} if lang else {}
    return Episode(
        observations={"position": np.stack([x, np.zeros_like(x)], 1)},
        actions=actions,
        rewards=np.zeros(steps, np.float32),
        terminal=True,
        truncated=False,
        stamps_ns=np.arange(steps + 1, dtype=np.int64) * 50_000_000,
        uuid=uuid,
        meta={**said, **meta},
    )


def dataset(*episodes: Episode) -> Dataset:
    return Dataset(contract=CONTRACT, episodes=episodes)


def with_camera(data: Dataset) -> Dataset:
    """The same with a camera that shows the position as a bright bar, two pixels a step."""
    episodes = []
    for each in data.episodes:
        frames = np.zeros((len(each) + 1, *CAMERA.shape), np.uint8)
        for row, x in enumerate(each.observations["position"][:, 0]):
            frames[row, :, 2 * int(x) : 2 * int(x) + 8] = 255
        episodes.append(dataclasses.replace(each, observations={**each.observations, CAMERA.name: frames}))
    contract = dataclasses.replace(data.contract, observation=(*data.contract.observation, CAMERA))
    return Dataset(contract=contract, episodes=tuple(episodes))
