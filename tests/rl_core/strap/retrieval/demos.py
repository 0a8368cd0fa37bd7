"""Small demonstrations of a made-up arm: its end effector goes through way-points and rests at each, a camera sees it as a square."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode

AXES = ("x", "y", "z")
CONTRACT = RobotContract(
    robot="toy",
    observation=(
        Channel(name="eef_pos", names=AXES, unit="m", frame="base"),
        Channel(name="gripper_pos", names=("finger",), unit="m"),
        Channel(name="front", kind="image", shape=(24, 24, 3), encoding="rgb8", row_order="top_down"),
    ),
    action=Action(names=AXES, meaning="delta", space="end_effector", scale=(0.05,) * 3, units=("m",) * 3, period_s=0.05),
)


def path(points: NDArray[np.float64], steps: int = 24) -> NDArray[np.float64]:
    """(len(points) - 1) * steps + 1 positions: `steps` steps from one point to the next, the last three of them at rest."""
    shares = np.minimum(np.arange(1, steps + 1) / (steps - 3), 1.0)
    moves = [a + (b - a) * shares[:, None] for a, b in zip(points[:-1], points[1:], strict=True)]
    return np.concatenate([points[:1], *moves])


def demo(points: NDArray[np.float64], *, uuid: str, lang: str, seed: int = 0, steps: int = 24) -> Episode:
    """A demonstration along `path`, with a little noise in the finger."""
    rng = np.random.default_rng(seed)
    positions = path(points, steps)
    count = len(positions) - 1
    finger = (0.04 + 0.001 * rng.normal(size=(count + 1, 1))).astype(np.float32)
    pictures = np.full((count + 1, 24, 24, 3), 40, np.uint8)
    for picture, (x, y, _) in zip(pictures, np.clip(positions * 20 + 2, 0, 20).astype(int), strict=True):
        picture[y : y + 4, x : x + 4] = (220, 60, 30)
    return Episode(
        observations={"eef_pos": positions.astype(np.float32), "gripper_pos": finger, "front": pictures},
        actions=(np.diff(positions, axis=0) / 0.05).astype(np.float32),
        rewards=np.zeros(count, np.float32),
        terminal=False,
        truncated=True,
        stamps_ns=np.arange(count + 1, dtype=np.int64) * 50_000_000,
        success=True,
        uuid=uuid,
        meta={"lang": lang, "primitives": [["move", 0, count]]},
    )


A, B, C, D = (np.array(point) for point in ((0.1, 0.1, 0.2), (0.8, 0.1, 0.2), (0.8, 0.8, 0.3), (0.1, 0.8, 0.1)))


def corpus() -> Dataset:
    """Tasks A-B-C, B-C-D and D-A-B, four demonstrations each."""
    tasks = {"go a b c": (A, B, C), "go b c d": (B, C, D), "go d a b": (D, A, B)}
    episodes = []
    for number in range(12):
        lang = list(tasks)[number % 3]
        rng = np.random.default_rng(number)
        points = np.array(tasks[lang]) + 0.01 * rng.normal(size=(3, 3))
        episodes.append(demo(points, uuid=f"prior-{number}", lang=lang, seed=number, steps=22 + number % 4))
    return Dataset(contract=CONTRACT, episodes=tuple(episodes), source="corpus")


def target() -> Dataset:
    """A task that is in no corpus: C-D-A."""
    episodes = [demo(np.array([C, D, A]) + 0.01 * i, uuid=f"target-{i}", lang="go c d a", seed=100 + i) for i in range(2)]
    return Dataset(contract=CONTRACT, episodes=tuple(episodes), source="target")
