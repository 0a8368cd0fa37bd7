"""Reward-free worlds are found by their ids, one and many at a time, with and without a named reward."""

import gymnasium
import numpy as np
import pytest

from sim_envs.reward_free.worlds import WORLDS

DM_CONTROL = {"ExploreWalker", "ExploreQuadruped", "ExploreHopper", "ExploreReacher"}


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_a_world_is_made_by_its_id_and_labelled_by_a_name(name: str) -> None:
    if name in DM_CONTROL:
        pytest.importorskip("dm_control", reason="pip install 'armstack[dm-control]'")
    many = gymnasium.make_vec(f"sim_envs:armstack/{name}-v0", num_envs=2)
    observation, _ = many.reset(seed=3)
    assert observation.shape[0] == 2 and observation.dtype == np.float32
    _, reward, *_ = many.step(many.action_space.sample())
    assert (np.asarray(reward) == 0).all()
    many.close()
    rewards = gymnasium.make(f"sim_envs:armstack/{name}-v0").get_wrapper_attr("rewards")
    labelled = gymnasium.make(f"sim_envs:armstack/{name}-v0", reward=next(iter(rewards)))
    labelled.reset(seed=3)
    assert np.isfinite(labelled.step(labelled.action_space.sample())[1])
    labelled.close()
