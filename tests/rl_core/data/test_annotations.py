"""Instructions and primitives in an episode's meta, and the instruction as robomimic's files hold it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.annotations import instruction, primitive_runs, primitive_tags
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats import read_dataset, write_dataset
from tests.rl_core.data.test_robomimic_format import robomimic_file

TAGS = ["reach"] * 3 + ["grasp"] * 2 + ["reach"]
CONTRACT = RobotContract(
    robot="toy",
    observation=(Channel(name="state", names=("x",)),),
    action=Action(names=("x",), meaning="delta", space="joint", scale=(1.0,), units=("rad",), frame=""),
)


def episode(**meta: Any) -> Episode:
    steps = len(TAGS)
    return Episode(
        observations={"state": np.zeros((steps + 1, 1), np.float32)},
        actions=np.zeros((steps, 1), np.float32),
        rewards=np.zeros(steps, np.float32),
        terminal=False,
        truncated=True,
        stamps_ns=np.arange(steps + 1) * 50_000_000,
        meta=meta,
    )


def test_runs_give_the_tags_back() -> None:
    runs = primitive_runs(TAGS)
    assert runs == [["reach", 0, 3], ["grasp", 3, 5], ["reach", 5, 6]]
    assert primitive_tags(episode(primitives=runs)) == TAGS
    assert primitive_runs([]) == []


@pytest.mark.parametrize(
    "runs",
    [
        None,
        7,
        [["a", 0, 5]],
        [["a", 0, 7]],
        [["a", 0, 3], ["b", 4, 6]],
        [["a", 0, 0], ["b", 0, 6]],
        [["a", 0]],
        [[1, 0, 6]],
        [["a", 0, 10**12]],
    ],
)
def test_runs_that_do_not_cover_the_steps_are_refused(runs: Any) -> None:
    meta = {} if runs is None else {"primitives": runs}
    with pytest.raises(DatasetError, match="meta.primitives.*valid"):
        primitive_tags(episode(**meta))


@pytest.mark.parametrize("meta", [{}, {"lang": ""}, {"lang": 3}])
def test_an_episode_without_instruction_says_what_its_meta_has(meta: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match="meta.lang.*valid: the task in words"):
        instruction(episode(task="lift", **meta))


def test_instruction_and_primitives_survive_a_robomimic_file(tmp_path: Path) -> None:
    said = episode(lang="pick up the red block", primitives=primitive_runs(TAGS))
    quiet = dataclasses.replace(episode(task="lift"), uuid="quiet")
    path = tmp_path / "data.hdf5"
    write_dataset(Dataset(contract=CONTRACT, episodes=(said, quiet)), path)
    with h5py.File(path) as file:
        assert json.loads(file["data/demo_0"].attrs["ep_meta"]) == {"lang": "pick up the red block"}
        assert "ep_meta" not in file["data/demo_1"].attrs
        assert not any("primitive" in name for name in file["data/demo_0/obs"])
    back = read_dataset(path).episodes
    assert instruction(back[0]) == "pick up the red block" and primitive_tags(back[0]) == TAGS
    assert dict(back[1].meta) == {"task": "lift"}


def test_the_instruction_of_somebody_elses_file_is_read(tmp_path: Path) -> None:
    path = robomimic_file(tmp_path / "theirs.hdf5")
    with h5py.File(path, "a") as file:
        file["data/demo_0"].attrs["ep_meta"] = json.dumps({"lang": "open the drawer", "layout_id": 3})
    first, second, *_ = read_dataset(path).episodes
    assert instruction(first) == "open the drawer" and "layout_id" not in first.meta
    assert "lang" not in second.meta
