"""Goal worlds by their ids: Gymnasium's checker, rows for training, and what the arm's tasks share with all others."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl_core.pear.worlds import make_goal_worlds
from sim_envs.arm.tasks import TASKS
from sim_envs.arm.tasks.goal_tasks import GOAL_TASKS
from sim_envs.experts import make_expert

IDS = ("Maze", "GoalPick", "GoalBin", "GoalRing", "Rope")


@pytest.mark.parametrize("name", IDS)
def test_registered_worlds_pass_gymnasiums_checker(name):
    env = gymnasium.make(f"sim_envs:armstack/{name}-v0")
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("name", IDS)
def test_rows_for_training_come_by_the_same_id(name):
    worlds = make_goal_worlds(f"armstack/{name}-v0", 2)
    seen = worlds.reset([2**31 - 1, 1_000_000])
    assert worlds.n == 2 and all(values.dtype == np.float32 for values in seen.values())
    seen = worlds.step(np.zeros((2, worlds.contract.action.size), np.float32))
    assert all(np.isfinite(values).all() for values in seen.values())
    worlds.close()


def test_options_reach_the_world():
    env = gymnasium.make("sim_envs:armstack/Maze-v0", ends="rooms", render_mode="rgb_array")
    goals = {env.reset(seed=seed)[0]["desired_goal"].tobytes() for seed in range(3)}
    assert len(goals) == 3 and env.render().shape == (320, 352, 3)


def test_goal_tasks_are_tasks_of_the_arm_with_demonstrators():
    for name in GOAL_TASKS:
        assert TASKS[name].name == name and make_expert(name).act is not None
