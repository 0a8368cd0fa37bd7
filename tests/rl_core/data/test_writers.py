"""What every writer owes the path it writes to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import format_named
from tests.rl_core.data.test_round_trips import NAMES, PLANAR_ONLY, place, planar, rich, spatial


def dataset_for(name: str) -> Dataset:
    return rich(planar() if name in PLANAR_ONLY else spatial())


def held(name: str, path: Path) -> str:
    return fingerprint(format_named(name).read(path))


@pytest.mark.parametrize("name", NAMES)
def test_an_older_dataset_is_replaced(tmp_path: Path, name: str) -> None:
    path, dataset = place(tmp_path, name), dataset_for(name)
    format_named(name).write(dataset, path)
    before = held(name, path)
    format_named(name).write(replace(dataset, episodes=dataset.episodes[2:3]), path)
    assert held(name, path) != before and len(format_named(name).read(path)) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["meta that is no JSON", "no steps", "a channel missing"])
def test_a_dataset_that_cannot_be_written_leaves_the_older_one(tmp_path: Path, name: str, fault: str) -> None:
    path, dataset = place(tmp_path, name), dataset_for(name)
    format_named(name).write(dataset, path)
    before, first = held(name, path), dataset.episodes[0]
    faulty = {
        "meta that is no JSON": replace(first, uuid="faulty", meta={"note": b"bytes"}),
        "no steps": replace(
            first, uuid="faulty", actions=first.actions[:0], rewards=first.rewards[:0], stamps_ns=first.stamps_ns[:1], action_applied=None,
            observations={channel: values[:1] for channel, values in first.observations.items()}, observation_age_ns={},
        ),
        "a channel missing": replace(first, uuid="faulty", observations={}, observation_age_ns={}),
    }[fault]  # fmt: skip
    with pytest.raises(DatasetError, match=f"{path.name}: episode faulty"):
        format_named(name).write(replace(dataset, episodes=(*dataset.episodes, faulty)), path)
    assert held(name, path) == before and [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["folder", "lerobot", "minari"])
def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match="mine: is no"):
        format_named(name).write(dataset_for(name), tmp_path / "mine")
    assert [entry.name for entry in (tmp_path / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["lerobot", "minari"])
def test_a_channel_whose_name_would_be_a_path_is_refused(tmp_path: Path, name: str) -> None:
    dataset = dataset_for(name)
    channel = replace(dataset.contract.observation[0], name="joint/pos")
    episode = replace(dataset.episodes[1], observations={"joint/pos": dataset.episodes[1].observations["joint_pos"]})
    slashed = Dataset(contract=replace(dataset.contract, observation=(channel,)), episodes=(episode,))
    with pytest.raises(DatasetError, match=r"joint/pos.*without '/'"):
        format_named(name).write(slashed, tmp_path / "data")
    assert not list(tmp_path.iterdir())
