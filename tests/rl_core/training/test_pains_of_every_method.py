"""Faults that users of other libraries have met while training and deploying, tried on every offline method."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.normalizer import Normalizer, NormalizerError
from rl_core.method_list import METHODS
from rl_core.methods import export_bundle, load_policy, make_learner, make_source, offline_methods, training_data
from rl_core.training.config import Config
from rl_core.training.run import train
from tests.rl_core.training.synthetic import CONTRACT, synthetic_dataset
from tests.rl_core.training.test_every_offline_method import sample_shape, tiny

ROOT = Path(__file__).parents[3]


CASES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in offline_methods()}
CASES["dac, actions scaled to the data"] = ("dac", {"scale_actions": True})


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, Config]:
    """Method and a tiny configuration of it."""
    method, overrides = CASES[request.param]
    return method, tiny(method, **overrides)


def far_from_zero() -> Dataset:
    """The synthetic data in other units and far from zero: without its statistics a policy is lost."""
    dataset = synthetic_dataset()
    episodes = [
        dataclasses.replace(e, observations={name: 300 + 50 * values for name, values in e.observations.items()}) for e in dataset.episodes
    ]
    return dataclasses.replace(dataset, episodes=tuple(episodes))


def raw_observations(policy, n: int = 6) -> TensorDict:
    generator = torch.Generator().manual_seed(3)
    values = {c.name: 300 + 50 * torch.randn(n, *sample_shape(c), generator=generator) for c in policy.contract.observation}
    return TensorDict(values, batch_size=[n])


def actions(policy) -> torch.Tensor:
    return policy.act(raw_observations(policy), policy.prepare({}), policy.reset(range(6)))[0].values


def test_a_constant_dimension_gives_finite_losses_and_actions(case: tuple[str, Config], caplog: pytest.LogCaptureFixture) -> None:
    """The gripper's action is 0.04 in every row and an observation never changes: 0 / 0 in many a normaliser."""
    method, config = case
    episodes = []
    for episode in synthetic_dataset().episodes:
        constant = episode.actions.copy()
        constant[:, 3] = 0.04
        still = episode.observations["goal"].copy()
        still[:, 1] = 2.0
        episodes.append(dataclasses.replace(episode, actions=constant, observations={**episode.observations, "goal": still}))
    data = training_data(method, Dataset(contract=CONTRACT, episodes=tuple(episodes)))
    learner, source = make_learner(method, config, data), make_source(method, config, data)
    for _ in range(10):
        metrics = learner.update(source.next_batch())
        assert all(math.isfinite(value) for value in metrics.values()), metrics
    assert torch.isfinite(actions(learner.policy())).all()
    assert "goal.y" in caplog.text and "goal.x" not in caplog.text
    bundle = learner.bundle()
    assert bundle.normalizer is not None
    columns = Normalizer.from_dict(bundle.normalizer, contract=CONTRACT)
    seen = torch.as_tensor(data.episodes[0].flat_observation(CONTRACT))
    torch.testing.assert_close(columns.unnormalize("observation", columns.normalize("observation", seen)), seen, atol=1e-5, rtol=1e-5)


def test_renamed_statistics_are_refused_and_both_key_sets_listed(case: tuple[str, Config], tmp_path: Path) -> None:
    """What a converter that says `observations` for `observation` leaves."""
    method, config = case
    folder = make_learner(method, config, synthetic_dataset()).bundle().save(tmp_path / "bundle")
    header = json.loads((folder / "bundle.json").read_text())
    header["normalizer"]["observations"] = header["normalizer"].pop("observation")
    (folder / "bundle.json").write_text(json.dumps(header))
    with pytest.raises(NormalizerError, match=r"'observations'.*needed are .*'observation'"):
        load_policy(folder)


def test_deploy_keeps_statistics_of_every_method_in_another_process(tmp_path: Path) -> None:
    """Train, keep the bundle, delete the training folder, load elsewhere: the same actions, in every runtime of the method."""
    expected: dict[str, torch.Tensor] = {}
    for name, (method, overrides) in CASES.items():
        config = tiny(method, **overrides)
        result = train(method, far_from_zero(), tmp_path / "run" / name, config=config, trainer={"updates": 5})
        bundle = Bundle.load(result.bundle)
        acted = actions(load_policy(result.bundle))
        expected[str(bundle.save(tmp_path / name))] = acted
        if METHODS[method].export:
            expected[str(export_bundle(bundle).save(tmp_path / f"{name} exported"))] = acted
        assert bundle.normalizer is not None
        shifted = json.loads(json.dumps(bundle.normalizer))
        shifted["observation"]["shift"] = [value + 100 for value in shifted["observation"]["shift"]]
        other = actions(load_policy(dataclasses.replace(bundle, normalizer=shifted)))
        assert not torch.allclose(other, acted)  # the statistics matter at all
    shutil.rmtree(tmp_path / "run")
    program = """
import sys, json
from tests.rl_core.training.test_pains_of_every_method import actions
from rl_core.methods import load_policy
print(json.dumps([actions(load_policy(folder)).tolist() for folder in sys.argv[1:]]))
"""
    done = subprocess.run([sys.executable, "-c", program, *expected], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for folder, found in zip(expected, json.loads(done.stdout.splitlines()[-1]), strict=True):
        tolerance = 1e-5 if folder.endswith(" exported") else 1e-6  # another runtime adds in another order
        torch.testing.assert_close(torch.tensor(found), expected[folder], atol=tolerance, rtol=0, msg=folder)


def test_time_limits_and_slow_loops_are_not_trained_on_as_if_they_were_none(case: tuple[str, Config]) -> None:
    """True stamps 15 Hz, declared 20 Hz: every method refuses; and a truncated episode's last step is not terminal in its batches."""
    method, config = case
    data = synthetic_dataset()
    slow = tuple(dataclasses.replace(e, stamps_ns=e.stamps_ns * 20 // 15) for e in data.episodes)
    with pytest.raises(DatasetError, match="recorded at 15 Hz, but its contract says 20 Hz"):
        make_source(method, config, dataclasses.replace(data, episodes=slow))
    source = make_source(method, config, data)
    batches = [source.next_batch() for _ in range(20)]
    assert not any(batch["terminal"].any() for batch in batches)
    ended = tuple(dataclasses.replace(e, terminal=True, truncated=False) for e in data.episodes)
    source = make_source(method, config, dataclasses.replace(data, episodes=ended))
    assert any(source.next_batch()["terminal"].any() for _ in range(20))
