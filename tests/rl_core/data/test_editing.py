"""Merged, split, trimmed and filtered datasets: what is in them, and that they say where it is from."""

from dataclasses import replace

import numpy as np
import pytest

from rl_core.contract import ContractMismatch
from rl_core.data.checkup import check_dataset
from rl_core.data.editing import filter_episodes, merge, split, trim
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset, write_dataset


def history(episode):
    return episode.meta["history"]


def plain(episode):
    """The episode without its history."""
    return replace(episode, meta={name: value for name, value in episode.meta.items() if name != "history"})


def same(one, other, contract):
    return fingerprint(Dataset(contract=contract, episodes=(plain(one),))) == fingerprint(Dataset(contract=contract, episodes=(other,)))


@pytest.fixture
def outcomes(contract, make_episode):
    """30 successes, 20 failures and 10 episodes of which neither is known, mixed."""
    known = [True, False, True, None, True, False] * 10
    return Dataset(
        contract=contract, episodes=tuple(make_episode(seed, 2, success=each) for seed, each in enumerate(known)), source="a/all.hdf5"
    )


@pytest.fixture
def paused(contract, make_episode):
    """paused(start, moving, end): an episode that stands still, moves, and stands still; moving steps close the gripper only."""

    def make(start, moving, end, seed=0, **changes):
        steps = start + moving + end
        episode = make_episode(seed, steps, **changes)
        opening = np.concatenate([np.full(start + 1, 0.08), 0.08 - 0.001 * np.arange(1, moving + 1), np.full(end, 0.08 - 0.001 * moving)])
        still = {name: np.repeat(values[:1], steps + 1, axis=0) for name, values in episode.observations.items()}
        applied = episode.actions / 2
        ages = {"joint_pos": np.arange(steps + 1, dtype=np.int64)}
        observations = {**still, "gripper_pos": opening[:, None].astype(np.float32)}
        return replace(episode, observations=observations, action_applied=applied, observation_age_ns=ages)

    return make


def test_merged_episodes_keep_uuids_and_say_where_they_are_from(make_dataset, contract, make_episode, tmp_path):
    one = replace(make_dataset((6, 3)), source="/elsewhere/monday.hdf5")
    two = Dataset(contract=contract, episodes=(make_episode(7),), source="tuesday")
    merged = merge([one, two]).dataset
    assert [episode.uuid for episode in merged.episodes] == ["lift-0-00000", "lift-0-00001", "lift-0-00007"]
    assert all(same(episode, before, contract) for episode, before in zip(merged.episodes, [*one.episodes, *two.episodes], strict=True))
    entry = history(merged.episodes[2])[0]
    assert entry["operation"] == "merge" and entry["arguments"] == {"sources": ["monday.hdf5", "tuesday"]}
    assert entry["source"] == "tuesday" and entry["fingerprint"] == fingerprint(two) and entry["version"]
    read = read_dataset(write_dataset(merged, tmp_path / "merged.hdf5"))
    assert fingerprint(read) == fingerprint(merged) and history(read.episodes[2]) == [entry]
    assert [entry["operation"] for entry in history(filter_episodes(read, min_length=1).episodes[2])] == ["merge", "filter"]


def test_an_episode_that_is_in_two_datasets_is_kept_once(make_dataset, make_episode, contract):
    dataset = make_dataset((6, 3))
    again = merge([dataset]).dataset  # the same episodes with another history
    more = replace(again, episodes=(*again.episodes, make_episode(8)))
    merged = merge([dataset, more])
    assert [episode.uuid for episode in merged.dataset.episodes] == ["lift-0-00000", "lift-0-00001", "lift-0-00008"]
    assert merged.kept_once == ("lift-0-00000", "lift-0-00001")
    assert len(history(merged.dataset.episodes[0])) == 1 and len(history(merged.dataset.episodes[2])) == 1


def test_different_episodes_of_one_uuid_are_refused_with_both_files(make_dataset):
    one, two = replace(make_dataset((6,)), source="one.hdf5"), replace(make_dataset((7,)), source="two.hdf5")
    with pytest.raises(DatasetError, match="one.hdf5 and two.hdf5: different episodes have the uuid lift-0-00000"):
        merge([one, two])
    with pytest.raises(DatasetError, match="no dataset to merge"):
        merge([])


def test_contracts_that_differ_are_refused_with_both_sides(make_dataset, contract):
    channels = (replace(contract.observation[0], unit="deg"), *contract.observation[2:])
    action = replace(contract.action, scale=(0.05,) * 3 + (0.4,) * 3 + (1.0,))
    one = replace(make_dataset((6,)), source="one.hdf5")
    two = replace(one, contract=replace(contract, observation=channels, action=action), source="two.hdf5")
    with pytest.raises(ContractMismatch) as caught:
        merge([one, two])
    text = str(caught.value)
    assert text.startswith("two.hdf5 does not fit one.hdf5:")
    assert "observation.joint_pos.unit: 'deg', there 'rad'" in text
    assert "observation.eef_pos: None, there {" in text
    assert "action.scale: (0.05, 0.05, 0.05, 0.4, 0.4, 0.4, 1.0), there (0.05, 0.05, 0.05, 0.5, 0.5, 0.5, 1.0)" in text
    with pytest.raises(ContractMismatch, match="observation order"):
        merge([one, replace(one, contract=contract.select([c.name for c in contract.observation[::-1]]))])


