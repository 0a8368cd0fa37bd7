import time

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl_core.errors import ArmstackError
from sim_envs.rooms.env import STEP, RoomsEnv, RoomsVectorEnv
from sim_envs.rooms.layout import FOUR_ROOMS, HIGH, LAYOUTS, LOW, RADIUS, START, START_SPREAD, Layout, move
from sim_envs.rooms.rewards import GOAL_RADIUS, REWARDS

# Doors to pass, in order, from the start's corner to each goal.
WAYS = {
    "four_rooms": {"sw": [], "se": [(0.0, -0.5)], "nw": [(-0.7, 0.0)], "ne": [(-0.7, 0.0), (0.0, 0.4)]},
    "u_maze": {"left": [], "top": [(-0.2, 0.8)], "right": [(-0.2, 0.8), (0.2, 0.8)], "end": [(-0.2, 0.8), (0.2, 0.8)]},
}


def crossings(layout: Layout, before: np.ndarray, after: np.ndarray) -> int:
    """How many moves, first along x, then along y, pass through the line of a wall."""
    count = 0
    for x, low, high in layout.vertical:
        count += int(((before[:, 0] - x) * (after[:, 0] - x) < 0)[(before[:, 1] >= low) & (before[:, 1] <= high)].sum())
    for y, low, high in layout.horizontal:
        count += int(((before[:, 1] - y) * (after[:, 1] - y) < 0)[(after[:, 0] >= low) & (after[:, 0] <= high)].sum())
    return count


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("size", [STEP, 0.5])
def test_no_wall_is_crossed_at_any_step_size(name: str, size: float) -> None:
    layout, random = LAYOUTS[name], np.random.default_rng(0)
    points = random.uniform(LOW + RADIUS, HIGH - RADIUS, (400, 2))
    inside = [((points > low) & (points < high)).all(axis=1) for low, high in layout.rectangles]
    points = points[~np.any(inside, axis=0)]
    crossed = moved = 0
    for _ in range(300):
        after = move(layout, points, random.uniform(-size, size, points.shape))
        crossed += crossings(layout, points, after)
        moved += int((np.sign(points) != np.sign(after)).any(axis=1).sum())
        points = after
        assert not any(((points > low) & (points < high)).all(axis=1).any() for low, high in layout.rectangles)
        assert np.abs(points).max() <= HIGH - RADIUS + 1e-12
    assert crossed == 0 and moved > 100  # doors were passed


def test_a_wall_without_a_door_is_never_passed_though_with_one_it_is() -> None:
    shut = Layout(name="shut", vertical=((0.0, -1.0, 1.0),), goals={})
    ajar = Layout(name="ajar", vertical=((0.0, -1.0, 0.9),), goals={})
    farthest = {}
    for layout in (shut, ajar):
        random, points = np.random.default_rng(1), np.tile((-0.5, 0.5), (200, 1))
        farthest[layout.name] = -1.0
        for _ in range(300):
            points = move(layout, points, random.uniform(-0.3, 0.3, points.shape))
            farthest[layout.name] = max(farthest[layout.name], points[:, 0].max())
    assert farthest["shut"] == -RADIUS and farthest["ajar"] > 0.5


def test_a_point_slides_along_a_wall() -> None:
    after = move(FOUR_ROOMS, np.array([[-0.02, -0.8]]), np.array([[0.05, 0.03]]))
    assert np.allclose(after, [[-RADIUS, -0.77]])


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_goal_is_reached_through_the_doors_and_rewarded_there(name: str) -> None:
    for goal, place in LAYOUTS[name].goals.items():
        env = RoomsEnv(name, reward=REWARDS[name][goal])
        observation, _ = env.reset(seed=0)
        rewards, info, truncated = [], {"success": False}, False
        for target in (*WAYS[name][goal], place):
            while np.abs(observation["position"] - target).max() > 0.02 and not truncated:
                action = np.clip((target - observation["position"]) / STEP, -1.0, 1.0)
                observation, reward, terminated, truncated, info = env.step(action)
                rewards.append(reward)
                assert not terminated
        assert info["success"] and rewards[-1] == 1.0 and rewards[0] == 0.0, goal


def test_dense_rewards_fall_with_distance() -> None:
    x = np.array([[0.6, 0.6], [0.6, 0.6 - GOAL_RADIUS - 0.5], [-0.9, -0.9]])
    assert np.allclose(REWARDS["four_rooms"]["near_ne"](x, x, x), [1.0, 0.5, 0.0])
    assert np.array_equal(REWARDS["four_rooms"]["ne"](x, x, x), [1.0, 0.0, 0.0])


