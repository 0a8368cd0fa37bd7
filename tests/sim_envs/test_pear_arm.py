"""The arm's goal worlds: what counts as done, demonstrations, rows, actions."""

from functools import partial

import numpy as np
import pytest

from rl_core.pear.worlds import GoalWorldEnv, GoalWorldError, check_goal_worlds
from sim_envs.arm.goal_worlds import ArmGoalWorlds
from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.goal_tasks import BIN_HALF, BLOCK_HALF, GOAL_TASKS, RING_INNER, ROD_RADIUS, STAND_HEIGHT
from sim_envs.experts.motion import pointing_down, rotation_between

SEEDS = {"goal_pick": 10, "goal_bin": 6, "goal_ring": 5}


@pytest.fixture(scope="module", params=list(GOAL_TASKS))
def worlds(request):
    made = ArmGoalWorlds(2, request.param)
    yield made
    made.close()


def test_it_is_a_goal_world(worlds):
    check_goal_worlds(worlds)
    seen = worlds.reset([3, 4])
    thing = worlds.task.thing
    assert [channel.name for channel in worlds.contract.observation] == [
        "eef_pos", "gripper_pos", f"{thing}_pos", f"gripper_to_{thing}_pos", "desired_goal",
    ]  # fmt: skip
    assert {key: values.shape for key, values in seen.items()} == {"observation": (2, 10), "achieved_goal": (2, 6), "desired_goal": (2, 6)}
    np.testing.assert_array_equal(seen["achieved_goal"], seen["observation"][:, [0, 1, 2, 4, 5, 6]])
    np.testing.assert_allclose(seen["observation"][:, 7:], seen["observation"][:, 4:7] - seen["observation"][:, :3], atol=1e-6)
    assert worlds.goal.threshold == 0.1
    assert worlds.horizon == {"goal_pick": 49, "goal_bin": 64, "goal_ring": 100}[worlds.task.name]


def test_no_episode_begins_done_and_every_goal_can_be_asked_for(worlds):
    for seed in range(0, 40, 2):
        seen = worlds.reset([seed, seed + 1])
        assert not worlds.goal.reached(seen["achieved_goal"], seen["desired_goal"]).any()
        for goal in (seen["achieved_goal"], seen["desired_goal"]):
            np.testing.assert_allclose(worlds.goal.decode(worlds.goal.encode(goal)), goal, atol=1e-5)  # inside the box


def test_who_holds_the_thing_over_its_place_is_done_only_where_it_shall_be_held(worlds):
    worlds.reset([0, 1])
    task = worlds.task
    desired = task.desired(worlds.worlds[0])
    held = [np.concatenate([thing + task.grasp, thing]) for thing in desired[3:] + np.linspace(0, 0.3, 61)[:, None] * (0, 0, 1)]
    done = [bool(worlds.goal.reached(achieved, desired)) for achieved in held]
    assert any(done) == (task.retreat == 0)


def test_demonstrations_arrive_and_replay_to_the_bit_in_any_row(worlds):
    """Every seed tried arrives."""
    count = SEEDS[worlds.task.name]
    demonstrations = worlds.demonstrations(range(count))
    for demo in demonstrations:
        assert worlds.goal.reached(demo.achieved[-1], demo.goal) and len(demo) <= worlds.horizon
        assert demo.actions.shape[1] == 4 and np.abs(demo.actions).max() <= 1
    demo = demonstrations[-1]
    seen = worlds.reset([99, count - 1])
    np.testing.assert_array_equal(seen["desired_goal"][1], demo.goal)
    np.testing.assert_array_equal(seen["observation"][1], demo.observation[0])
    rng = np.random.default_rng(0)
    for step, action in enumerate(demo.actions, start=1):
        seen = worlds.step(np.stack([rng.uniform(-1, 1, 4), action]).astype(np.float32))
        np.testing.assert_array_equal(seen["observation"][1], demo.observation[step])


