"""The Franka kitchen as a goal world: the contract, what counts as done, demonstrations, pictures."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytest.importorskip("gymnasium_robotics", reason="gymnasium-robotics is missing: pip install 'armstack[kitchen]'")

from rl_core.pear.worlds import GoalWorldError, check_goal_worlds, make_goal_worlds
from sim_envs.arm.world import SimulationFault
from sim_envs.kitchen.hand import ARM_JOINTS, SITE, Hand, pointing
from sim_envs.kitchen.kitchen import START_NOISE, Kitchen
from sim_envs.kitchen.worlds import TASKS, KitchenWorlds


@pytest.fixture(scope="module")
def worlds():
    made = KitchenWorlds(2)
    yield made
    made.close()


def test_it_is_a_goal_world_with_the_environments_numbers_by_name(worlds):
    check_goal_worlds(worlds)
    seen = worlds.reset([5, 6])
    assert seen["observation"].shape == (2, 59) and seen["achieved_goal"].shape == (2, 11) and worlds.horizon == 280
    flat, kitchen = seen["observation"][1], worlds.kitchens[1]
    parts, start = {}, 0
    for channel in worlds.contract.observation[:-1]:
        parts[channel.name] = dict(zip(channel.names, flat[start : start + channel.size], strict=True))
        start += channel.size
    noise = 0.0011  # rad, the robot's; objects have less
    for name, joint in (("light_switch", "light_switch"), ("microwave", "microwave"), ("bottom_left_knob", "knob_Joint_2")):
        assert parts["hinge_pos"][name] == pytest.approx(kitchen.data.joint(joint).qpos[0], abs=noise)
    for name in ("light", "slide_cabinet", "top_left_burner"):
        joint = "light_joint" if name == "light" else name
        assert parts["slide_pos"][name] == pytest.approx(kitchen.data.joint(joint).qpos[0], abs=noise)
    np.testing.assert_allclose(list(parts["joint_pos"].values()), kitchen.data.qpos[:ARM_JOINTS], atol=noise)
    kettle = kitchen.data.joint("kettle").qpos
    np.testing.assert_allclose(list(parts["kettle_pos"].values()), kettle[:3], atol=noise)
    np.testing.assert_allclose(list(parts["kettle_quat"].values()), kettle[[4, 5, 6, 3]], atol=noise)
    assert dict(zip(worlds.contract.observation[-1].names, seen["desired_goal"][0], strict=True)) == pytest.approx(
        {
            "microwave": -0.75, "kettle_x": -0.23, "kettle_y": 0.75, "kettle_z": 1.62, "kettle_qx": 0.0, "kettle_qy": 0.0,
            "kettle_qz": -0.06, "kettle_qw": 0.99, "light_switch": -0.69, "light": -0.05, "slide_cabinet": 0.37,
        }
    )  # fmt: skip


def test_a_goal_is_reached_when_the_environment_counts_all_tasks_as_done(worlds, monkeypatch):
    rng, kitchen = np.random.default_rng(0), worlds.kitchens[0]
    verdicts = set()
    for _ in range(300):
        distances = rng.choice([0.0, 0.2, 0.29999, 0.3, 0.30001, 0.5], len(TASKS), p=[0.3, 0.3, 0.3, 0.04, 0.03, 0.03])
        values = {}
        for task, distance in zip(TASKS, distances, strict=True):
            direction = rng.normal(size=len(kitchen.goals[task]))
            values[task] = kitchen.goals[task] + distance * direction / np.linalg.norm(direction)
        monkeypatch.setattr(kitchen, "_elements", values)
        done = all(np.linalg.norm(values[task] - kitchen.goals[task]) < 0.3 for task in TASKS)
        seen = worlds._observe()
        assert worlds.goal.reached(seen["achieved_goal"], seen["desired_goal"])[0] == done
        verdicts.add(done)
    assert verdicts == {True, False}


def test_what_is_done_reads_exactly_as_the_goal_and_the_rest_as_it_is(worlds, monkeypatch):
    worlds.reset([0, 1])
    kitchen = worlds.kitchens[0]
    monkeypatch.setattr(kitchen, "_elements", {**kitchen._elements, "microwave": np.array([-0.46]), "slide cabinet": np.array([0.06])})
    seen = worlds._observe()
    assert seen["achieved_goal"][0, 0] == seen["desired_goal"][0, 0] and seen["achieved_goal"][0, 10] == np.float32(0.06)
    monkeypatch.setattr(kitchen, "_elements", {**kitchen._elements, "microwave": np.array([-0.44])})
    assert worlds._observe()["achieved_goal"][0, 0] == np.float32(-0.44)


def test_a_start_follows_from_its_seed_alone(worlds):
    first = worlds.reset([7, 8])["observation"]
    worlds.step(np.random.default_rng(0).uniform(-1, 1, (2, 9)).astype(np.float32))
    again = worlds.reset([8, 7])["observation"]
    np.testing.assert_array_equal(first, again[::-1])
    gaps = np.abs(worlds.kitchens[0].data.qpos - worlds.kitchens[1].data.qpos)
    assert 0.001 < gaps[:ARM_JOINTS].max() <= 2 * START_NOISE and not gaps[ARM_JOINTS:].any()


def test_a_demonstration_does_all_tasks_and_replays_to_the_bit_in_any_row(worlds):
    (demo,) = worlds.demonstrations([3])
    assert worlds.goal.reached(demo.achieved[-1], demo.goal) and len(demo) <= 16 * 17
    assert not worlds.goal.reached(demo.achieved[:150], demo.goal).any()  # the last task is not done by chance
    rng, seen = np.random.default_rng(0), worlds.reset([99, 3])
    for step, action in enumerate(demo.actions, start=1):
        seen = worlds.step(np.stack([rng.uniform(-1, 1, 9), action]).astype(np.float32))
        np.testing.assert_array_equal(seen["observation"][1], demo.observation[step])
    assert all(worlds.kitchens[1].done(task) for task in TASKS)
    assert not worlds.goal.reached(seen["achieved_goal"][0], seen["desired_goal"][0])  # where the actions were random


def test_some_of_the_tasks_are_a_world_too():
    env = gymnasium.make("sim_envs:armstack/Kitchen-v0", tasks=["slide cabinet", "light switch"])
    worlds = env.get_wrapper_attr("worlds")
    assert worlds.tasks == ("light switch", "slide cabinet") and worlds.goal.size == 3
    demo = worlds.demonstrations([0])[0]
    assert worlds.goal.reached(demo.achieved[-1], demo.goal) and len(demo) < 120
    env.close()


def test_a_hand_goes_where_it_is_told():
    kitchen = Kitchen()
    kitchen.reset(0)
    hand = Hand(kitchen)
    ahead = pointing((0.0, 1.0, 0.0), opening=(0.0, 0.0, 1.0))
    np.testing.assert_allclose(ahead @ ahead.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(ahead) == pytest.approx(1.0)
    goal = hand.position + (0.05, 0.05, 0.1)
    for action in hand.go((goal, ahead), 0.0):
        kitchen.step(action)
    assert np.linalg.norm(hand.site(SITE) - goal) < 0.02
    np.testing.assert_allclose(kitchen.data.site(SITE).xmat.reshape(3, 3), ahead, atol=0.15)


def test_faulty_tasks_actions_seeds_and_physics_are_refused(worlds):
    for tasks in (["kettle", "oven"], ["kettle", "kettle"], []):
        with pytest.raises(ValueError, match="valid: some of"):
            KitchenWorlds(1, tasks)
    with pytest.raises(GoalWorldError, match=r"finite, \(2, 9\)"):
        worlds.step(np.full((2, 9), np.nan, np.float32))
    with pytest.raises(GoalWorldError, match="1 seeds"):
        worlds.reset([0])
    worlds.reset([0, 1])
    worlds.kitchens[1].data.qvel[0] = np.nan
    with pytest.raises(SimulationFault, match="diverged"):
        worlds.step(np.zeros((2, 9), np.float32))
    worlds.reset([0, 1])
    worlds.step(np.zeros((2, 9), np.float32))


def test_the_registered_world_passes_gymnasiums_checker_and_comes_in_rows():
    env = gymnasium.make("sim_envs:armstack/Kitchen-v0")
    check_env(env.unwrapped, skip_render_check=True)
    env.close()
    rows = make_goal_worlds("armstack/Kitchen-v0", 3)
    assert rows.reset([2**31 - 1, 0, 1])["observation"].shape == (3, 59)
    rows.close()


def test_a_picture_shows_the_kettle_where_it_is(graphics):
    env = gymnasium.make("sim_envs:armstack/Kitchen-v0", render_mode="rgb_array", tasks=["kettle"])
    env.reset(seed=0)
    before = env.render().astype(int)
    kitchen = env.get_wrapper_attr("worlds").kitchens[0]
    kitchen.data.joint("kettle").qpos[:3] += (0.0, 0.3, 0.0)
    env.step(np.zeros(9, np.float32))
    after = env.render().astype(int)
    changed = np.abs(after - before).max(axis=2) > 60
    rows, columns = np.nonzero(changed)
    assert before.shape == (240, 320, 3) and 200 < changed.sum() < 0.2 * changed.size
    assert 100 < rows.mean() < 200 and 100 < columns.mean() < 200
    env.close()