def test_same_seed_same_episodes_and_each_point_has_its_own() -> None:
    def run(seed: int, envs: int) -> np.ndarray:
        env = RoomsVectorEnv("four_rooms", envs, horizon=7)
        random = np.random.default_rng(3)
        observed = [env.reset(seed=seed)[0]]
        observed += [env.step(random.uniform(-1, 1, (envs, 2)))[0] for _ in range(20)]
        return np.stack(observed)

    assert np.array_equal(run(5, 3), run(5, 3)) and not np.array_equal(run(5, 3), run(6, 3))
    assert np.array_equal(run(5, 3)[0, 1], run(6, 1)[0, 0])  # point i has the seed `seed + i`
    starts = run(5, 3)[[0, 8, 16]]  # a reset takes a step
    assert np.abs(starts - START).max() <= START_SPREAD + 1e-6 and len(np.unique(starts.reshape(-1, 2), axis=0)) == 9


def test_the_step_after_the_last_is_a_reset_with_reward_0() -> None:
    env = RoomsVectorEnv("four_rooms", 2, horizon=3, reward=lambda observation, action, after: np.ones(len(after)))
    env.reset(seed=0)
    steps = [env.step(np.ones((2, 2))) for _ in range(5)]
    assert [list(step[3]) for step in steps] == [[False] * 2, [False] * 2, [True] * 2, [False] * 2, [False] * 2]
    assert [list(step[1]) for step in steps] == [[1.0] * 2] * 3 + [[0.0] * 2] + [[1.0] * 2]
    assert not any(step[2].any() for step in steps)
    assert np.abs(steps[3][0] - START).max() <= START_SPREAD + 1e-6


def test_reward_free_is_0_and_spaces_hold_what_is_observed() -> None:
    env = RoomsVectorEnv("u_maze", 4)
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for _ in range(50):
        assert observation.dtype == np.float32 and env.observation_space.contains(observation)
        observation, reward, *_ = env.step(env.action_space.sample())
        assert not reward.any()


def test_single_world_passes_gymnasiums_checker_and_ends_until_reset() -> None:
    check_env(RoomsEnv("four_rooms", render_mode="rgb_array"), skip_render_check=True)
    env = RoomsEnv("four_rooms", horizon=1)
    env.reset(seed=0)
    assert env.step(np.zeros(2))[3]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2))


def test_faulty_actions_and_names_are_refused() -> None:
    env = RoomsVectorEnv("four_rooms", 2)
    env.reset(seed=0)
    for action in (np.full((2, 2), np.nan), np.zeros((1, 2))):
        with pytest.raises(ValueError, match=r"valid: \(2, 2\) finite numbers"):
            env.step(action)
    with pytest.raises(ArmstackError, match="valid: four_rooms, u_maze"):
        RoomsEnv("five_rooms")


def test_picture_shows_the_point_where_it_is() -> None:
    env = RoomsEnv("four_rooms", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None and picture.dtype == np.uint8
    rows, columns = np.nonzero((picture == (200, 40, 30)).all(axis=-1))
    assert rows.mean() > 0.9 * len(picture) and columns.mean() < 0.1 * len(picture)  # lower left


def test_speed() -> None:
    for count in (1, 64):
        env = RoomsVectorEnv("four_rooms", count)
        env.reset(seed=0)
        actions = np.random.default_rng(0).uniform(-1, 1, (200, count, 2))
        start = time.process_time()
        for action in actions:
            env.step(action)
        print(f"{count} points: {200 * count / (time.process_time() - start):,.0f} steps/s")
        assert np.isfinite(env.step(actions[0])[0]).all()


@pytest.mark.parametrize(
    "make_world", [lambda **kwargs: RoomsEnv("u_maze", **kwargs), lambda **kwargs: RoomsVectorEnv("u_maze", 1, **kwargs)]
)
def test_an_action_moves_by_the_step_asked_for(make_world) -> None:
    env = make_world(step=0.1)
    before, _ = env.reset(seed=0)
    after = env.step(np.ones(env.action_space.shape, np.float32))[0]
    moved = after["position"] - before["position"] if isinstance(after, dict) else (after - before)[0]
    assert moved == pytest.approx([0.1, 0.1], abs=1e-6)
    for wrong in (0.0, -0.1, float("nan"), float("inf")):
        with pytest.raises(ArmstackError, match="step .*, valid: metres above 0"):
            make_world(step=wrong)


def test_the_contract_names_the_step() -> None:
    assert RoomsEnv("four_rooms").contract.action.scale == (STEP, STEP)
    assert RoomsEnv("four_rooms", step=0.1).contract.action.scale == (0.1, 0.1)