def test_what_was_demonstrated_is_what_the_task_means():
    for name in ("goal_bin", "goal_ring"):
        worlds = ArmGoalWorlds(1, name)
        demo = worlds.demonstrations([2])[0]
        worlds.reset([2])
        for action in demo.actions:
            worlds.step(action[None])
        for _ in range(5):
            worlds.step(np.array([[0, 0, 0, -1]], np.float32))
        world = worlds.worlds[0]
        off = world.object_pos(worlds.task.thing) - world.object_pos("goal")
        assert not world.grasps(worlds.task.thing)
        if name == "goal_bin":
            assert np.abs(off[:2]).max() < BIN_HALF and off[2] == pytest.approx(BLOCK_HALF, abs=0.005)
        else:  # the rod is in the hole, and the ring lies on the stand
            assert np.linalg.norm(off[:2]) < RING_INNER - ROD_RADIUS + 0.001 and off[2] == pytest.approx(STAND_HEIGHT + 0.006, abs=0.003)
        worlds.close()


def test_a_full_action_moves_the_hand_by_a_few_centimetres_and_it_keeps_pointing_down():
    worlds = ArmGoalWorlds(1, "goal_pick")
    for axis in range(3):
        worlds.reset([0])
        action = np.zeros((1, 4), np.float32)
        action[0, axis] = 1.0
        points = [worlds.step(action)["achieved_goal"][0, :3] for _ in range(5)]
        moved = points[-1] - points[-2]
        assert 0.02 < moved[axis] < 0.05 and np.abs(np.delete(moved, axis)).max() < 0.006
    rng = np.random.default_rng(0)
    for _ in range(20):
        worlds.step(rng.uniform((-1, -1, 0, -1), 1, (1, 4)).astype(np.float32))
    assert np.linalg.norm(rotation_between(worlds.worlds[0].state().eef_quat, pointing_down(0.0))) < 0.25
    worlds.close()


def test_the_scripted_primitives_open_close_and_go_to_a_point():
    worlds = ArmGoalWorlds(3, "goal_pick")
    seen = worlds.reset([0, 1, 2])
    argument = np.zeros((3, 3), np.float32)
    for age in range(12):
        seen = worlds.step(worlds.primitives.act(seen["observation"], np.array([0, 1, 2]), argument, np.full(3, age)))
    assert np.linalg.norm(seen["achieved_goal"][0, :3] - worlds.goal.centre[:3]) < 0.02
    assert seen["observation"][1, 3] > 0.07 and seen["observation"][2, 3] < 0.01
    assert worlds.goal.centre[2] > TABLE_TOP
    worlds.close()


def test_environment_counts_steps_and_tells_success():
    env = GoalWorldEnv(partial(ArmGoalWorlds, task="goal_pick"))
    demo = env.worlds.demonstrations([4])[0]
    env.reset(seed=4)
    steps = [env.step(action) for action in demo.actions]
    assert steps[0][1] == -1.0 and steps[-1][1] == 0.0 and steps[-1][4]["success"]
    env.close()


def test_pictures_show_what_moves(graphics):
    worlds = ArmGoalWorlds(1, "goal_ring")
    worlds.reset([0])
    before = worlds.render()
    for _ in range(5):
        worlds.step(np.array([[0, 1, 0, 0]], np.float32))
    after = worlds.render()
    assert before.shape == (256, 256, 3) and np.abs(after.astype(int) - before).max(axis=-1).astype(bool).sum() > 100
    worlds.close()


def test_faulty_actions_seeds_and_tasks_are_refused():
    worlds = ArmGoalWorlds(1, "goal_pick")
    with pytest.raises(GoalWorldError, match=r"finite, \(1, 4\)"):
        worlds.step(np.full((1, 4), np.inf, np.float32))
    with pytest.raises(GoalWorldError, match="2 seeds"):
        worlds.reset([0, 1])
    worlds.close()
    with pytest.raises(ValueError, match="goal_pick, goal_bin, goal_ring"):
        ArmGoalWorlds(1, "goal_throw")
