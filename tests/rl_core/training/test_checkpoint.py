from __future__ import annotations

import json
import logging

import numpy as np
import pytest
import torch

from rl_core.training.checkpoint import CheckpointError, CheckpointStore
from rl_core.training.seeding import capture_rng


def equal(a, b) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def adam_state() -> dict:
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
    return optimizer.state_dict()


@pytest.mark.parametrize(
    "state",
    [
        {"optimizer": adam_state()},
        {"rng": capture_rng(), "generator": np.random.default_rng(3).bit_generator.state},
        {"float": 0.1 + 0.2, "int": 2**127, "none": None, "true": True, "text": "ü\n", "infinite": float("inf")},
        {"tuple": (1, (2.0, [3])), "empty": {}, "list": [], "int keys": {0: "a", 1: {"tensor": "x"}}},
        {"t": torch.arange(6).reshape(2, 3).t(), "bool": torch.tensor([True]), "scalar": torch.tensor(1.5, dtype=torch.float64)},
        {"a": np.arange(6, dtype=np.uint32).reshape(3, 2), "s": np.zeros((0, 3)), "u": np.array([2**63], np.uint64)},
    ],
    ids=["adam", "rng", "plain", "nested", "tensors", "arrays"],
)
def test_state_round_trips_to_the_bit(tmp_path, state):
    store = CheckpointStore(tmp_path)
    store.save(5, state)
    loaded = CheckpointStore(tmp_path).load_newest()
    assert loaded.step == 5 and equal(loaded.state, state)


def test_nan_payload_survives(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(1, {"t": torch.tensor([float("nan"), -0.0])})
    values = store.load_newest().state["t"]
    assert torch.isnan(values[0]) and torch.signbit(values[1])


def test_no_checkpoint_yet(tmp_path):
    assert CheckpointStore(tmp_path / "nothing").load_newest() is None


def test_only_the_newest_are_kept(tmp_path):
    store = CheckpointStore(tmp_path, keep=2)
    for step in (100, 200, 300):
        store.save(step, {"step": step})
    assert store.steps() == [200, 300]
    with pytest.raises(CheckpointError, match="keep is 1, valid: 2 or more"):
        CheckpointStore(tmp_path, keep=1)


@pytest.mark.parametrize("damage", ["flip", "truncate", "missing", "not json"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, caplog, damage):
    store = CheckpointStore(tmp_path)
    for step in (1, 2):
        store.save(step, {"t": torch.full((8,), float(step))})
    file = store.path(2) / ("manifest.json" if damage == "not json" else "tensors.safetensors")
    content = bytearray(file.read_bytes())
    if damage == "flip":
        content[-1] ^= 1
        file.write_bytes(content)
    elif damage == "truncate":
        file.write_bytes(content[:-4])
    elif damage == "missing":
        file.unlink()
    else:
        file.write_bytes(b"{")
    with caplog.at_level(logging.WARNING):
        loaded = store.load_newest()
    assert loaded.step == 1 and loaded.state["t"][0] == 1.0
    assert "step-0000000002" in caplog.text and "falling back" in caplog.text
    assert store.steps() == [1]


def test_all_damaged_is_an_error_that_names_them(tmp_path):
    store = CheckpointStore(tmp_path)
    for step in (1, 2):
        store.save(step, {})
        (store.path(step) / "state.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"(?s)no checkpoint can be read.*step-0000000002.*step-0000000001"):
        store.load_newest()


def test_a_crash_while_writing_leaves_the_last_one_whole(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(1, {"a": 1})
    half = tmp_path / ".step-0000000002.part"
    half.mkdir()
    (half / "state.json").write_text("{")
    assert store.load_newest().step == 1
    store.save(2, {"a": 2})
    assert store.load_newest().state == {"a": 2}


def test_what_would_need_pickle_is_refused_and_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"state.learner\[1\]: set cannot be saved"):
        CheckpointStore(tmp_path).save(1, {"learner": [1, {2}]})
    with pytest.raises(CheckpointError, match="object array"):
        CheckpointStore(tmp_path).save(1, {"a": np.array([None])})
    assert CheckpointStore(tmp_path).steps() == []


def test_nothing_in_a_checkpoint_is_a_pickle(tmp_path):
    folder = CheckpointStore(tmp_path).save(1, {"optimizer": adam_state()})
    assert sorted(file.name for file in folder.iterdir()) == ["manifest.json", "state.json", "tensors.safetensors"]
    json.loads((folder / "state.json").read_text())
