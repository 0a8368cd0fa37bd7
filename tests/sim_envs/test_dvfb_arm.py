import time

import gymnasium
import numpy as np
import pytest

from rl_core.contract import ContractMismatch
from rl_core.errors import ArmstackError
from rl_core.training.worlds import contract_of
from sim_envs.arm.env import ArmEnv
from sim_envs.arm.reward_free import POINTS, PUSHED, REACHED, REWARDS, TABLE, WORLDS, ExploreArm, Moves
from sim_envs.arm.world import FaultyAction
from sim_envs.reward_free.labelled import Labelled, flat


@pytest.mark.parametrize("name", WORLDS)
def test_observation_is_the_contracts_and_the_hands_pose_is_in_it(name: str) -> None:
    env = ExploreArm(name)
    observation, _ = env.reset(seed=1)
    assert list(observation) == [channel.name for channel in env.contract.observation]
    assert list(observation)[:2] == ["eef_pos", "eef_quat"] and env.observation_space.contains(observation)
    state = env.world.state()
    assert np.allclose(flat(observation)[env.columns["eef_pos"]], state.eef_pos)
    assert np.allclose(flat(observation)[env.columns["eef_quat"]], state.eef_quat)
    assert flat(observation).shape == (env.contract.observation_size,) and flat(observation).dtype == np.float32


@pytest.mark.parametrize("name", WORLDS)
def test_what_is_learned_fits_the_arm_worlds_with_this_scene(name: str) -> None:
    ExploreArm(name).contract.accepts(contract_of(ArmEnv(WORLDS[name].scene)))
    assert ExploreArm(name).contract.action == contract_of(ArmEnv(WORLDS[name].scene)).action
    with pytest.raises(ContractMismatch, match="action.names"):
        ExploreArm(name, action="translation").contract.accepts(contract_of(ArmEnv(WORLDS[name].scene)))


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("kind", ["ee_delta", "translation"])
def test_hand_stays_in_its_box_whatever_is_asked(name: str, kind: Moves) -> None:
    env, random = ExploreArm(name, action=kind), np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    upright = observation["eef_quat"]
    outside, turned = [], []
    action = np.zeros(env.action_space.shape)
    for step in range(env.horizon):
        if step % 8 == 0:
            action = random.uniform(-3, 3, env.action_space.shape)
        observation, reward, terminated, truncated, info = env.step(action)
        assert reward == 0.0 and not terminated and truncated == (step == env.horizon - 1)
        applied = info["action_applied"]
        assert np.abs(applied).max() <= 1.0 and applied.shape == action.shape and applied.dtype == np.float32
        hand = observation["eef_pos"] - TABLE
        outside.append(np.maximum(np.array(WORLDS[name].low) - hand, hand - WORLDS[name].high).max())
        turned.append(2 * np.arccos(min(1.0, abs(observation["eef_quat"] @ upright))))
    # The hand overshoots by a few centimetres and comes back; it begins above the box of `push`.
    assert max(outside[10:]) < 0.06 and np.mean(outside[10:]) < 0.0
    assert max(turned) < 0.9 and (np.mean(turned) > 0.2) == (kind == "ee_delta")


def test_what_is_applied_at_the_boxs_edge_is_what_is_left_of_the_action() -> None:
    env = ExploreArm("reach")
    env.reset(seed=0)
    *_, info = env.step(np.array([0.5, 0.2, -0.3, 0.1, -0.2, 0.3, 1.0]))
    assert np.allclose(info["action_applied"], [0.5, 0.2, -0.3, 0.1, -0.2, 0.3, 1.0], atol=1e-6)  # inside: all of it
    for _ in range(30):
        *_, info = env.step(np.array([0.0, 1.0, 0.0, 0.0, 0.0, 1.0, -1.0]))
    assert abs(info["action_applied"][1]) < 0.2 and abs(info["action_applied"][5]) < 0.2 and info["action_applied"][6] == -1.0


