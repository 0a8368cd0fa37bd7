"""A small dataset that uses everything a dataset may hold, for the formats that must keep it."""

import numpy as np

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode


def rich_dataset() -> Dataset:
    """All that a dataset may hold: irregular stamps, two cameras, own types, ages, applied actions, every ending, one step."""
    contract = RobotContract(
        robot="panda",
        observation=(
            Channel(name="joint_pos", names=("b", "a"), unit="rad", wraps=("a",)),
            Channel(name="front", kind="image", shape=(32, 36, 3), encoding="rgb8", row_order="bottom_up"),
            Channel(name="clock", names=("s",), dtype="float64", unit="s"),
            Channel(name="wrist", kind="image", shape=(33, 32, 1), encoding="mono8", row_order="top_down"),
            Channel(name="thumb", kind="image", shape=(5, 7, 3), encoding="rgb8", row_order="top_down"),
            Channel(name="count", names=("n", "m"), dtype="int64"),
            Channel(name="flags", names=("on", "off", "idle"), dtype="uint8"),
            Channel(name="touch", names=("left", "right"), dtype="bool"),
        ),
        action=Action(names=("b", "a"), meaning="delta", space="joint", scale=(0.1, 0.2), units=("rad", "rad"), period_s=0.03),
    )
    endings = [(7, True, False, True), (1, False, True, None), (4, True, True, False), (3, False, False, None)]
    episodes = []
    for seed, (steps, terminal, truncated, success) in enumerate(endings):
        rng = np.random.default_rng(seed)
        rows = steps + 1
        observations = {}
        for channel in contract.observation:
            if channel.dtype == "uint8":
                values = rng.integers(0, 256, (rows, *channel.shape))
            else:
                values = rng.normal(scale=10, size=(rows, *channel.shape))
            observations[channel.name] = (values > 0 if channel.dtype == "bool" else values).astype(channel.dtype)
        observations["joint_pos"][0] = (-0.0, np.nan)
        observations["count"][-1] = (2**62 + 1, -5)
        actions = rng.uniform(-1.5, 1.5, (steps, 2)).astype(np.float32)
        stamps = 1_700_000_000_000_000_000 + np.cumsum(rng.integers(1, 90_000_000, rows))
        episodes.append(
            Episode(
                observations=observations,
                actions=actions,
                rewards=rng.random(steps).astype(np.float32),
                terminal=terminal,
                truncated=truncated,
                stamps_ns=stamps,
                success=success,
                action_applied=actions / 2 if seed % 2 == 0 else None,
                observation_age_ns={} if seed == 1 else {"wrist": np.arange(rows) * 7, "clock": np.arange(rows) + 3},
                uuid=f"rich-{seed}",
                meta={} if seed == 1 else {"seed": seed, "task": "Würfel heben 立方体", "nested": {"list": [1, None, 0.1]}},
            )
        )
    return Dataset(contract=contract, episodes=tuple(episodes))
