"""MazeWorlds: how grippers move, what is seen, demonstrations, speed."""

import time

import numpy as np
import pytest

from rl_core.pear.worlds import GoalWorldError, check_goal_worlds
from sim_envs.goal_env import GoalEnv
from sim_envs.maze.layout import CELL, HALF_WIDTH, HEIGHT, LOW, centre, four_rooms
from sim_envs.maze.planner import solid
from sim_envs.maze.worlds import STEP, MazeWorlds


def test_it_is_a_goal_world():
    worlds = MazeWorlds(2)
    check_goal_worlds(worlds)
    seen = worlds.reset([4, 9])
    assert seen["observation"].shape == (2, 113) and seen["observation"].dtype == np.float32
    np.testing.assert_array_equal(seen["observation"][:, :3], seen["achieved_goal"])
    np.testing.assert_array_equal(seen["observation"][1, 3:].reshape(10, 11), four_rooms(9).walls)
    np.testing.assert_allclose(seen["desired_goal"][0], [*centre((9, 9)), HEIGHT], rtol=1e-6)
    goals = worlds.goal
    assert goals.threshold == 0.05 and worlds.horizon == 225 and goals.half_width[2] == 0
    np.testing.assert_array_equal(goals.reached(seen["achieved_goal"], seen["desired_goal"]), [False, False])
    assert (goals.reward(seen["achieved_goal"], seen["achieved_goal"]) == 0).all()


def test_free_motion_is_five_centimetres_an_axis_and_clipped():
    worlds = MazeWorlds(1)
    before = worlds.reset([0])["achieved_goal"]
    moved = worlds.step(np.array([[1.0, -0.5]], np.float32))["achieved_goal"] - before
    np.testing.assert_allclose(moved[0], [STEP, -STEP / 2, 0], atol=1e-7)
    before = worlds.reset([0])["achieved_goal"]
    np.testing.assert_allclose((worlds.step(np.array([[9.0, 0.0]], np.float32))["achieved_goal"] - before)[0, 0], STEP, atol=1e-7)


def test_random_grippers_never_touch_a_wall_nor_leave_the_maze():
    worlds, rng = MazeWorlds(32, "rooms"), np.random.default_rng(0)
    worlds.reset(range(32))
    square = HALF_WIDTH * np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)])
    for _ in range(60):
        seen = worlds.step(rng.uniform(-1, 1, (32, 2)).astype(np.float32))
        for maze, point in zip(worlds.mazes, seen["achieved_goal"][:, :2].astype(np.float64), strict=True):
            assert not solid(maze.walls, point + 0.999 * square).any()


def test_a_step_as_long_as_a_cell_does_not_jump_through_a_wall():
    worlds = MazeWorlds(1)
    worlds.reset([0])
    row = int(np.flatnonzero(worlds.mazes[0].walls.mean(axis=1) > 0.7)[0])
    column = int(np.flatnonzero(worlds.mazes[0].walls[row])[0])
    for _ in range(12):
        seen = worlds.step(np.array([[0.0, -1.0 if column < 3 else 0.0]], np.float32))
        seen = worlds.step(np.array([[1.0, 0.0]], np.float32))
    gate = worlds.mazes[0].walls[row, int((seen["achieved_goal"][0, 1] - LOW[1]) / CELL)]
    assert gate and seen["achieved_goal"][0, 0] < LOW[0] + CELL * row


def test_along_a_wall_the_gripper_slides():
    worlds = MazeWorlds(1)
    worlds.reset([0])
    for _ in range(10):
        worlds.step(np.array([[-1.0, 0.0]], np.float32))
    before = worlds.step(np.array([[-1.0, 0.0]], np.float32))["achieved_goal"]
    after = worlds.step(np.array([[-1.0, 0.6]], np.float32))["achieved_goal"]
    np.testing.assert_allclose(after - before, [[0, 0.03, 0]], atol=1e-7)


def test_a_row_depends_on_its_seed_alone():
    rng = np.random.default_rng(1)
    actions = rng.uniform(-1, 1, (30, 3, 2)).astype(np.float32)
    many, one = MazeWorlds(3, "rooms"), MazeWorlds(1, "rooms")
    many.reset([5, 6, 7])
    many.step(actions[0])
    many.reset([5, 6, 7])
    one.reset([6])
    for action in actions:
        three, single = many.step(action), one.step(action[1:2])
        for key in three:
            np.testing.assert_array_equal(three[key][1], single[key][0])


