"""Every format after every other: what is in a dataset comes back, but for what the formats say they cannot hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rl_core.contract import Action, Channel, Gripper, RobotContract
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats import FORMATS, find_format, format_named
from rl_core.data.formats.base import FIELDS, used_fields
from rl_core.data.formats.convert import without
from rl_core.data.formats.table import DOCUMENT, document_with_table

NAMES = [format.name for format in FORMATS]
PLANAR_ONLY = {"lasa"}
"""Formats of motions in the plane: they are tried with one of those."""
START_NS = 1_700_000_000_123_456_789


def planar() -> RobotContract:
    """A point in the plane, moved by its velocity."""
    position = Channel(name="position", names=("x", "y"), dtype="float64", unit="mm")
    action = Action(names=("x", "y"), meaning="velocity", space="end_effector", scale=(90.0, 70.0), units=("mm/s",) * 2)
    return RobotContract(robot="pen", observation=(position,), action=action)


def spatial() -> RobotContract:
    """An arm with two cameras, and numbers of every kind."""
    return RobotContract(
        robot="panda",
        observation=(
            Channel(name="joint_pos", names=("panda_joint1", "panda_joint2"), unit="rad", wraps=("panda_joint2",)),
            Channel(name="wrist", kind="image", shape=(32, 40, 3), encoding="rgb8", row_order="top_down", rate_hz=30.0),
            Channel(name="eef_quat", kind="quaternion", frame="base"),
            Channel(name="depth", kind="image", shape=(6, 8, 1), encoding="mono8", row_order="bottom_up"),
            Channel(name="force", names=("x", "y", "z"), dtype="float64", unit="N", frame="tool"),
            Channel(name="contacts", names=("left", "right"), dtype="int64"),
        ),
        action=Action(
            names=("x", "y", "gripper"), meaning="delta", space="end_effector", scale=(0.05, 0.04, 1.0), units=("m",) * 3,
            gripper=Gripper(name="gripper", open=0.08, closed=0.0), controller="osc_pose",
        ),
    )  # fmt: skip


def _values(channel: Channel, rows: int, rng: np.random.Generator) -> np.ndarray:
    if channel.kind == "quaternion":
        values = rng.normal(size=(rows, 4))
        return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
    if channel.kind == "image":
        return rng.integers(0, 256, (rows, *channel.shape), dtype=np.uint8)
    if channel.dtype == "int64":
        return rng.integers(2**60, 2**62, (rows, channel.size))  # more digits than a float64 has
    return rng.normal(size=(rows, channel.size)).astype(channel.dtype)


def _episode(contract: RobotContract, seed: int, steps: int, **facts: object) -> Episode:
    rng = np.random.default_rng(seed)
    gaps = rng.integers(40_000_000, 60_000_000, steps)  # irregular, and no multiple of a microsecond
    actions = rng.uniform(-1, 1, (steps, contract.action.size)).astype(np.float32)
    fields = {
        "observations": {channel.name: _values(channel, steps + 1, rng) for channel in contract.observation},
        "actions": actions,
        "rewards": rng.normal(size=steps).astype(np.float32),
        "stamps_ns": START_NS + np.concatenate([[0], np.cumsum(gaps)]) - seed,  # later episodes begin earlier: order isn't time
        "uuid": f"round-trip-{seed}",
    }
    return Episode(**{**fields, **facts})


def rich(contract: RobotContract) -> Dataset:
    """Every ending, every knowledge of success, ages and applied actions in some episodes, and one episode of a single step."""
    ages = {contract.observation[0].name: np.array([0, 5, 2**40, 7], np.int64)}
    if len(contract.observation) > 1:
        ages["wrist"] = np.array([1, 2, 3, 4], np.int64)
    applied = np.full((3, contract.action.size), 1 / 3, np.float32)
    meta = {
        "task": "heben – 持ち上げる",
        "seed": 2**40,
        "gaps": {"wrist": [1, 2]},
        "share": 0.1,
        "expert": None,
        "history": [{"operation": "x"}],
    }
    return Dataset(
        contract=contract,
        episodes=(
            _episode(contract, 0, 3, terminal=True, truncated=False, success=True, action_applied=applied, observation_age_ns=ages),
            _episode(contract, 1, 1, terminal=False, truncated=True, success=None, meta=meta),
            _episode(contract, 2, 4, terminal=False, truncated=True, success=False, meta={"seed": 2}),
            _episode(contract, 3, 2, terminal=False, truncated=False, success=True),
            _episode(contract, 4, 2, terminal=True, truncated=True, success=None),
        ),
    )


def assert_equal(found: Dataset, wanted: Dataset) -> None:
    assert found.contract == wanted.contract
    assert [(e.uuid, e.terminal, e.truncated, e.success, e.meta) for e in found.episodes] == [
        (e.uuid, e.terminal, e.truncated, e.success, e.meta) for e in wanted.episodes
    ]
    for one, other in zip(found.episodes, wanted.episodes, strict=True):
        arrays = [
            {
                "actions": e.actions,
                "rewards": e.rewards,
                "stamps_ns": e.stamps_ns,
                "action_applied": e.action_applied if e.action_applied is not None else np.zeros(0),
                **e.observations,
                **{f"age of {name}": ages for name, ages in e.observation_age_ns.items()},
            }
            for e in (one, other)
        ]
        assert arrays[0].keys() == arrays[1].keys()
        for name, values in arrays[0].items():
            assert values.dtype == arrays[1][name].dtype, name
            np.testing.assert_array_equal(values, arrays[1][name], err_msg=name)


def place(folder: Path, name: str) -> Path:
    return folder / ("data" + next((ending for ending in format_named(name).extensions), ""))


@pytest.fixture(scope="module")
def first_copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Dataset, str], Dataset]:
    """first_copy(name, dataset, kind): what comes back from that format; written once a module."""
    copies: dict[tuple[str, str], Dataset] = {}

    def copy(name: str, dataset: Dataset, kind: str) -> Dataset:
        if (name, kind) not in copies:
            path = place(tmp_path_factory.mktemp("first"), name)
            format_named(name).write(dataset, path)
            copies[name, kind] = find_format(path).read(path)
        return copies[name, kind]

    return copy


@pytest.mark.parametrize(("first", "second"), itertools.product(NAMES, NAMES))
def test_what_two_formats_can_hold_comes_back_from_one_after_the_other(tmp_path, first_copy, first: str, second: str) -> None:
    kind, contract = ("planar", planar()) if PLANAR_ONLY & {first, second} else ("spatial", spatial())
    dataset = rich(contract)
    lost = {*format_named(first).cannot_hold, *format_named(second).cannot_hold}
    path = place(tmp_path, second)
    format_named(second).write(first_copy(first, dataset, kind), path)
    assert find_format(path) is format_named(second)
    assert_equal(without(find_format(path).read(path), lost), without(dataset, lost))


def test_the_dataset_of_these_tests_makes_use_of_every_field() -> None:
    assert used_fields(rich(spatial())) == set(FIELDS)


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_fields_and_say_what_becomes_of_them(name: str) -> None:
    losses = format_named(name).cannot_hold
    assert set(losses) <= set(FIELDS) and all(losses.values())


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_written_is_a_dataset_error_and_leaves_nothing(tmp_path, name: str) -> None:
    contract = planar() if name in PLANAR_ONLY else spatial()
    whole = rich(contract)
    without_a_step = _episode(contract, 5, 0, terminal=False, truncated=True)
    without_a_channel = replace(whole.episodes[2], observations={})
    path = place(tmp_path, name)
    for episodes, words in (((), "no episodes"), ((without_a_step,), "0 steps"), ((whole.episodes[0], without_a_channel), "missing")):
        with pytest.raises(DatasetError, match=words):
            format_named(name).write(Dataset(contract=contract, episodes=episodes), path)
    text = Channel(name="instruction", kind="text")
    with pytest.raises(DatasetError, match="are text"):
        format_named(name).write(replace(whole, contract=replace(contract, observation=(*contract.observation, text))), path)
    assert list(tmp_path.iterdir()) == []


def test_docs_name_what_each_format_cannot_hold() -> None:
    text = document_with_table()
    assert all(f"| `{name}` |" in text for name in NAMES)
    assert DOCUMENT.read_text() == text, "run: python -m rl_core.data.formats.table"
