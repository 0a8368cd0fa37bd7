"""GoalEnv: goal worlds by name as a Gymnasium environment that draws pictures."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium.envs.registration import load_env_creator
from numpy.typing import NDArray

from rl_core.pear.worlds import GoalWorldEnv


class GoalEnv(GoalWorldEnv):
    """One row of goal worlds; see `GoalWorldEnv`.

    Args:
        worlds: `module:class`; made with the number of rows and `options`. Its `render(row)` gives a picture.
        render_mode: None or `rgb_array`.
        options: of the class.

    Raises:
        ValueError: unknown render mode.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, worlds: str, *, render_mode: str | None = None, **options: Any) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"no render_mode {render_mode!r}; modes: None, 'rgb_array'")
        make: Any = load_env_creator(worlds)  # Gymnasium's "module:name" of any callable
        super().__init__(partial(make, **options))
        self.render_mode = render_mode

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """What the row looks like now: (height, width, 3), RGB; None without a render mode."""
        return None if self.render_mode is None else self.worlds.render(0)  # type: ignore[attr-defined]
