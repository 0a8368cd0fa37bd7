import json
import shutil
from dataclasses import replace

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats.minari import MinariFormat
from tests.rl_core.data.rich_dataset import rich_dataset

FORMAT = MinariFormat()


@pytest.fixture
def rich() -> Dataset:
    return rich_dataset()


def test_everything_comes_back(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift-v0")
    assert FORMAT.matches(tmp_path / "lift-v0")
    read = FORMAT.read(tmp_path / "lift-v0")
    assert FORMAT.cannot_hold == {} and read.contract == rich.contract and read.source == str(tmp_path / "lift-v0")
    assert fingerprint(read) == fingerprint(rich)


def test_meta_beyond_the_usual_size_of_an_attribute_comes_back(tmp_path, rich):
    long = replace(rich, episodes=(replace(rich.episodes[1], meta={"note": "x" * 200_000}),))
    FORMAT.write(long, tmp_path / "long-v0")
    assert fingerprint(FORMAT.read(tmp_path / "long-v0")) == fingerprint(long)


def test_minari_itself_opens_it(tmp_path, rich, monkeypatch):
    FORMAT.write(rich, tmp_path / "lift-v0")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert list(minari.list_local_datasets()) == ["lift-v0"]
    dataset = minari.load_dataset("lift-v0")
    assert (dataset.id, dataset.total_episodes, dataset.total_steps) == ("lift-v0", 4, 15)
    assert dataset.spec.namespace is None and dataset.env_spec is None
    for given, episode in zip(dataset.iterate_episodes(), rich.episodes, strict=True):
        for channel in rich.contract.observation:
            expected = episode.observations[channel.name]
            np.testing.assert_array_equal(given.observations[channel.name], expected[..., 0] if channel.name == "wrist" else expected)
        np.testing.assert_array_equal(given.actions, episode.actions)
        np.testing.assert_array_equal(given.rewards, episode.rewards)
        assert (given.terminations[-1], given.truncations[-1]) == (episode.terminal, episode.truncated)
        assert not given.terminations[:-1].any() and not given.truncations[:-1].any()
        np.testing.assert_array_equal(given.infos["stamps_ns"], episode.stamps_ns)
        for row in range(len(episode) + 1):
            finite = {name: np.nan_to_num(values[row]) for name, values in given.observations.items()}
            assert dataset.observation_space.contains(finite)
        assert all(dataset.action_space.contains(action) for action in given.actions)
    assert [metadata.get("seed") for metadata in dataset.storage.get_episode_metadata(range(4))] == [0, None, 2, 3]


def test_the_id_is_the_name_of_the_folder_where_that_is_one(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "my demos")
    assert minari.MinariDataset(tmp_path / "my demos" / "data").spec.dataset_id == "my_demos-v0"


BOX = gymnasium.spaces.Box(-1, 1, (3,), np.float64)
CAMERA = gymnasium.spaces.Box(0, 255, (32, 32, 3), np.uint8)


def library_made(tmp_path, monkeypatch, observation_space, action_space=BOX, data_format="hdf5", **infos):
    """Two episodes that only the library wrote: 4 steps to a terminal, 2 to a time limit."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    observation_space.seed(0)
    action_space.seed(0)
    buffers = []
    for index, steps in enumerate((4, 2)):
        samples = [observation_space.sample() for _ in range(steps + 1)]
        stacked = {k: np.stack([s[k] for s in samples]) for k in samples[0]} if isinstance(samples[0], dict) else np.stack(samples)
        buffers.append(
            EpisodeBuffer(
                seed=10 + index,
                observations=stacked,
                actions=np.stack([action_space.sample() for _ in range(steps)]),
                rewards=[0.5] * steps,
                terminations=[False] * (steps - 1) + [index == 0],
                truncations=[False] * (steps - 1) + [index == 1],
                infos={key: np.arange(steps + 1) > 3 for key in infos},
            )
        )
    minari.create_dataset_from_buffers(
        "made/box-v3", buffers, observation_space=observation_space, action_space=action_space, data_format=data_format
    )
    return tmp_path / "made" / "box-v3", buffers


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
def test_a_box_dataset_of_the_library_loads(tmp_path, monkeypatch, caplog, data_format):
    folder, buffers = library_made(tmp_path, monkeypatch, gymnasium.spaces.Box(-9, 9, (2,), np.float64), data_format=data_format)
    assert FORMAT.matches(folder)
    dataset = FORMAT.read(folder)
    channel = dataset.contract.channel("observation")
    assert (channel.names, channel.dtype, channel.unit) == (("observation_0", "observation_1"), "float64", "1")
    assert dataset.contract.action.names == ("action_0", "action_1", "action_2")
    for episode, buffer in zip(dataset.episodes, buffers, strict=True):
        np.testing.assert_array_equal(episode.observations["observation"], buffer.observations)
        np.testing.assert_array_equal(episode.actions, buffer.actions.astype(np.float32))
        np.testing.assert_array_equal(episode.stamps_ns, np.arange(len(buffer) + 1) * 50_000_000)
    assert [(e.terminal, e.truncated, e.success, e.meta["seed"]) for e in dataset.episodes] == [
        (True, False, None, 10),
        (False, True, None, 11),
    ]
    assert "Minari states no period: stamps assume 0.05 s" in caplog.text
    assert [e.uuid for e in dataset.episodes] == [e.uuid for e in FORMAT.read(folder).episodes]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("low", "high", "scale"), [([-2, -0.5, 0], [2, 0.25, 8], (2.0, 0.5, 8.0)), ([-np.inf, 0, -1], [1, 0, np.inf], (1.0, 1.0, 1.0))]
)
def test_the_bounds_of_the_action_space_are_the_scale(tmp_path, monkeypatch, low, high, scale):
    """Pain 23: Pendulum's actions reach to 2 and policies to 1."""
    space = gymnasium.spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
    folder, buffers = library_made(tmp_path, monkeypatch, BOX, space)
    dataset = FORMAT.read(folder)
    assert dataset.contract.action.scale == scale
    for episode, buffer in zip(dataset.episodes, buffers, strict=True):
        np.testing.assert_allclose(episode.actions * np.float32(scale), buffer.actions, rtol=1e-6)
        assert not np.isfinite([low, high]).all() or np.abs(episode.actions).max() <= 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_dict_dataset_of_the_library_loads(tmp_path, monkeypatch):
    space = gymnasium.spaces.Dict({"camera": CAMERA, "goal": BOX, "force": gymnasium.spaces.Box(-1, 1, (), np.float32)})
    folder, buffers = library_made(tmp_path, monkeypatch, space, success=True)
    dataset = FORMAT.read(folder)
    assert [(c.name, c.kind, c.shape) for c in dataset.contract.observation] == [
        ("camera", "image", (32, 32, 3)),
        ("force", "vector", (1,)),
        ("goal", "vector", (3,)),
    ]
    library = minari.MinariDataset(folder / "data")
    for episode, buffer, given in zip(dataset.episodes, buffers, library.iterate_episodes(), strict=True):
        np.testing.assert_array_equal(episode.observations["goal"], buffer.observations["goal"])
        np.testing.assert_array_equal(episode.observations["force"][:, 0], buffer.observations["force"])
        np.testing.assert_array_equal(episode.observations["camera"], given.observations["camera"])
    assert [episode.success for episode in dataset.episodes] == [True, False]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_nested_dicts_are_joined_by_dots(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    space = gymnasium.spaces.Dict({"robot": gymnasium.spaces.Dict({"arm": BOX}), "robot.x": BOX})
    values = {"robot": {"arm": np.zeros((2, 3))}, "robot.x": np.ones((2, 3))}
    buffer = EpisodeBuffer(observations=values, actions=np.zeros((1, 3)), rewards=[0.0], terminations=[True], truncations=[False], infos={})
    minari.create_dataset_from_buffers("nested-v0", [buffer], observation_space=space, action_space=BOX)
    (episode,) = FORMAT.read(tmp_path / "nested-v0").episodes
    assert {name: values[0, 0] for name, values in episode.observations.items()} == {"robot.arm": 0, "robot.x": 1}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_discrete_spaces_are_refused_by_name(tmp_path, monkeypatch):
    folder, _ = library_made(tmp_path, monkeypatch, gymnasium.spaces.Dict({"state": gymnasium.spaces.Discrete(3)}))
    with pytest.raises(DatasetError, match="'state' is a Discrete space; valid: Box"):
        FORMAT.read(folder)
    shutil.rmtree(tmp_path / "made")
    folder, _ = library_made(tmp_path, monkeypatch, BOX, gymnasium.spaces.Discrete(3))
    with pytest.raises(DatasetError, match="actions are a Discrete space"):
        FORMAT.read(folder)


def test_no_environment_is_made_to_learn_a_space(tmp_path, rich, monkeypatch):
    folder = tmp_path / "lift-v0"
    FORMAT.write(rich, folder)
    file = folder / "data" / "metadata.json"
    metadata = json.loads(file.read_text())
    spec = gymnasium.envs.registration.EnvSpec("Pain-v0", entry_point="not_installed:Pain")
    file.write_text(json.dumps(metadata | {"env_spec": spec.to_json()}))
    assert fingerprint(FORMAT.read(folder)) == fingerprint(rich)
    del metadata["observation_space"]
    file.write_text(json.dumps(metadata | {"env_spec": spec.to_json()}))
    with pytest.raises(DatasetError, match="'observation_space'. missing"):
        FORMAT.read(folder)


def test_another_version_of_ours_is_refused(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift-v0")
    file = tmp_path / "lift-v0" / "data" / "metadata.json"
    metadata = json.loads(file.read_text())
    metadata["armstack"]["format_version"] = 9
    file.write_text(json.dumps(metadata))
    with pytest.raises(DatasetError, match="format_version 9; this Armstack reads version 1"):
        FORMAT.read(tmp_path / "lift-v0")


def test_a_missing_field_is_an_error_that_names_file_and_field(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift-v0")
    with h5py.File(tmp_path / "lift-v0" / "data" / "main_data.hdf5", "a") as file:
        del file["episode_2/infos/stamps_ns"]
    with pytest.raises(DatasetError, match="lift-v0.*stamps_ns"):
        FORMAT.read(tmp_path / "lift-v0")


@pytest.mark.parametrize("name", ["metadata.json", "main_data.hdf5"])
def test_a_truncated_file_is_an_error_or_whole(tmp_path, rich, name):
    folder = tmp_path / "lift-v0"
    FORMAT.write(replace(rich, episodes=rich.episodes[1:2]), folder)
    file = folder / "data" / name
    content = file.read_bytes()
    for size in sorted({0, 1, 8, 100, *(len(content) * k // 7 for k in range(1, 7)), len(content) - 1}):
        file.write_bytes(content[:size])
        with pytest.raises(DatasetError, match="lift-v0"):
            FORMAT.read(folder)
    file.unlink()
    with pytest.raises(DatasetError, match="lift-v0"):
        FORMAT.read(folder)
