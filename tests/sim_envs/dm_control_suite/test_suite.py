import os
import time
from functools import cache
from typing import Any

import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl_core.errors import ArmstackError
from sim_envs.arm.rendering import RenderingUnavailable
from sim_envs.dm_control_suite.env import TASKS, SuiteEnv
from sim_envs.dm_control_suite.rewards import COLUMNS, REWARDS

pytest.importorskip("dm_control", reason='pip install "armstack[dm-control]"')


@cache
def world(domain: str) -> SuiteEnv:
    return SuiteEnv(domain)


def scatter(physics: Any, domain: str, random: np.random.Generator) -> np.ndarray:
    """Puts the domain somewhere, moving, so that every part of its rewards is reached; gives the control that is set."""
    with physics.reset_context():
        if domain == "walker":
            physics.data.qpos[:] = random.normal(0, 0.5, physics.model.nq)
            physics.named.data.qpos["rooty"] = random.uniform(-1.5, 1.5)
            physics.data.qvel[:] = random.normal(0, 4, physics.model.nv)
        elif domain == "hopper":
            physics.data.qpos[:] = random.normal(0, 0.4, physics.model.nq)
            physics.data.qvel[:] = random.normal(0, 2, physics.model.nv)
        elif domain == "quadruped":
            tilt = random.normal(size=4) * (1, 0.5, 0.5, 0.5)
            physics.named.data.qpos["root"][:] = [0, 0, random.uniform(0.3, 1.5), *(tilt / np.linalg.norm(tilt))]
            physics.data.qvel[:] = random.normal(0, 2, physics.model.nv)
        else:
            physics.data.qpos[:] = random.uniform(-3, 3, physics.model.nq)
            angle, radius = random.uniform(0, 6.3), random.uniform(0.1, 0.25)
            physics.named.model.geom_pos["target", ["x", "y"]] = radius * np.cos(angle), radius * np.sin(angle)
        control = random.uniform(-1, 1, physics.model.nu)
        physics.set_control(control)
    return control


def states(domain: str, count: int) -> Any:
    """`count` scattered states: (physics, observation (1, D) float64, action (1, A))."""
    env, random = world(domain), np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(count):
        control = scatter(env.suite.physics, domain, random)
        yield env.suite.physics, env.observe(env.suite.task.get_observation(env.suite.physics))[None], control[None]


def dm_task(domain: str, task: str) -> Any:
    """dm_control's own task, as the judge of a `SuiteEnv`'s physics."""
    world(domain)  # imports dm_control without graphics
    from dm_control import suite

    return suite.load(domain, task).task


@pytest.mark.parametrize(
    ("domain", "task"),
    [
        ("walker", "stand"), ("walker", "walk"), ("walker", "run"), ("quadruped", "walk"), ("quadruped", "run"), ("hopper", "stand"),
        ("hopper", "hop"), ("reacher", "easy"),
    ],
)  # fmt: skip
def test_rewards_are_dm_controls_own(domain: str, task: str) -> None:
    judge, own, theirs = dm_task(domain, task), [], []
    for physics, observation, action in states(domain, 400):
        own.append(REWARDS[domain][task](np.zeros_like(observation), action, observation)[0])
        theirs.append(float(judge.get_reward(physics)))
    assert np.abs(np.array(own) - theirs).max() < 1e-6
    assert min(theirs) < 0.2 and max(theirs) > 0.5 and np.std(theirs) > 0.05


def dm_tolerance(x: float, at_least: float, margin: float, value_at_margin: float) -> float:
    from dm_control.utils import rewards

    return float(rewards.tolerance(float(x), (at_least, np.inf), margin, "linear", value_at_margin))


@pytest.mark.parametrize(
    ("domain", "task"),
    [
        ("walker", "flip"), ("quadruped", "stand"), ("quadruped", "jump"), ("hopper", "hop_backward"), ("hopper", "flip"),
        ("hopper", "flip_backward"),
    ],
)  # fmt: skip
def test_the_other_tasks_follow_their_definitions_over_the_physics(domain: str, task: str) -> None:
    from dm_control.utils import rewards

    stand, own, defined = dm_task("walker", "stand"), [], []
    for physics, observation, action in states(domain, 400):
        named = physics.named.data
        mujoco.mj_subtreeVel(physics.model.ptr, physics.data.ptr)  # whatever a sensor has asked for
        spin = physics.data.ptr.subtree_angmom[physics.model.name2id("torso", "body")][1]
        if domain == "walker":
            value = stand.get_reward(physics) * (5 * dm_tolerance(spin, 5, 5, 0) + 1) / 6
        elif domain == "quadruped":
            value = dm_tolerance(named.xmat["torso", "zz"], 1, 2, 0)
            if task == "jump":
                value *= dm_tolerance(physics.data.ptr.subtree_com[1][2], 1, 1, 0.5)
        else:
            value = rewards.tolerance(float(physics.height()), (0.6, 2))
            backward = -1 if task.endswith("backward") else 1
            moving = dm_tolerance(backward * physics.speed(), 2, 1, 0.5), dm_tolerance(backward * spin, 5, 5, 0)
            value *= moving["flip" in task]
        own.append(REWARDS[domain][task](np.zeros_like(observation), action, observation)[0])
        defined.append(float(value))
    assert np.abs(np.array(own) - defined).max() < 1e-6
    assert min(defined) < 0.1 and max(defined) > 0.5 and np.std(defined) > 0.05


