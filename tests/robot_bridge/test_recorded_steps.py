"""An action that was changed on its way is kept as asked for and as applied."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from robot_bridge.recorded_steps import RecordedSteps


class HalvingEnv(gymnasium.Env[Any, Any]):
    """Applies half of what is asked for, and says so in every other step."""

    contract = SimpleNamespace(action=SimpleNamespace(period_s=0.05))
    steps = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        info = {"action_applied": 0.5 * action} if self.steps % 2 else {}
        return {"x": np.full(1, self.steps, np.float32)}, 1.0, False, self.steps == 3, info


def test_requested_and_applied_actions_rewards_and_stamps_are_those_of_the_steps() -> None:
    steps = RecordedSteps(HalvingEnv(), {"x": np.zeros(1, np.float32)})
    ends = [steps.step(np.array([0.8], np.float32))[1:3] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    episode = steps.episode(terminal=False, truncated=True, success=True, uuid="u", meta={})
    np.testing.assert_array_equal(episode.observations["x"][:, 0], [0, 1, 2, 3])
    np.testing.assert_allclose(episode.actions[:, 0], [0.8, 0.8, 0.8])
    np.testing.assert_allclose(episode.action_applied[:, 0], [0.4, 0.8, 0.4])
    assert episode.rewards.tolist() == [1, 1, 1] and episode.stamps_ns.tolist() == [0, 50_000_000, 100_000_000, 150_000_000]
