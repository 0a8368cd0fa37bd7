"""PEAR's learner: both levels, the statistics that scale their inputs, and the value that relabelling asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.errors import ArmstackError
from rl_core.pear.bounds import bound_factor
from rl_core.pear.config import Level, PEARConfig
from rl_core.pear.level import LevelLearner, Rows
from rl_core.pear.policy import Exploration, HierarchicalPolicy, decision_size, goal_arrays
from rl_core.pear.statistics import InputScaling, RunningStatistics
from rl_core.pear.worlds import Array, GoalSpace, Primitives


class PEARLearner:
    """Implements `Learner`; a batch holds `low` and `high` rows for the levels that are learned (see `rl_core.pear.source`).

    Args:
        config: hyperparameters and variant.
        contract: of the goal world.
        goal: its goal space.
        device: torch device.
        seed: seed of weights and noise.
        primitives: the world's scripted primitives; only the variant raps uses them.

    Raises:
        ArmstackError: the variant raps in a world without scripted primitives.
    """

    def __init__(
        self,
        config: PEARConfig,
        contract: RobotContract,
        goal: GoalSpace,
        *,
        device: str = "cpu",
        seed: int = 0,
        primitives: Primitives | None = None,
    ) -> None:
        self.config, self.contract, self.goal = config, contract, goal
        self.device = torch.device(device)
        self.primitives = primitives if "low" not in config.switches.learned else None
        if "low" not in config.switches.learned and primitives is None:
            raise ArmstackError(f"PEARConfig.variant {config.variant!r} needs a world with scripted primitives, found none")
        sizes = {"low": contract.action.size, "high": decision_size(self.primitives) if self.primitives is not None else goal.size}
        self.levels: dict[Level, LevelLearner] = {
            level: LevelLearner(config, level, contract.observation_size, sizes[level], device=device, seed=seed)
            for level in config.switches.learned
        }
        state_size = contract.observation_size - goal.size
        limits = {"clip": config.observation_clip, "least": config.normalized_eps}
        self.observations = RunningStatistics(state_size, **limits)
        self.goals = RunningStatistics(goal.size, **limits)
        self.scaling = self._scaling()
        self.step = 0

    def observe(self, observations: Array, goals: Array) -> None:
        """Counts observations (N, O) and goals (M, G) among what the networks' inputs are scaled by."""
        self.observations.update(observations)
        self.goals.update(goals)
        self.scaling = self._scaling()

    def update(self, batch: TensorDict) -> Mapping[str, Any]:
        """One step of each level, and after every `updates_per_episode` of them one of the target networks.

        The levels share nothing that a gradient step changes, so that one step of each in turn equals all steps of one before the other.
        """
        metrics: dict[str, Any] = {name: float(value) for name, value in batch["figures"].items()}
        for level, learner in self.levels.items():
            metrics |= learner.update(self.rows(batch[level]))
        self.step += 1
        if self.step % self.config.updates_per_episode == 0:
            for learner in self.levels.values():
                learner.update_targets()
        if self.config.switches.imitates:
            metrics |= {f"bound/factor_{level}": bound_factor(self.config, level) for level in self.levels}
        return metrics

    def rows(self, batch: TensorDict) -> Rows:
        """Raw rows, `observation` = [observation, achieved, goal], as a level's networks take them."""
        return Rows(
            state=self._scaled(batch["observation"]),
            action=batch["action"].to(self.device),
            reward=batch["reward"].to(self.device),
            terminal=batch["terminal"].to(self.device),
            next_state=self._scaled(batch["next_observation"]),
            expert=int(batch["expert"].sum()),
        )

    def lower_value(self, observation: Array, goal: Array) -> Array:
        """Values (B,) of reaching `goal` (B, G) from `observation` (B, O): the lower level's, see `LevelLearner.value`."""
        return self.levels["low"].value(self.scaling(torch.from_numpy(observation), torch.from_numpy(goal))).cpu().numpy()

    def policy(self) -> HierarchicalPolicy:
        """The deterministic policy; it shares the weights."""
        return self._policy({})

    def explore(self, *, lower: bool = True) -> HierarchicalPolicy:
        """The policy that collects; with `lower` False its lower level does not explore (HAC's subgoal tests)."""
        explored: tuple[Level, ...] = ("low", "high") if lower else ("high",)
        exploration = Exploration(noise=self.config.exploration_noise, random_share=self.config.random_share)
        return self._policy(dict.fromkeys(explored, exploration))

    def _policy(self, explore: Mapping[Level, Exploration]) -> HierarchicalPolicy:
        actors = {level: learner.actor for level, learner in self.levels.items()}
        return HierarchicalPolicy(self.config, self.contract, self.goal, actors, self.scaling, explore=explore, primitives=self.primitives)

    def bundle(self) -> Bundle:
        """The actors of both levels, the statistics and the goal space: what acting needs."""
        weights = {f"{level}.{name}": value for level, part in self.levels.items() for name, value in part.actor.state_dict().items()}
        return Bundle(
            kind="policy",
            method="pear",
            config=self.config.to_dict(),
            contract=self.contract,
            normalizer=self.scaling.normalizer(self.contract).to_dict(),
            weights=weights,
            arrays=goal_arrays(self.goal),
        )

    def state_dict(self) -> dict[str, Any]:
        """Both levels, statistics, step count."""
        return {
            "levels": {level: learner.state_dict() for level, learner in self.levels.items()},
            "observations": self.observations.state_dict(),
            "goals": self.goals.state_dict(),
            "step": self.step,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        for level, learner in self.levels.items():
            learner.load_state_dict(state["levels"][level])
        self.observations.load_state_dict(state["observations"])
        self.goals.load_state_dict(state["goals"])
        self.scaling = self._scaling()
        self.step = int(state["step"])

    def _scaling(self) -> InputScaling:
        shift = np.concatenate([self.observations.mean, self.goals.mean])
        scale = np.concatenate([self.observations.deviation, self.goals.deviation])
        clip, bound = self.config.observation_clip, self.config.normalized_clip
        return InputScaling(shift, scale, clip=clip, bound=bound, device=self.device)

    def _scaled(self, rows: Tensor) -> Tensor:
        """[observation, achieved, goal] (B, O + 2 G) -> (B, O + G): achieved goals are there for hindsight alone."""
        size = self.goal.size
        return self.scaling(rows[:, : -2 * size], rows[:, -size:])
