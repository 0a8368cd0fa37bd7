"""The goals experiment: one bundle and two goals over a real graph, and what its figures count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="the ROS wheels are missing: pip install 'armstack[ros]'")

from rl_core.bundle import Bundle
from rl_core.dvfb.policy import SKILL
from rl_core.errors import ArmstackError
from rl_core.methods import load_policy
from robot_bridge import dvfb_goals_experiment
from robot_bridge.dvfb_goals_experiment import THRESHOLDS_CM, BlindPolicy, random_goals, row, run, summary
from robot_bridge.goal_motion import GoalMotion
from sim_envs.arm.reward_free import ExploreArm
from tests.end_to_end.bundles import dvfb_bundle, seen_places

FAR = np.array([0.8, 0.55, 0.85])
"""Inside the arm's workspace, far from all that was explored."""


def test_two_goals_over_ros_give_curves_of_both_skills_and_a_run_that_was_cut_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = dvfb_bundle(tmp_path / "explored-s3-0123" / "bundle", goals=False)
    monkeypatch.setattr(dvfb_goals_experiment, "random_goals", lambda count, seed: [seen_places(bundle)[200], FAR])
    config = {"bundle_of": "explored", "goals": 2, "horizon": 10}
    figures = run(config, 3, tmp_path / "goals-s3")
    assert figures["goals"] == 2 and figures["refused_percent"] == 50.0 and figures["blind_refused_percent"] == 0.0
    for prefix in ("", "blind_"):
        curve = [figures[f"{prefix}within_{cm}cm_percent"] for cm in THRESHOLDS_CM]
        assert curve == sorted(curve) and 0 <= curve[0]
        assert all(figures[f"{prefix}passed_{cm}cm_percent"] >= value for cm, value in zip(THRESHOLDS_CM, curve, strict=True))
        assert figures[f"{prefix}start_cm_median"] > 0 and figures[f"{prefix}prepared_ms_median"] > 0

    def unplayed(*_: Any, **__: Any) -> None:
        raise AssertionError("played again")

    monkeypatch.setattr(dvfb_goals_experiment, "play_goals", unplayed)
    assert run(config, 3, tmp_path / "goals-s3") == figures
    with pytest.raises(ArmstackError, match="no finished run explored-s4"):
        run(config, 4, tmp_path / "goals-s4")


def _motion(ends: float, nearest: float, refused: str = "") -> GoalMotion:
    hand = np.array([[0.3, 0.0, 0.0], [nearest, 0.0, 0.0], [ends, 0.0, 0.0]])
    return GoalMotion(goal=np.zeros(3), seed=1, hand=hand if not refused else hand[:0], prepared_s=0.002, refused=refused)


def test_what_counts_is_where_the_hand_is_in_the_end() -> None:
    rows = [row(_motion(0.015, 0.005)), row(_motion(0.2, 0.03)), row(_motion(0, 0, "too far from all states")), row(_motion(0.095, 0.095))]
    assert rows[0]["start_m"] == pytest.approx(0.3) and rows[2]["end_m"] is None
    figures = summary(rows)
    assert [figures[f"within_{cm}cm_percent"] for cm in (1, 2, 9, 10)] == [0.0, 25.0, 25.0, 50.0]
    assert [figures[f"passed_{cm}cm_percent"] for cm in (1, 3, 10)] == [25.0, 50.0, 75.0]
    assert figures["within_10cm_percent_low"] == pytest.approx(15.0, abs=0.1)
    assert figures["within_10cm_percent_high"] == pytest.approx(85.0, abs=0.1)
    assert figures["refused_percent"] == 25.0 and figures["end_cm_median"] == pytest.approx(9.5) and figures["prepared_ms_median"] == 2.0
    nobody = summary([row(_motion(0, 0, "too far"))])
    assert nobody["within_10cm_percent"] == 0.0 and nobody["end_cm_median"] is None


def test_goals_are_where_was_explored_and_follow_from_the_seed() -> None:
    goals = np.array(random_goals(200, 5000))
    assert np.array_equal(goals, random_goals(200, 5000)) and not np.array_equal(goals, random_goals(200, 5001))
    env = ExploreArm("reach")
    assert (goals > env._low).all() and (goals < env._high).all()
    assert (np.ptp(goals, axis=0) > 0.9 * (env._high - env._low)).all()


def test_a_blind_skill_is_anothers_for_another_goal(tmp_path: Path) -> None:
    bundle = Bundle.load(dvfb_bundle(tmp_path / "b"))
    blind = BlindPolicy(load_policy(bundle), bundle, 1)
    one, again, other = (blind.prepare({"goal_eef_pos": goal})[SKILL] for goal in (FAR, FAR, -FAR))
    assert (one == again).all() and not (one == other).all() and float(one.norm()) == pytest.approx(8**0.5, rel=1e-5)