def test_each_part_of_a_split_has_its_share_of_every_outcome(outcomes):
    one, two = split(outcomes, 0.8, seed=3)
    for part, share in ((one, 0.8), (two, 0.2)):
        found = [episode.success for episode in part.episodes]
        assert [found.count(each) for each in (True, False, None)] == [round(share * n) for n in (30, 20, 10)]
    uuids = [[episode.uuid for episode in part.episodes] for part in (one, two)]
    assert sorted(uuids[0] + uuids[1]) == [episode.uuid for episode in outcomes.episodes]  # each once
    assert uuids[0] == sorted(uuids[0])  # in the order they had
    assert [[e.uuid for e in part.episodes] for part in split(outcomes, 0.8, seed=3)] == uuids
    assert [[e.uuid for e in part.episodes] for part in split(outcomes, 0.8, seed=4)] != uuids
    entry = history(two.episodes[0])[0]
    assert entry["arguments"] == {"share": 0.8, "seed": 3} and entry["part"] == "B" and entry["source"] == "all.hdf5"


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "valid: more than 0"), (1.0, "less than 1"), (0.001, "60 episodes is 0"), (0.999, "is 60")]
)
def test_a_split_with_an_empty_part_is_refused(outcomes, share, words):
    with pytest.raises(DatasetError, match=words):
        split(outcomes, share, seed=0)


def test_forty_idle_frames_at_the_start_are_cut_and_everything_stays_aligned(contract, paused):
    episode = paused(40, 5, 10)
    dataset = Dataset(contract=contract, episodes=(episode,))
    assert check_dataset(dataset).figures["idle_at_start"] == [40]
    trimmed = trim(dataset, idle=2)
    found = trimmed.dataset.episodes[0]
    assert trimmed.cut == {episode.uuid: (38, 8)} and len(found) == 2 + 5 + 2 and found.uuid == episode.uuid
    for name in episode.observations:
        np.testing.assert_array_equal(found.observations[name], episode.observations[name][38:48])
    np.testing.assert_array_equal(found.stamps_ns, episode.stamps_ns[38:48])
    np.testing.assert_array_equal(found.observation_age_ns["joint_pos"], np.arange(38, 48))
    for name in ("actions", "action_applied", "rewards"):
        np.testing.assert_array_equal(getattr(found, name), getattr(episode, name)[38:47])
    assert (found.terminal, found.truncated) == (False, True)
    assert history(found)[0]["arguments"] == {"idle": 2} and history(found)[0]["cut"] == [38, 8]
    assert check_dataset(trim(dataset, idle=0).dataset).figures["idle_share"] == 0
    assert len(episode) == 55  # what was given is as it was


def test_the_end_of_a_terminal_episode_stays(contract, paused):
    episode = paused(4, 5, 3, terminal=True, truncated=False)
    found = trim(Dataset(contract=contract, episodes=(episode,)), idle=0).dataset.episodes[0]
    assert len(found) == 8 and (found.terminal, found.truncated) == (True, False)
    assert found.rewards[-1] == episode.rewards[-1]


def test_an_episode_without_any_motion_is_named_and_left_as_it_was(contract, paused):
    still, moving = paused(6, 0, 0), paused(2, 3, 0, seed=1)
    trimmed = trim(Dataset(contract=contract, episodes=(still, moving)), idle=0)
    assert trimmed.motionless == (still.uuid,) and [len(episode) for episode in trimmed.dataset.episodes] == [6, 3]


def test_idle_steps_that_cannot_be_told_are_an_error(make_dataset, contract):
    dataset = make_dataset((6,))
    episode = replace(dataset.episodes[0], observations={"cube_pos": dataset.episodes[0].observations["cube_pos"]})
    with pytest.raises(DatasetError, match="needed joint_pos or eef_pos, found \\['cube_pos'\\]"):
        trim(Dataset(contract=contract.select(["cube_pos"]), episodes=(episode,)), idle=0)
    with pytest.raises(DatasetError, match="idle -1, valid: 0 or more"):
        trim(dataset, idle=-1)


def test_filters_keep_what_fulfils_all_of_them(contract, make_episode):
    rewards = {"one": 1.0, "two": 5.0, "three": 5.0, "four": 9.0}
    episodes = tuple(
        make_episode(
            seed, 3 + seed, uuid=uuid, success=[True, True, False, None][seed], rewards=np.full(3 + seed, value / (3 + seed), np.float32)
        )
        for seed, (uuid, value) in enumerate(rewards.items())
    )
    dataset = Dataset(contract=contract, episodes=episodes, source="all.hdf5")

    def kept(**criteria):
        return [episode.uuid for episode in filter_episodes(dataset, **criteria).episodes]

    assert kept(success=True) == ["one", "two"]  # of the last it isn't known
    assert kept(min_return=4.9) == ["two", "three", "four"]
    assert kept(min_length=5) == ["three", "four"]
    assert kept(uuids=["four", "one"]) == ["one", "four"]
    assert kept(success=True, min_return=4.9) == ["two"]
    assert history(filter_episodes(dataset, success=True, min_length=3).episodes[0])[0]["arguments"] == {"success": True, "min_length": 3}
    with pytest.raises(DatasetError, match="all.hdf5: no episode of 4 fulfils {'min_length': 7}"):
        kept(min_length=7)
    with pytest.raises(DatasetError, match="all.hdf5: no episodes \\['five'\\]"):
        kept(uuids=["one", "five"])
    with pytest.raises(DatasetError, match="no criterion, valid: success, min_return, min_length, uuids"):
        kept()