@pytest.mark.parametrize("ends", ["corners", "rooms"])
def test_demonstrations_of_a_hundred_seeds_arrive_and_replay_to_the_bit(ends):
    worlds = MazeWorlds(100, ends)
    demonstrations = worlds.demonstrations(range(100))
    first = worlds.reset(range(100))
    assert all(worlds.goal.reached(demo.achieved[-1], demo.goal) for demo in demonstrations)
    assert 45 < max(map(len, demonstrations)) < 110 and np.abs(demonstrations[0].actions).max() < 0.3
    for row, demo in enumerate(demonstrations):
        np.testing.assert_array_equal(demo.observation[0], first["observation"][row])
        np.testing.assert_array_equal(demo.goal, first["desired_goal"][row])
    one = MazeWorlds(1, ends)
    for demo in demonstrations[::20]:
        one.reset([demo.seed])
        for step, action in enumerate(demo.actions, start=1):
            np.testing.assert_array_equal(one.step(action[None])["observation"][0], demo.observation[step])


def test_demonstrations_are_as_fast_as_asked():
    fast, slow = (MazeWorlds(1, demonstration_speed=speed).demonstrations(range(5)) for speed in (1.0, 0.25))
    assert all(len(quick) < 30 and 3.5 < len(calm) / len(quick) < 4.5 for quick, calm in zip(fast, slow, strict=True))
    for speed in (0.0, -1.0, 1.1, np.nan):
        with pytest.raises(GoalWorldError, match="demonstration_speed"):
            MazeWorlds(1, demonstration_speed=speed)


def test_wandering_does_not_find_the_goal():
    """The task is one: of 200 random walks hardly any ends at the goal."""
    worlds, rng = MazeWorlds(200), np.random.default_rng(0)
    worlds.reset(range(200))
    for _ in range(worlds.horizon):
        seen = worlds.step(rng.uniform(-1, 1, (200, 2)).astype(np.float32))
    assert worlds.goal.reached(seen["achieved_goal"], seen["desired_goal"]).mean() < 0.05


def test_what_is_seen_is_not_changed_later():
    worlds = MazeWorlds(1)
    seen = worlds.reset([0])
    kept = {key: values.copy() for key, values in seen.items()}
    worlds.step(np.ones((1, 2), np.float32))
    worlds.reset([1])
    for key, values in seen.items():
        np.testing.assert_array_equal(values, kept[key])


def test_faulty_actions_and_seeds_are_refused():
    worlds = MazeWorlds(2)
    with pytest.raises(GoalWorldError, match=r"valid: finite, \(2, 2\)"):
        worlds.step(np.full((2, 2), np.nan, np.float32))
    with pytest.raises(GoalWorldError, match=r"shape \(1, 2\)"):
        worlds.step(np.zeros((1, 2), np.float32))
    with pytest.raises(GoalWorldError, match="1 seeds"):
        worlds.reset([0])


def test_go_to_goes_straight_to_its_point():
    worlds = MazeWorlds(1)
    seen = worlds.reset([0])
    point = worlds.goal.encode(seen["achieved_goal"] + np.array([[0.08, 0.04, 0.0]], np.float32))[:, :2]
    for age in range(3):
        action = worlds.primitives.act(seen["observation"], np.zeros(1, np.int64), point, np.array([age]))
        assert np.abs(action).max() <= 1
        seen = worlds.step(action)
    np.testing.assert_allclose(worlds.goal.encode(seen["achieved_goal"])[:, :2], point, atol=1e-5)


def test_many_mazes_make_many_steps_a_second():
    """A hundred thousand a second and more on one core; the bound leaves room for a busy machine."""
    worlds, actions = MazeWorlds(64), np.ones((64, 2), np.float32)
    worlds.step(actions)
    begin = time.process_time()
    for _ in range(200):
        worlds.step(actions)
    assert 200 * 64 / (time.process_time() - begin) > 20_000


def test_environment_rewards_the_goal_and_draws():
    env = GoalEnv("sim_envs.maze.worlds:MazeWorlds", render_mode="rgb_array", ends="rooms")
    demo = env.worlds.demonstrations([11])[0]
    observation, _ = env.reset(seed=11)
    assert {name: value.shape for name, value in observation.items()} == {"eef_pos": (3,), "walls": (110,), "desired_goal": (3,)}
    rewards = [env.step(action) for action in demo.actions]
    assert rewards[0][1] == -1.0 and rewards[-1][1] == 0.0 and rewards[-1][4]["success"] and not rewards[-1][2]
    picture = env.render()
    assert picture.shape == (320, 352, 3) and picture.dtype == np.uint8
    with pytest.raises(ValueError, match="'human'; modes: None, 'rgb_array'"):
        GoalEnv("sim_envs.maze.worlds:MazeWorlds", render_mode="human")
