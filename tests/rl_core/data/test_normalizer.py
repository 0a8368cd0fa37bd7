import json
import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_core.contract import Channel, RobotContract
from rl_core.data.episode import Dataset
from rl_core.data.normalizer import Normalizer, NormalizerError


def angle(values):
    return (np.asarray(values) + np.pi) % (2 * np.pi) - np.pi


@pytest.mark.parametrize("mode", ["mean_std", "min_max", "identity"])
def test_round_trip_for_arrays_and_tensors(mode):
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(200, 4)) * [1, 1e-3, 50, 0.2] + [0, 1, -300, 3]).astype(np.float32)
    normalizer = Normalizer.fit_columns({"a": values}, {"a": "wxyz"}, modes=mode)
    normalized = normalizer.normalize("a", values)
    assert normalized.dtype == np.float32
    if mode == "mean_std":
        np.testing.assert_allclose(normalized.mean(0), 0, atol=1e-3)
        np.testing.assert_allclose(normalized.std(0), 1, atol=1e-3)
    if mode == "min_max":
        np.testing.assert_allclose(normalized.min(0), -1, atol=1e-3)
        np.testing.assert_allclose(normalized.max(0), 1, atol=1e-3)
    np.testing.assert_allclose(normalizer.unnormalize("a", normalized), values, rtol=1e-6, atol=1e-6)
    tensor = normalizer.normalize("a", torch.from_numpy(values))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), normalized)


@pytest.mark.parametrize("mode", ["mean_std", "min_max"])
def test_constant_dimension_is_kept_unscaled_finite_and_named(mode, caplog):
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (500, 7)).astype(np.float32)
    actions[:, 6] = 0.04
    names = ("x", "y", "z", "rx", "ry", "rz", "gripper")
    normalizer = Normalizer.fit_columns({"action": actions}, {"action": names}, modes=mode)
    normalized = normalizer.normalize("action", actions)
    assert np.isfinite(normalized).all()
    np.testing.assert_allclose(normalizer.unnormalize("action", normalized), actions, atol=1e-6)
    np.testing.assert_array_equal(normalizer.unnormalize("action", normalized)[:, 6], actions[:, 6])
    assert normalizer.columns["action"].scale[6] == 1
    # a value that was never seen in training keeps its distance in its own unit
    assert normalizer.normalize("action", actions[:1] + 0.5)[0, 6] == pytest.approx(0.5)
    (record,) = caplog.records
    assert "gripper" in record.getMessage() and "rx" not in record.getMessage()


def test_roll_around_pi_gets_circular_statistics_and_a_warning(caplog):
    rng = np.random.default_rng(0)
    roll = angle(np.pi + rng.normal(scale=0.01, size=(400, 1))).astype(np.float32)
    assert roll.std() > 3  # what plain statistics would see
    values = np.hstack([roll, rng.normal(size=roll.shape)])
    normalizer = Normalizer.fit_columns({"o": values}, {"o": ("roll", "x")}, wraps={"o": ["roll"]})
    assert normalizer.columns["o"].scale[0] < 0.02
    both_sides = np.array([[3.14, 0.0], [-3.14, 0.0]], np.float32)
    low, high = normalizer.normalize("o", both_sides)[:, 0]
    assert abs(high - low) < 0.5  # neighbours on the circle stay neighbours
    back = normalizer.unnormalize("o", normalizer.normalize("o", both_sides))
    np.testing.assert_allclose(angle(back - both_sides), 0, atol=1e-5)
    assert "roll" in caplog.text
    tensor = normalizer.normalize("o", torch.from_numpy(both_sides))
    np.testing.assert_allclose(tensor.numpy(), normalizer.normalize("o", both_sides), atol=1e-5)


