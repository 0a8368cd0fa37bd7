"""Does it learn: a world where what is right is known."""

from __future__ import annotations

from pathlib import Path

from rl_core.pear.evaluation import evaluate_goals
from rl_core.training.evaluation import evaluation_seeds
from tests.rl_core.pear.point_world import PointWorlds
from tests.rl_core.pear.test_pear_learner import make


def test_goals_are_reached_from_sparse_rewards_and_a_few_demonstrations(tmp_path: Path) -> None:
    settings = {"gamma": 0.9, "rows": 2, "updates_per_episode": 8, "polyak_kept": 0.5, "action_l2": 0.0, "hidden": [64, 64]}
    learner, source = make(tmp_path, PointWorlds, imitation="bc", demonstrations=20, **settings)
    before = evaluate_goals(learner.policy(), PointWorlds(50), evaluation_seeds(0, 50))
    while source.episodes < 80 or not source.at_checkpoint:
        learner.update(source.next_batch())
    after = evaluate_goals(learner.policy(), PointWorlds(50), evaluation_seeds(0, 50))
    assert before.success_rate <= 0.1 and after.success_rate >= 0.4
    assert before.hit_rate is not None and after.hit_rate is not None and after.hit_rate >= before.hit_rate + 0.3
