"""The rope: how it moves, goals, demonstrations, pictures."""

import numpy as np
import pytest

from rl_core.pear.worlds import GoalWorldError, check_goal_worlds
from sim_envs.goal_env import GoalEnv
from sim_envs.rope.pictures import draw_rope
from sim_envs.rope.poker import poke_towards
from sim_envs.rope.rope import BEADS, HIGH, LINK, LOW, POKE, Rope
from sim_envs.rope.worlds import FAR, THRESHOLD, RopeWorlds


def test_a_poke_across_pushes_the_rope_there_and_the_links_keep_their_length():
    rope = Rope()
    straight = rope.beads
    middle = straight[7]
    rope.poke(middle - (0.0, 0.05), np.pi / 2)
    moved = rope.beads - straight
    assert moved[7, 1] == pytest.approx(POKE - 0.05 + 0.02, abs=0.01)  # the poker and the rope are 1 cm thick to either side
    assert np.argmax(moved[:, 1]) in (6, 7, 8) and np.abs(moved[0]).max() < 0.02
    np.testing.assert_allclose(np.linalg.norm(np.diff(rope.beads, axis=0), axis=1), LINK, atol=1e-9)


def test_a_poke_beside_the_rope_moves_nothing_and_a_rope_that_is_left_alone_stays():
    rope = Rope()
    before = rope.beads
    rope.poke(before[7] + (0.0, 0.05), np.pi / 2)
    np.testing.assert_allclose(rope.beads, before, atol=1e-9)


def test_a_poke_that_begins_on_the_rope_begins_behind_it():
    rope = Rope()
    straight = rope.beads
    rope.poke(straight[7], np.pi / 2)
    assert 0.07 < rope.beads[7, 1] - straight[7, 1] < 0.11 and np.abs(rope.beads - straight).max() < 0.11


def test_shapes_are_all_of_the_state():
    rope, other = Rope(), Rope()
    rope.poke(np.array([0.4, -0.05]), 1.4)
    other.restore(rope.snapshot())
    for world in (rope, other):
        world.poke(np.array([0.5, 0.08]), -1.6)
    np.testing.assert_array_equal(rope.beads, other.beads)


def test_pokes_towards_a_goal_push_the_farthest_beads_its_way():
    beads = Rope().beads
    goal = beads + np.linspace(0, 0.05, BEADS)[:, None] * (0.0, 1.0)
    pokes = list(poke_towards(beads, goal))
    assert [direction for _, direction in pokes] == pytest.approx([np.pi / 2] * len(pokes))
    np.testing.assert_allclose(pokes[0][0], beads[-1] - (0.0, POKE + 0.022 - 0.05), atol=1e-9)


def test_it_is_a_goal_world_whose_goals_are_far_and_possible_ropes():
    worlds = RopeWorlds(4)
    check_goal_worlds(worlds)
    seen = worlds.reset(range(4))
    assert seen["observation"].shape == (4, 30) and worlds.horizon == 25 and worlds.goal.threshold == THRESHOLD == 0.15
    gaps = np.linalg.norm(seen["desired_goal"] - seen["achieved_goal"], axis=1)
    assert (gaps >= FAR).all() and not worlds.goal.reached(seen["achieved_goal"], seen["desired_goal"]).any()
    goals = seen["desired_goal"].reshape(4, BEADS, 2)
    np.testing.assert_allclose(np.linalg.norm(np.diff(goals, axis=1), axis=2), LINK, atol=1e-5)
    assert len({goal.tobytes() for goal in goals}) == 4 and (goals > LOW - 0.05).all() and (goals < HIGH + 0.05).all()


def test_demonstrations_arrive_and_replay_to_the_bit_in_any_row():
    """Every seed tried arrives, within a third of the horizon."""
    worlds = RopeWorlds(2)
    demonstrations = worlds.demonstrations(range(5))
    for demo in demonstrations:
        assert worlds.goal.reached(demo.achieved[-1], demo.goal) and len(demo) <= 10 and np.abs(demo.actions).max() <= 1
    rng = np.random.default_rng(0)
    for demo in demonstrations[:2]:
        seen = worlds.reset([99, demo.seed])
        np.testing.assert_array_equal(seen["desired_goal"][1], demo.goal)
        np.testing.assert_array_equal(seen["observation"][1], demo.observation[0])
        for step, action in enumerate(demo.actions, start=1):
            seen = worlds.step(np.stack([rng.uniform(-1, 1, 3), action]).astype(np.float32))
            np.testing.assert_array_equal(seen["observation"][1], demo.observation[step])


def test_random_pokes_do_not_make_the_goal():
    worlds, rng = RopeWorlds(6), np.random.default_rng(0)
    worlds.reset(range(6))
    for _ in range(10):
        seen = worlds.step(rng.uniform(-1, 1, (6, 3)).astype(np.float32))
        assert np.isfinite(seen["observation"]).all()
    assert not worlds.goal.reached(seen["achieved_goal"], seen["desired_goal"]).any()


def test_faulty_actions_and_seeds_are_refused():
    worlds = RopeWorlds(1)
    with pytest.raises(GoalWorldError, match=r"finite, \(1, 3\)"):
        worlds.step(np.full((1, 3), np.nan, np.float32))
    with pytest.raises(GoalWorldError, match="2 seeds"):
        worlds.reset([0, 1])


def test_pictures_show_the_rope_blue_and_its_goal_green():
    env = GoalEnv("sim_envs.rope.worlds:RopeWorlds", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render().astype(int)
    assert picture.shape == (320, 345, 3)
    red, green, blue = np.moveaxis(picture, -1, 0)
    assert ((blue > red + 80) & (blue > green + 40)).sum() > 1000 and ((green > red + 40) & (green > blue + 20)).sum() > 300
    beads = Rope().beads
    assert (draw_rope(beads, beads)[:15] == draw_rope(beads, beads)[0, 0]).all()  # up is away from the robot: nothing lies that far
