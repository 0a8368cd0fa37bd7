from dataclasses import replace

import numpy as np
import pytest

from rl_core.data.checkup import check_dataset
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.episode_replay import EpisodeReplay
from rl_core.data.replay import ReplayBuffer
from rl_core.data.training_data import require_trainable


def spoiled(episode, field, value):
    array = np.array(getattr(episode, field))
    array[2] = value
    return replace(episode, **{field: array})


def build(dataset, into):
    return into.from_dataset(dataset, dataset.contract)


@pytest.mark.parametrize("into", [ReplayBuffer, EpisodeReplay])
def test_nan_is_refused_with_episode_field_and_step(make_dataset, into):
    good = make_dataset()
    build(good, into)
    for field, value in (("actions", np.nan), ("rewards", np.inf)):
        episodes = (good.episodes[0], spoiled(good.episodes[1], field, value))
        with pytest.raises(DatasetError, match=f"episode 1 .*{field} is not finite at step 2"):
            build(replace(good, episodes=episodes), into)
    observations = {name: values.copy() for name, values in good.episodes[0].observations.items()}
    observations["cube_pos"][4, 1] = np.nan
    with pytest.raises(DatasetError, match="'cube_pos' is not finite at step 4"):
        build(replace(good, episodes=(replace(good.episodes[0], observations=observations),)), into)


def test_stamps_that_repeat_or_go_back_are_refused(make_dataset):
    good = make_dataset()
    for shift in (0, -7):
        stamps = good.episodes[0].stamps_ns.copy()
        stamps[3] = stamps[2] + shift
        with pytest.raises(DatasetError, match=rf"stamps_ns\[3\] is {shift} ns after"):
            require_trainable(replace(good, episodes=(replace(good.episodes[0], stamps_ns=stamps),)))


def test_slow_loop_is_not_trained_on_at_the_declared_rate(make_episode, contract):
    stamps = np.cumsum(np.full(101, int(1e9 / 15))).astype(np.int64)
    dataset = Dataset(contract=contract, episodes=(make_episode(0, 100, stamps_ns=stamps),))
    with pytest.raises(DatasetError, match="recorded at 15 Hz, but its contract says 20 Hz"):
        require_trainable(dataset)
    action = replace(contract.action, period_s=1 / 15)
    require_trainable(Dataset(contract=replace(contract, action=action), episodes=dataset.episodes))


def test_quaternion_without_norm_one_is_refused(make_dataset):
    good = make_dataset()
    observations = {name: values.copy() for name, values in good.episodes[0].observations.items()}
    observations["eef_quat"][3] *= 1.1
    spoiled_dataset = replace(good, episodes=(replace(good.episodes[0], observations=observations),))
    with pytest.raises(DatasetError, match="quaternion 'eef_quat' hasn't norm 1 at step 3"):
        require_trainable(spoiled_dataset)
    report = check_dataset(spoiled_dataset)
    assert report.figures["quaternions_not_unit"] == {"eef_quat": 1} and not report.trainable


def test_a_dataset_without_transitions_is_refused(contract):
    with pytest.raises(DatasetError, match="no transitions in 0 episodes"):
        require_trainable(Dataset(contract=contract, episodes=()))


def test_missing_channel_lists_both_key_sets(make_dataset):
    dataset = make_dataset()
    episode = dataset.episodes[0]
    fewer = {name: values for name, values in episode.observations.items() if name != "cube_pos"}
    with pytest.raises(DatasetError, match=r"lacks \['cube_pos'\]; needed .*found"):
        ReplayBuffer.from_dataset(replace(dataset, episodes=(replace(episode, observations=fewer),)), dataset.contract)