def test_wraps_come_from_the_contract(contract, make_episode):
    episode = make_episode(0, 50)
    channel = Channel(name="rpy", names=("roll", "pitch", "yaw"), unit="rad", wraps=("roll",))
    angles = np.column_stack([angle(np.pi + 0.01 * np.random.default_rng(0).normal(size=51)), np.linspace(0, 1, 51), np.linspace(0, 1, 51)])
    with_angles = RobotContract(robot="panda", observation=(channel,), action=contract.action)
    episode = replace(episode, observations={"rpy": angles.astype(np.float32)})
    normalizer = Normalizer.fit(Dataset(contract=with_angles, episodes=(episode,)), with_angles)
    assert normalizer.columns["observation"].wraps == ("rpy.roll",)
    assert normalizer.columns["observation"].scale[0] < 0.05
    assert normalizer.columns["action"].mode == "identity"


def test_dictionary_round_trip_is_exact(make_dataset):
    dataset = make_dataset()
    normalizer = Normalizer.fit(dataset, dataset.contract, action="min_max")
    read = Normalizer.from_dict(json.loads(json.dumps(normalizer.to_dict())), contract=dataset.contract)
    assert read.columns.keys() == normalizer.columns.keys() == {"observation", "action"}
    for column, statistics in normalizer.columns.items():
        np.testing.assert_array_equal(read.columns[column].shift, statistics.shift)
        np.testing.assert_array_equal(read.columns[column].scale, statistics.scale)
        assert read.columns[column].names == statistics.names and read.columns[column].mode == statistics.mode
    assert read.columns["observation"].names == dataset.contract.observation_names


def test_renamed_statistics_are_an_error_that_lists_both_key_sets(make_dataset):
    dataset = make_dataset()
    stored = Normalizer.fit(dataset, dataset.contract).to_dict()
    renamed = {"observation": stored["observation"], "actions": stored["action"]}
    with pytest.raises(NormalizerError, match=r"\['actions', 'observation'\], needed are \['action', 'observation'\]"):
        Normalizer.from_dict(renamed, contract=dataset.contract)
    with pytest.raises(NormalizerError, match=r"needed are \['action'\], found are \['actions', 'observation'\]"):
        Normalizer.from_dict(renamed).normalize("action", np.zeros((1, 7), np.float32))
    field = {"observation": {**stored["observation"], "std": stored["observation"]["scale"]}, "action": stored["action"]}
    del field["observation"]["scale"]
    with pytest.raises(NormalizerError, match=r"'std'.*needed are .*'scale'"):
        Normalizer.from_dict(field)


def test_statistics_of_other_dimensions_are_an_error_that_lists_both_name_sets(make_dataset):
    dataset = make_dataset()
    normalizer = Normalizer.fit(dataset, dataset.contract)
    fewer = dataset.contract.select(["eef_pos", "cube_pos"])
    with pytest.raises(NormalizerError, match=r"joint_pos\.panda_joint1.*needed are \['eef_pos\.x'"):
        normalizer.require_contract(fewer)
    swapped = dataset.contract.select([channel.name for channel in reversed(dataset.contract.observation)])
    with pytest.raises(NormalizerError, match="needed are"):
        normalizer.require_contract(swapped)


def test_values_that_cannot_give_statistics_are_refused(caplog):
    caplog.set_level(logging.WARNING)
    with pytest.raises(NormalizerError, match=r"\['y'\] not finite"):
        Normalizer.fit_columns({"a": [[0.0, np.nan], [1.0, 2.0]]}, {"a": "xy"})
    with pytest.raises(NormalizerError, match=r"valid: \(N, 3\)"):
        Normalizer.fit_columns({"a": [[0.0, 1.0]]}, {"a": "xyz"})
    with pytest.raises(NormalizerError, match="equal key sets"):
        Normalizer.fit_columns({"a": [[0.0]]}, {"b": "x"})
    with pytest.raises(NormalizerError, match="'median', valid"):
        Normalizer.fit_columns({"a": [[0.0], [1.0]]}, {"a": "x"}, modes="median")  # type: ignore[arg-type]
