from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from rl_core.bundle import Bundle, BundleError, bundle_sha256
from rl_core.contract import ContractMismatch
from rl_core.data.episode import DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.errors import ArmstackError
from rl_core.methods import UnknownMethod, load_policy, make_learner
from rl_core.training.config import ConfigError
from rl_core.training.evaluation import SeedOverlap
from rl_core.training.run import train
from rl_core.training.trainer import TrainingError
from tests.rl_core.training.synthetic import CONTRACT, synthetic_dataset

FAST = {"preset": "cpu", "overrides": {"hidden": (8,), "batch_size": 8}, "trainer": {"updates": 4}}


def test_the_bundle_says_where_it_comes_from(tmp_path):
    dataset = synthetic_dataset()
    bundle = Bundle.load(train("bc", dataset, tmp_path, **FAST).bundle)
    assert bundle.data_fingerprint == fingerprint(dataset)
    assert bundle.contract == CONTRACT and bundle.config["hidden"] == [8] and bundle.normalizer is not None
    assert "loss/actor" in bundle.metrics and not any(name.startswith("time/") for name in bundle.metrics)


def test_equal_runs_give_equal_bundles(tmp_path):
    hashes = {bundle_sha256(train("bc", synthetic_dataset(), tmp_path / name, **FAST).bundle) for name in "ab"}
    assert len(hashes) == 1


def test_fingerprint_sees_every_number():
    dataset = synthetic_dataset()
    episode = dataset.episodes[0]
    actions = episode.actions.copy()
    actions[0, 0] += 1e-3
    changed = dataclasses.replace(dataset, episodes=(dataclasses.replace(episode, actions=actions), *dataset.episodes[1:]))
    assert fingerprint(changed) != fingerprint(dataset) == fingerprint(synthetic_dataset())


def test_init_from_starts_from_the_weights_and_names_its_parent(tmp_path):
    dataset = synthetic_dataset()
    first = train("bc", dataset, tmp_path / "first", **FAST)
    # A second run with a learning rate of nothing ends where it began.
    options = {**FAST, "overrides": {**FAST["overrides"], "lr": 1e-30}}
    second = Bundle.load(train("bc", dataset, tmp_path / "second", init_from=first.bundle, **options).bundle)
    assert second.parents == (bundle_sha256(first.bundle),)
    for name, value in Bundle.load(first.bundle).weights.items():
        assert torch.equal(value, second.weights[name])


def test_init_from_another_method_or_contract_is_refused(tmp_path):
    dataset = synthetic_dataset()
    bundle = train("bc", dataset, tmp_path / "first", channels=["position"], **FAST).bundle
    with pytest.raises(ArmstackError, match="a bundle of method 'bc', valid: 'bc_best_half'"):
        train("bc_best_half", dataset, tmp_path / "second", init_from=bundle, **FAST)
    with pytest.raises(ContractMismatch, match="observation.goal"):
        train("bc", dataset, tmp_path / "third", init_from=bundle, **FAST)


def test_channels_choose_what_the_policy_sees(tmp_path):
    result = train("bc", synthetic_dataset(), tmp_path, channels=["goal", "position"], **FAST)
    policy = load_policy(result.bundle)
    assert [channel.name for channel in policy.contract.observation] == ["goal", "position"]


def test_weights_choose_the_episodes(tmp_path):
    dataset = synthetic_dataset()
    file = tmp_path / "weights.json"
    file.write_text(json.dumps({episode.uuid: float(i == 2) for i, episode in enumerate(dataset.episodes)}))
    weighted = train("bc", dataset, tmp_path / "weighted", weights=file, **FAST)
    plain = train("bc", dataset, tmp_path / "plain", **FAST)
    assert bundle_sha256(weighted.bundle) != bundle_sha256(plain.bundle)
    file.write_text(json.dumps({"other": 1.0}))
    with pytest.raises(DatasetError, match="no weight"):
        train("bc", dataset, tmp_path / "none", weights=file, **FAST)


def test_resume_of_another_dataset_is_refused(tmp_path):
    train("bc", synthetic_dataset(), tmp_path, **FAST)
    with pytest.raises(TrainingError, match="data: the folder has"):
        train("bc", synthetic_dataset(seed=1), tmp_path, resume=True, **FAST)


def test_wrong_names_list_the_right_ones(tmp_path):
    dataset = synthetic_dataset()
    with pytest.raises(UnknownMethod, match="method 'bcc', valid: dac, contractive, strap, bc_transformer, pear, dvfb, skill"):
        train("bcc", dataset, tmp_path)
    with pytest.raises(ConfigError, match="no preset 'huge'"):
        train("bc", dataset, tmp_path, preset="huge")
    with pytest.raises(ConfigError, match="no field 'batchsize'"):
        train("bc", dataset, tmp_path, overrides={"batchsize": 3})
    with pytest.raises(ConfigError, match="learns from a dataset"):
        train("bc", None, tmp_path)
    with pytest.raises(ConfigError, match="give one, e.g."):
        train("sac", None, tmp_path)
    with pytest.raises(ConfigError, match="takes no dataset"):
        train("sac", dataset, tmp_path, world="Pendulum-v1")


def test_data_collected_with_evaluation_seeds_are_refused(tmp_path):
    dataset = synthetic_dataset()
    episodes = (dataclasses.replace(dataset.episodes[0], meta={"seed": 1_000_003}), *dataset.episodes[1:])
    with pytest.raises(SeedOverlap, match="1000003"):
        train("bc", dataclasses.replace(dataset, episodes=episodes), tmp_path, world="Pendulum-v1", **FAST)


def test_load_policy_names_what_it_can_load(tmp_path):
    bundle = Bundle(kind="policy", method="nosuch", config={}, weights={}, contract=CONTRACT)
    with pytest.raises(UnknownMethod, match="method 'nosuch', valid: dac"):
        load_policy(bundle)
    with pytest.raises(BundleError, match="kind 'recogniser', valid: policy"):
        load_policy(dataclasses.replace(bundle, kind="recogniser"))


def test_a_config_of_another_method_is_refused():
    from rl_core.baselines.bc import BCConfig

    with pytest.raises(TypeError, match="takes DACConfig, found BCConfig"):
        make_learner("dac", BCConfig(), synthetic_dataset())
