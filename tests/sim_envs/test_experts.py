"""Demonstrators: success rates of the three skills, repeatability, and the motions' mathematics."""

import numpy as np
import pytest

from sim_envs.arm.env import ArmEnv
from sim_envs.experts import make_expert
from sim_envs.experts.motion import nearest_turn, pointing_down, rotation_between, yaw_of


def rollout(env: ArmEnv, skill: str, seed: int) -> tuple[list[bool], float, np.ndarray]:
    expert = make_expert(env.world.task.name, skill, seed)  # type: ignore[arg-type]
    observation, _ = env.reset(seed=seed)
    successes, total, actions = [], 0.0, []
    for _ in range(env.horizon):
        actions.append(expert.act(observation))
        observation, reward, _, _, info = env.step(actions[-1])
        successes.append(info["success"])
        total += reward
    return successes, total, np.array(actions)


@pytest.fixture(scope="module")
def lift_env() -> ArmEnv:
    return ArmEnv("lift")


def test_expert_lifts_and_holds(lift_env):
    for seed in range(12):
        successes, _, actions = rollout(lift_env, "expert", seed)
        assert successes[-1] and 40 <= successes.index(True) <= 100
        assert np.abs(actions).max() <= 1.0


def test_skills_differ_in_success_and_in_reward(lift_env):
    results = {skill: [rollout(lift_env, skill, seed)[:2] for seed in range(15)] for skill in ("sloppy", "failing")}
    rate = {skill: np.mean([any(successes) for successes, _ in runs]) for skill, runs in results.items()}
    assert 0.4 <= rate["sloppy"] < 1.0
    assert rate["failing"] <= 0.1
    expert = [rollout(lift_env, "expert", seed)[1] for seed in range(5)]
    assert np.mean([total for _, total in results["failing"]]) < 0.4 * np.mean(expert)


def test_failing_demonstrator_first_does_what_the_expert_does(lift_env):
    """It is sure of itself: until it errs its motions are the expert's, so nothing but the reward tells them apart."""
    good, bad = (rollout(lift_env, skill, seed=1)[2][:20] for skill in ("expert", "failing"))
    assert np.abs(good - bad)[:, :6].mean() < 0.08
    np.testing.assert_array_equal(good[:, 6], bad[:, 6])


def test_equal_seeds_give_equal_episodes(lift_env):
    for skill in ("expert", "sloppy", "failing"):
        first, again = rollout(lift_env, skill, 3)[2], rollout(lift_env, skill, 3)[2]
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first[:10], rollout(lift_env, skill, 4)[2][:10])


def test_reset_of_a_used_expert_is_a_new_expert(lift_env):
    observation, _ = lift_env.reset(seed=0)
    used, new = make_expert("lift", "sloppy", 1), make_expert("lift", "sloppy", 2)
    for _ in range(7):
        used.act(observation)
    used.reset(2)
    for _ in range(7):
        np.testing.assert_array_equal(used.act(observation), new.act(observation))


@pytest.mark.parametrize("skill, least, most", [("expert", 1.0, 1.0), ("sloppy", 0.3, 1.0), ("failing", 0.0, 0.1)])
def test_reach_skills(skill, least, most):
    env = ArmEnv("reach")
    rate = np.mean([any(rollout(env, skill, seed)[0]) for seed in range(10)])
    assert least <= rate <= most


def test_pick_place_expert_moves_all_parts():
    env = ArmEnv("pick_place")
    for seed in range(3):
        assert rollout(env, "expert", seed)[0][-1]


def test_sort_expert_uses_either_bin():
    env = ArmEnv("sort")
    sides = set()
    for seed in range(4):
        assert rollout(env, "expert", seed)[0][-1]
        sides.add(float(env.world.object_pos("bin")[1]))
    assert len(sides) == 2


def test_failing_pick_place_moves_no_part():
    env = ArmEnv("pick_place")
    assert not any(rollout(env, "failing", 0)[0])


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="reach, lift, pick_place"):
        make_expert("stack")
    with pytest.raises(ValueError, match="expert, sloppy, failing"):
        make_expert("lift", "perfect")  # type: ignore[arg-type]


def test_rotation_between_turns_start_into_end():
    rng = np.random.default_rng(0)
    for _ in range(50):
        start, end = rng.standard_normal((2, 4))
        start, end = start / np.linalg.norm(start), end / np.linalg.norm(end)
        vector = rotation_between(start, end)
        angle = np.linalg.norm(vector)
        turn = np.append(vector / angle * np.sin(angle / 2), np.cos(angle / 2))
        assert angle <= np.pi + 1e-9
        assert abs(_multiply(turn, start) @ end) == pytest.approx(1.0)
    np.testing.assert_array_equal(rotation_between(start, start), 0.0)


def test_yaw_and_its_symmetry():
    for yaw in np.linspace(-3, 3, 13):
        assert yaw_of(np.array([0, 0, np.sin(yaw / 2), np.cos(yaw / 2)])) == pytest.approx(yaw)
        near = nearest_turn(yaw, np.pi / 2)
        assert abs(near) <= np.pi / 4 + 1e-9 and np.sin(2 * (near - yaw)) == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(pointing_down(0.0), [1, 0, 0, 0])


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.append(a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3]), a[3] * b[3] - a[:3] @ b[:3])
