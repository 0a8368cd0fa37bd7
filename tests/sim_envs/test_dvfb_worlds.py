import numpy as np
import pytest
from gymnasium import spaces

from rl_core.errors import ArmstackError
from sim_envs.reward_free.labelled import flat
from sim_envs.reward_free.worlds import WORLDS, make, make_vector


@pytest.mark.parametrize("name", WORLDS)
def test_many_worlds_are_the_single_ones_side_by_side(name: str) -> None:
    label = sorted(make(name).get_wrapper_attr("rewards"))[0]
    vector, single = make_vector(name, 2, reward=label, horizon=5), make(name, reward=label, horizon=5)
    observations, _ = vector.reset(seed=7)
    observation, _ = single.reset(seed=8)
    assert isinstance(vector.single_observation_space, spaces.Box) and observations.dtype == np.float32
    assert (
        vector.single_action_space == single.action_space
        and (vector.action_space.low == -1).all()
        and (vector.action_space.high == 1).all()
    )
    random = np.random.default_rng(0)
    for step in range(5):
        assert vector.observation_space.contains(observations) and np.array_equal(observations[1], flat(observation))
        actions = random.uniform(-1, 1, vector.action_space.shape).astype(np.float32)
        observations, rewards, terminated, truncated, _ = vector.step(actions)
        observation, reward, _, over, info = single.step(actions[1])
        assert rewards[1] == pytest.approx(reward, abs=1e-12) and info["success"] == (reward >= 1.0)
        assert list(truncated) == [step == 4] * 2 and over == (step == 4) and not terminated.any()
    _, rewards, _, truncated, _ = vector.step(actions)  # resets
    assert not rewards.any() and not truncated.any()
    vector.close()


@pytest.mark.parametrize(("name", "label"), [("FourRooms", "near_sw"), ("ExplorePendulum", "swing_up"), ("ExploreReach", "near_shaped")])
def test_labels_given_later_to_what_was_stored_are_those_given_at_once(name: str, label: str) -> None:
    free = make_vector(name, 2)
    labels = free.rewards
    random = np.random.default_rng(1)
    labelled = make_vector(name, 2, reward=label)
    before, _ = free.reset(seed=0)
    labelled.reset(seed=0)
    seen = []
    for _ in range(20):
        actions = random.uniform(-1, 1, free.action_space.shape).astype(np.float32)
        after, rewards, _, _, infos = free.step(actions)
        assert not rewards.any()
        later = labels[label](before, infos.get("action_applied", actions), after)
        assert np.array_equal(later, labelled.step(actions)[1])
        seen += later.tolist()
        before = after
    assert len(set(seen)) > 1
    free.close()
    labelled.close()


def test_unknown_worlds_and_rewards_name_the_valid_ones() -> None:
    with pytest.raises(ArmstackError, match="'Rooms', valid: ExploreHopper, ExplorePendulum, .*FourRooms, UMaze"):
        make("Rooms")
    for build in (lambda: make("UMaze", reward="ne"), lambda: make_vector("UMaze", 1, reward="ne")):
        with pytest.raises(ArmstackError, match="reward 'ne', valid: end, left"):
            build()
    with pytest.raises(ArmstackError, match="reward 'flip', valid: stand|valid: easy"):
        make_vector("ExploreReacher", 1, reward="flip")
