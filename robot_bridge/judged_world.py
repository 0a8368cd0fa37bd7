"""A world under its name: what a policy does not fit, and what broke in it, is said with that name instead of an object's."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rl_core.errors import ArmstackError


class WorldFault(ArmstackError):
    """A world refused an action or its physics broke; names the world, the episode's seed and the step."""


class JudgedWorld(gymnasium.Wrapper[Any, Any, Any, Any]):
    """`env`, called `name` in messages; changes no number.

    Raises:
        WorldFault: from `step`, in place of the world's own errors.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        super().__init__(env)
        self._name = name
        self._seed: int | None = None
        self._steps = 0

    def __str__(self) -> str:
        return self._name

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        self._seed, self._steps = seed, 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        try:
            outcome = self.env.step(action)
        except ArmstackError:
            raise
        except (ValueError, RuntimeError, ArithmeticError) as fault:
            where = f"{self._name}: step {self._steps} of the episode with seed {self._seed}"
            raise WorldFault(f"{where}: {fault}; the action was {np.asarray(action).tolist()}") from fault
        self._steps += 1
        return outcome  # type: ignore[return-value]
