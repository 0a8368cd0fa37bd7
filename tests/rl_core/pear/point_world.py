"""A point on a line or in a plane that moves by its action, with a way-point that demonstrations go through: known values, no walls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rl_core.contract import Action, Channel, RobotContract
from rl_core.pear.config import PEARConfig
from rl_core.pear.worlds import Demonstration, GoalSpace

STEP = 0.25
AXES = ("x", "y")


class PointWorlds:
    """Starts near (-1, -1), goals near (1, 1); an action of 1 moves by 0.25. The observation is the position and a constant."""

    contract = RobotContract(
        robot="point",
        observation=(
            Channel(name="position", names=AXES, unit="m"),
            Channel(name="bias", names=("one",)),
            Channel(name="desired_goal", names=AXES, unit="m"),
        ),
        action=Action(names=AXES, meaning="delta", space="joint", scale=(STEP, STEP), units=("m", "m"), frame=""),
    )
    goal = GoalSpace(centre=np.zeros(2), half_width=np.full(2, 1.5), threshold=0.2)
    primitives = None

    def __init__(self, n: int, horizon: int = 12) -> None:
        self.n, self.horizon = n, horizon

    def reset(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        draws = np.array([np.random.default_rng(seed).uniform(-0.3, 0.3, 4) for seed in seeds])
        self.position, self.target = draws[:, :2] - 1.0, draws[:, 2:] + 1.0
        return self._seen()

    def step(self, actions: np.ndarray) -> dict[str, np.ndarray]:
        assert np.isfinite(actions).all()
        self.position = np.clip(self.position + STEP * np.clip(actions, -1.0, 1.0), -2.0, 2.0)
        return self._seen()

    def demonstrations(self, seeds: Sequence[int]) -> list[Demonstration]:
        found = []
        for seed in seeds:
            worlds = PointWorlds(1, self.horizon)
            seen = [worlds.reset([seed])]
            actions = []
            while np.abs(worlds.target - worlds.position).max() > 0.05 and len(actions) < self.horizon:
                actions.append(np.clip((worlds.target - worlds.position) / STEP, -1.0, 1.0))
                seen.append(worlds.step(actions[-1]))
            found.append(
                Demonstration(
                    seed=seed,
                    observation=np.concatenate([values["observation"] for values in seen]),
                    achieved=np.concatenate([values["achieved_goal"] for values in seen]),
                    actions=np.concatenate(actions),
                    goal=seen[0]["desired_goal"][0],
                )
            )
        return found

    def close(self) -> None:
        pass

    def _seen(self) -> dict[str, np.ndarray]:
        position, target = self.position.astype(np.float32), self.target.astype(np.float32)
        return {
            "observation": np.concatenate([position, np.ones((self.n, 1), np.float32)], axis=1),
            "achieved_goal": position.copy(),
            "desired_goal": target.copy(),
        }


class GoTo:
    """Straight to the argument."""

    names = ("go_to",)
    arguments = 2

    def act(self, observation: np.ndarray, chosen: np.ndarray, argument: np.ndarray, age: np.ndarray) -> np.ndarray:
        return (PointWorlds.goal.decode(argument) - observation[:, :2]) / STEP


class ScriptedPointWorlds(PointWorlds):
    primitives = GoTo()


def tiny(**changes: object) -> PEARConfig:
    """Small networks, three decisions of four steps."""
    values = {
        "hidden": [32, 32], "batch_size": 64, "expert_rows": 16, "primitive_steps": 4, "demonstrations": 5, "replay_size": 5_000,
        "il_weight": 0.05, "updates_per_episode": 4, "rebuild_every": 4,
    }  # fmt: skip
    return PEARConfig().override(**{**values, **changes})


def line(states: int, *, seed: int = 0) -> Demonstration:
    """A demonstration along a line: state i lies at (i, 0)."""
    position = np.stack([np.arange(states), np.zeros(states)], axis=1)
    observation = np.concatenate([position, np.ones((states, 1))], axis=1)
    return Demonstration(seed=seed, observation=observation, achieved=position, actions=np.ones((states - 1, 2)), goal=position[-1])