def test_all_tasks_of_the_paper_are_there_and_nothing_else() -> None:
    tasks = {domain: set(rewards) for domain, rewards in REWARDS.items()}
    assert tasks == {
        "walker": {"stand", "walk", "run", "flip"},
        "quadruped": {"stand", "walk", "run", "jump"},
        "hopper": {"stand", "hop", "hop_backward", "flip", "flip_backward"},  # stand is dm_control's, not one of the twelve
        "reacher": {"easy"},
    }


@pytest.mark.parametrize("domain", TASKS)
def test_what_is_observed_is_dm_controls_and_more(domain: str) -> None:
    env = SuiteEnv(domain)
    observation, _ = env.reset(seed=2)
    random = np.random.default_rng(0)
    for _ in range(40):
        observation, reward, terminated, truncated, _ = env.step(random.uniform(-1, 1, env.action_space.shape))
        assert reward == 0.0 and not terminated and not truncated
    assert observation.dtype == np.float32 and env.observation_space.contains(observation)
    parts = env.suite.task.get_observation(env.suite.physics)
    for name, part in parts.items():
        assert np.allclose(observation[COLUMNS[domain][name]], np.ravel(part), atol=1e-5), name
    assert list(COLUMNS[domain])[: len(parts)] == list(parts)
    own = REWARDS[domain][TASKS[domain]](observation[None], random.uniform(-1, 1, (1, *env.action_space.shape)), observation[None])
    if domain != "hopper":  # whose reward reads the action
        assert own[0] == pytest.approx(float(env.suite.task.get_reward(env.suite.physics)), abs=1e-4)


@pytest.mark.parametrize("domain", TASKS)
def test_the_seed_decides_after_any_history(domain: str) -> None:
    def run(env: SuiteEnv, seed: int) -> np.ndarray:
        random = np.random.default_rng(1)
        observed = [env.reset(seed=seed)[0]]
        observed += [env.step(random.uniform(-1, 1, env.action_space.shape))[0] for _ in range(15)]
        observed.append(env.reset()[0])  # the next episode too
        return np.stack(observed)

    used = SuiteEnv(domain)
    run(used, 9)
    assert np.array_equal(run(used, 4), run(SuiteEnv(domain), 4)) and not np.array_equal(run(used, 4), run(used, 5))


def test_actions_use_the_whole_range_of_each_motor() -> None:
    env = SuiteEnv("quadruped")
    env.reset(seed=0)
    spec = env.suite.action_spec()
    for action, control in ((np.ones(12), spec.maximum), (-np.ones(12), spec.minimum), (np.full(12, 7.0), spec.maximum)):
        env.step(action)
        assert np.allclose(env.suite.physics.control(), control)
    for action in (np.full(12, np.nan), np.zeros(3)):
        with pytest.raises(ValueError, match="finite numbers"):
            env.step(action)


def test_horizon_truncates_and_a_reset_is_needed() -> None:
    import gymnasium

    env = SuiteEnv("reacher", horizon=2)
    env.reset(seed=0)
    assert [env.step(np.zeros(2))[2:4] for _ in range(2)] == [(False, False), (False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2))
    env.reset()
    env.step(np.zeros(2))


def test_gymnasiums_checker_and_refusals() -> None:
    check_env(SuiteEnv("reacher"), skip_render_check=True)
    with pytest.raises(ArmstackError, match="valid: hopper, quadruped, reacher, walker"):
        SuiteEnv("cheetah")


def test_pictures_show_the_domain_and_change_as_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    env, other = (SuiteEnv(domain, render_mode="rgb_array", width=64, height=48) for domain in ("walker", "reacher"))
    env.reset(seed=0)
    other.reset(seed=0)
    try:
        first = env.render()
    except RenderingUnavailable as error:
        pytest.skip(str(error))
    assert first is not None and first.shape == (48, 64, 3) and first.dtype == np.uint8 and first.std() > 5
    apart = other.render()
    assert apart is not None and (apart != first).any() and (env.render() == first).all()  # each draws in its own context
    for _ in range(20):
        env.step(np.ones(env.action_space.shape))
    later = env.render()
    assert later is not None and (first != later).any() and "MUJOCO_GL" not in os.environ
    env.close()
    other.close()
    assert SuiteEnv("walker").render() is None


def test_speed() -> None:
    for domain in TASKS:
        env = SuiteEnv(domain)
        env.reset(seed=0)
        actions = np.random.default_rng(0).uniform(-1, 1, (200, *env.action_space.shape))
        start = time.process_time()
        for action in actions:
            observation = env.step(action)[0]
        print(f"{domain}: {200 / (time.process_time() - start):,.0f} steps/s")
        assert np.isfinite(observation).all()