@pytest.mark.parametrize("name", sorted(POINTS))
def test_every_point_can_be_reached_and_its_reward_says_when(name: str) -> None:
    env = Labelled(ExploreArm("reach", action="translation"), REWARDS["reach"][name])
    observation, _ = env.reset(seed=0)
    goal = TABLE + POINTS[name]
    successes = []
    for _ in range(60):
        observation, reward, *_, info = env.step((goal - observation["eef_pos"]) / 0.05)
        near = np.linalg.norm(observation["eef_pos"] - goal) < REACHED
        assert info["success"] == near and reward == float(near)
        successes.append(near)
    assert successes[-1] and not successes[0]


def test_shaped_rewards_rise_towards_the_point_up_to_1() -> None:
    rows = np.zeros((4, WORLDS["reach"].contract().observation_size))
    rows[:, :3] = TABLE + POINTS["left"] + np.array([[0.3, 0, 0], [0.1, 0, 0], [0.03, 0, 0], [0.0, 0.019, 0]])
    shaped = REWARDS["reach"]["left_shaped"](rows, rows, rows)
    assert np.allclose(shaped[1:3], 1 - np.tanh([1.0, 0.3])) and shaped[3] == 1.0 and (np.diff(shaped) > 0).all()


def test_the_hand_pushes_the_cube_and_the_reward_of_that_direction_alone_rises() -> None:
    env = ExploreArm("push", action="translation")
    observation, _ = env.reset(seed=0)
    first = flat(observation)
    cube = observation["cube_pos"]
    for target in (cube + (0, -0.1, 0.1), cube + (0, -0.1, 0.005), cube + (0, 0.15, 0.005)):  # from its right to the left
        for _ in range(40):
            observation, *_ = env.step((target - observation["eef_pos"]) / 0.05)
    last = flat(observation)
    assert observation["cube_pos"][1] - TABLE[1] > PUSHED
    before, after = ({n: float(r(x[None], x[None], x[None])[0]) for n, r in REWARDS["push"].items()} for x in (first, last))
    assert after["push_left"] == 1.0 and before["push_left"] < 0.4
    assert after["push_right"] == 0.0 and after["push_near"] < 0.6 and after["push_far"] < 0.6
    fallen = last.copy()
    fallen[env.columns["cube_pos"].stop - 1] = TABLE[2] - 0.5
    assert REWARDS["push"]["push_left"](last[None], last[None], fallen[None]) == [0.0]


@pytest.mark.parametrize("name", WORLDS)
def test_the_seed_decides(name: str) -> None:
    def run(seed: int) -> np.ndarray:
        env, random = ExploreArm(name), np.random.default_rng(2)
        observed = [flat(env.reset(seed=seed)[0])]
        observed += [flat(env.step(random.uniform(-1, 1, 7))[0]) for _ in range(12)]
        return np.stack(observed)

    assert np.array_equal(run(3), run(3)) and not np.array_equal(run(3), run(4))


def test_faulty_actions_invalidate_the_episode() -> None:
    env = ExploreArm("reach")
    for action in (np.array([0.0] * 6 + [np.nan]), np.zeros(3)):
        env.reset(seed=0)
        with pytest.raises(FaultyAction, match=r"\(7,\) finite numbers"):
            env.step(action)
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(np.zeros(7))
    with pytest.raises(ArmstackError, match="valid: ee_delta, translation"):
        ExploreArm("reach", action="joint_delta")  # type: ignore[arg-type]
    with pytest.raises(ArmstackError, match="valid: push, reach"):
        ExploreArm("lift")


def test_speed() -> None:
    for name in WORLDS:
        env = ExploreArm(name)
        env.reset(seed=0)
        env.step(np.zeros(7))
        start = time.process_time()
        for _ in range(80):
            observation, *_ = env.step(np.array([0.3, 0.2, -0.2, 0.0, 0.1, 0.0, 0.0]))
        print(f"{name}: {80 / (time.process_time() - start):,.0f} steps/s")
        assert np.isfinite(flat(observation)).all()
