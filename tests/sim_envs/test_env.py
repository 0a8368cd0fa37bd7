"""ArmEnv: Gymnasium's and Stable-Baselines3's checkers, faults, actions, speed, and the vectorised form."""

import time
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sim_envs.arm.env import ArmEnv
from sim_envs.arm.world import ArmWorld, FaultyAction
from sim_envs.vector import ThreadedVectorEnv

KINDS = ["ee_delta", "joint_delta"]


@pytest.mark.parametrize("name", ["Reach", "Lift", "PickPlace"])
@pytest.mark.parametrize("action", KINDS)
def test_passes_the_checkers(name, action):
    from stable_baselines3.common.env_checker import check_env as sb3_check_env

    env = gymnasium.make(f"sim_envs:armstack/{name}-v0", action=action)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=True)
        sb3_check_env(env.unwrapped)


@pytest.mark.parametrize("action", KINDS)
def test_nan_action_is_no_finite_observation(action):
    """MuJoCo swallows a NaN and starts anew; here it is an error, and the episode stays invalid until a reset."""
    env = ArmEnv("lift", action=action)
    env.reset(seed=0)
    faulty = np.zeros(env.action_space.shape, np.float32)
    faulty[2] = np.nan
    with pytest.raises(FaultyAction, match="finite"):
        env.step(faulty)
    for _ in range(2):
        with pytest.raises(gymnasium.error.ResetNeeded, match="invalid since step 0"):
            env.step(np.zeros(env.action_space.shape, np.float32))
    env.reset(seed=0)
    observation, reward, *_ = env.step(np.zeros(env.action_space.shape, np.float32))
    assert np.isfinite(reward) and all(np.isfinite(value).all() for value in observation.values())


def test_step_needs_a_reset():
    with pytest.raises(gymnasium.error.ResetNeeded, match="not been called"):
        ArmEnv("reach", action="joint_delta").step(np.zeros(8))


def test_reset_with_a_seed_is_the_worlds():
    env, world = ArmEnv("lift", action="joint_delta"), ArmWorld("lift")
    env.reset(seed=12)
    world.reset(12)
    np.testing.assert_array_equal(env.world.snapshot(), world.snapshot())
    first = env.reset()[0]["cube_pos"]
    env.reset(seed=12)
    np.testing.assert_array_equal(env.reset()[0]["cube_pos"], first)  # the seeds that follow a seed repeat too


def test_time_limit_truncates_and_never_terminates():
    env = gymnasium.make("sim_envs:armstack/Reach-v0", action="joint_delta", horizon=4)
    env.reset(seed=0)
    ends = [env.step(np.zeros(8, np.float32))[2:4] for _ in range(4)]
    assert ends == [(False, False)] * 3 + [(False, True)]


@pytest.mark.parametrize("action", KINDS)
def test_gripper_polarity_is_the_contracts(action):
    """-1 opens to the declared 0.08 m and +1 closes to 0, whatever moves the arm."""
    env = ArmEnv("reach", action=action)
    for value, opening in ((-1.0, env.contract.action.gripper.open), (1.0, env.contract.action.gripper.closed)):
        env.reset(seed=0)
        command = np.zeros(env.action_space.shape, np.float32)
        command[-1] = value
        for _ in range(30):
            observation = env.step(command)[0]
        assert observation["gripper_pos"][0] == pytest.approx(opening, abs=0.0025)


def test_ee_delta_moves_along_the_base_axes():
    env = ArmEnv("reach")
    for axis in range(3):
        start = env.reset(seed=0)[0]["eef_pos"]
        command = np.zeros(7, np.float32)
        command[axis] = 0.5
        for _ in range(6):
            observation = env.step(command)[0]
        moved = observation["eef_pos"] - start
        assert moved[axis] > 0.01 and np.abs(np.delete(moved, axis)).max() < 0.3 * moved[axis]


def test_joint_delta_moves_the_named_joint():
    env = ArmEnv("reach", action="joint_delta")
    for joint in range(7):
        start = env.reset(seed=0)[0]["joint_pos"]
        command = np.zeros(8, np.float32)
        command[joint] = 0.5
        for _ in range(10):
            observation = env.step(command)[0]
        moved = observation["joint_pos"] - start
        assert np.argmax(np.abs(moved)) == joint and moved[joint] > 0.1


def test_actions_and_controllers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="osc_pose"):
        ArmEnv("lift", action="joint_delta", controller="osc_pose")


def test_servo_lift_is_fast():
    """Eight times robosuite's best figure for Lift (98 steps/s); CPU time, so that a busy machine does not decide."""
    env = ArmEnv("lift", action="joint_delta")
    actions = np.random.default_rng(0).uniform(-1, 1, (200, 8))
    best = np.inf
    for repeat in range(3):
        env.reset(seed=repeat)
        start = time.thread_time()
        for action in actions:
            env.step(action)
        best = min(best, time.thread_time() - start)
    assert len(actions) / best > 8 * 98


def make_lift() -> ArmEnv:
    return ArmEnv("lift", action="joint_delta", horizon=3)


def test_threaded_vector_gives_the_numbers_of_single_environments():
    vector, singles = ThreadedVectorEnv([make_lift] * 3), [make_lift() for _ in range(3)]
    batch, _ = vector.reset(seed=5)
    rows = [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)]
    rng = np.random.default_rng(0)
    for step in range(3):
        actions = rng.uniform(-1, 1, (3, 8)).astype(np.float32)
        batch, rewards, _, truncated, infos = vector.step(actions)
        results = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        rows = [result[0] for result in results]
        for name, values in batch.items():
            np.testing.assert_array_equal(values, [row[name] for row in rows])
        np.testing.assert_array_equal(rewards, [result[1] for result in results])
        assert truncated.all() == (step == 2)
        np.testing.assert_array_equal(infos["success"], [False] * 3)
    # The step after the end resets and pays nothing.
    batch, rewards, _, truncated, _ = vector.step(actions)
    np.testing.assert_array_equal(rewards, 0.0)
    assert not truncated.any()
    np.testing.assert_array_equal(batch["joint_vel"], 0.0)
    vector.close()


def test_threaded_vector_raises_what_an_environment_raises():
    vector = ThreadedVectorEnv([make_lift] * 2)
    vector.reset(seed=0)
    actions = np.zeros((2, 8), np.float32)
    actions[1] = np.nan
    with pytest.raises(FaultyAction):
        vector.step(actions)
    vector.close()
