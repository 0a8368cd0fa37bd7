import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl_core.data.fingerprint import fingerprint
from rl_core.data.training_data import transitions
from rl_core.training.worlds import make_world
from sim_envs.point_mass import OBSTACLE, OBSTACLE_RADIUS, START
from sim_envs.point_mass_runs import demonstrations


def test_world_passes_gymnasiums_checker():
    check_env(gymnasium.make("sim_envs:armstack/PointMassFork-v0").unwrapped, skip_render_check=True)


def test_same_seed_gives_the_same_start():
    env = make_world("armstack/PointMassFork-v0")
    first, again = env.reset(seed=4)[0]["position"], env.reset(seed=4)[0]["position"]
    assert np.array_equal(first, again) and not np.array_equal(first, env.reset(seed=5)[0]["position"])
    assert np.abs(first - START).max() <= 0.021


def test_straight_on_hits_the_obstacle():
    env = make_world("armstack/PointMassFork-v0")
    env.reset(seed=0)
    for _ in range(40):
        observation, reward, terminated, truncated, info = env.step(np.array([0.0, 1.0], np.float32))
        if terminated or truncated:
            break
    assert info["collision"] and terminated and reward == -20.0 and not info["success"]


def test_a_step_across_the_obstacles_edge_is_a_collision_though_both_ends_are_free():
    env = make_world("armstack/PointMassFork-v0").unwrapped
    env.reset(seed=0)
    env._position = OBSTACLE + np.array([-0.05, np.sqrt(OBSTACLE_RADIUS**2 - 0.05**2) + 0.0005])
    assert np.linalg.norm(env._position + [0.1, 0] - OBSTACLE) > OBSTACLE_RADIUS
    assert env.step(np.array([1.0, 0.0]))[4]["collision"]


def test_nan_action_is_refused():
    env = make_world("armstack/PointMassFork-v0")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="two finite numbers"):
        env.step(np.array([np.nan, 0.0]))


def test_demonstrations_go_both_ways_and_right_is_slightly_shorter():
    data = demonstrations(20, seed=0)
    by_side = {side: [len(e) for e in data.episodes if e.meta["side"] == side] for side in (-1.0, 1.0)}
    assert len(by_side[-1.0]) == len(by_side[1.0]) == 10
    assert all(episode.success and episode.terminal for episode in data.episodes)
    assert 1.0 < np.mean(by_side[-1.0]) - np.mean(by_side[1.0]) < 4.0
    assert fingerprint(data) == fingerprint(demonstrations(20, seed=0)) != fingerprint(demonstrations(20, seed=1))
    assert len(transitions(data, data.contract)["action"]) == data.steps
