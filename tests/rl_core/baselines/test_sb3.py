from __future__ import annotations

import copy
import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from tensordict import TensorDict

from rl_core.baselines.sb3_export import ExportError, export_sb3
from rl_core.baselines.sb3_policy import policy_from_bundle
from rl_core.bundle import BundleError
from rl_core.contract import Action, Channel, RobotContract
from rl_core.methods import get_method, load_policy, make_learner
from rl_core.training.checkpoint import CheckpointStore
from rl_core.training.run import train
from rl_core.training.worlds import make_world
from tests.rl_core.training.toy import CONTRACT, PointWorld

ROOT = Path(__file__).parents[3]
SMALL = {"hidden": (16, 16), "batch_size": 16, "random_steps": 210, "replay_size": 2000}


def act(policy, observation: dict[str, np.ndarray]) -> np.ndarray:
    obs = TensorDict(
        {name: torch.from_numpy(values) for name, values in observation.items()}, batch_size=[len(next(iter(observation.values())))]
    )
    return policy.act(obs, policy.prepare({}), policy.reset(range(len(obs))))[0].values[:, 0].numpy()


def unscaled_box():
    return gymnasium.wrappers.FlattenObservation(PointWorld())


class ScaledBox(gymnasium.ObservationWrapper):
    """Observations far from zero and of unlike scales, so that statistics matter."""

    def __init__(self):
        super().__init__(unscaled_box())
        self.observation_space = gymnasium.spaces.Box(-1e3, 1e3, (3,), np.float32)

    def observation(self, observation):
        return (np.array([20.0, 0.1, 3.0]) * observation + np.array([50.0, 0.0, -4.0])).astype(np.float32)


def trained(algorithm, make_env, *, normalize=True, policy="MlpPolicy", **options):
    env = DummyVecEnv([make_env])
    if normalize:
        env = VecNormalize(env, norm_reward=True)
    model = algorithm(policy, env, learning_starts=20, policy_kwargs={"net_arch": [16, 16]}, seed=0, device="cpu", **options)
    model.learn(60)
    return model, env


@pytest.mark.parametrize("algorithm", [SAC, TD3])
@pytest.mark.parametrize("normalize", [True, False])
def test_exported_actor_acts_as_the_model(algorithm, normalize):
    model, env = trained(algorithm, ScaledBox, normalize=normalize)
    policy = policy_from_bundle(export_sb3(model, CONTRACT, vec_normalize=env if normalize else None))
    rng = np.random.default_rng(0)
    raw = (rng.normal(size=(200, 3)) * [30, 0.3, 5] + [50, 0, -4]).astype(np.float32)
    expected, _ = model.predict(env.normalize_obs(raw) if normalize else raw, deterministic=True)
    ours = act(policy, {"position": raw[:, :2], "velocity": raw[:, 2:]})
    np.testing.assert_allclose(ours, expected, atol=1e-6)
    assert np.abs(expected).std() > 1e-3


def test_dict_observations_are_matched_by_name_never_by_index():
    model, env = trained(SAC, PointWorld, policy="MultiInputPolicy")
    swapped = CONTRACT.select(["velocity", "position"])
    rng = np.random.default_rng(0)
    raw = {"position": rng.normal(size=(50, 2)).astype(np.float32), "velocity": rng.normal(size=(50, 1)).astype(np.float32)}
    expected, _ = model.predict(env.normalize_obs(raw), deterministic=True)
    for contract in (CONTRACT, swapped):
        ours = act(policy_from_bundle(export_sb3(model, contract, vec_normalize=env)), raw)
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_deploy_keeps_statistics(tmp_path):
    """Export, delete the training folder, load in another process without stable-baselines3: the same actions."""
    training = tmp_path / "training"
    model, env = trained(SAC, ScaledBox)
    model.save(training / "model.zip")
    env.save(str(training / "statistics.pkl"))
    raw = (np.random.default_rng(1).normal(size=(20, 3)) * [30, 0.3, 5] + [50, 0, -4]).astype(np.float32)
    expected, _ = model.predict(env.normalize_obs(raw), deterministic=True)
    export_sb3(model, CONTRACT, vec_normalize=env).save(tmp_path / "bundle")
    shutil.rmtree(training)
    program = """
import json, sys
sys.modules["stable_baselines3"] = None  # any import of it is an ImportError
import numpy as np, torch
from tensordict import TensorDict
from rl_core.methods import load_policy
policy = load_policy(sys.argv[1])
raw = torch.tensor(json.loads(sys.argv[2]), dtype=torch.float32)
obs = TensorDict({"position": raw[:, :2], "velocity": raw[:, 2:]}, batch_size=[len(raw)])
print(json.dumps(policy.act(obs, policy.prepare({}), policy.reset(range(len(raw))))[0].values[:, 0].tolist()))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "bundle"), json.dumps(raw.tolist())]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    np.testing.assert_allclose(np.array(json.loads(shown)), expected, atol=1e-6)


def test_statistics_left_out_of_a_bundle_are_noticed():
    model, env = trained(SAC, ScaledBox)
    with pytest.raises(BundleError, match="field normalizer is null"):
        policy_from_bundle(dataclasses.replace(export_sb3(model, CONTRACT, vec_normalize=env), normalizer=None))


def test_what_cannot_be_exported_is_named():
    action = Action(names=("a",), meaning="absolute", space="joint", scale=(1.0,), units=("1",))
    other = RobotContract(robot="r", observation=(Channel(name="state", names=("x",)),), action=action)
    model = SAC("MlpPolicy", unscaled_box(), buffer_size=10, policy_kwargs={"net_arch": [4]})
    with pytest.raises(ExportError, match="actions"):
        export_sb3(model, other)
    with pytest.raises(ExportError, match=r"model observes \(3,\), the contract has 1"):
        export_sb3(model, dataclasses.replace(other, action=CONTRACT.action))
    with pytest.raises(ExportError, match="model is a PPO, valid: SAC, TD3"):
        export_sb3(PPO("MlpPolicy", unscaled_box(), n_steps=8, batch_size=8), CONTRACT)


@pytest.mark.parametrize("method", ["sac", "td3"])
def test_resume_is_resume_for_online_methods(method, tmp_path):
    """Stopped between episodes and resumed, a run in a world ends with the weights of the uninterrupted one."""
    options = {"world": "Pendulum-v1", "overrides": SMALL, "eval_episodes": 1}
    trainer = {"updates": 230, "checkpoint_every": 50}
    whole = train(method, None, tmp_path / "whole", trainer=trainer, **options)
    folder = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", folder)
    assert CheckpointStore(folder / "checkpoints").steps() == [190]  # the end of the second episode; the run went on to 230
    shutil.rmtree(folder / "bundle")
    resumed = train(method, None, folder, trainer=trainer, resume=True, **options)
    a, b = load_policy(whole.bundle), load_policy(resumed.bundle)
    assert all(torch.equal(x, y) for x, y in zip(a.net.parameters(), b.net.parameters(), strict=True))
    drop = {"time/updates_per_s"}
    assert {k: v for k, v in whole.metrics.items() if k not in drop} == {k: v for k, v in resumed.metrics.items() if k not in drop}


@pytest.mark.parametrize("method", ["sac", "td3"])
def test_learner_state_round_trips_and_policy_is_the_exported_one(method):
    config = get_method(method).config_class().override(hidden=(8, 8))
    contract = make_world("Pendulum-v1").contract
    learner, other = (make_learner(method, config, contract=contract, seed=seed) for seed in (0, 1))
    batch = TensorDict(
        {
            "observation": torch.randn(8, 3),
            "action": torch.rand(8, 1),
            "reward": torch.randn(8),
            "terminal": torch.zeros(8),
            "next_observation": torch.randn(8, 3),
        },
        batch_size=[8],
    )
    for _ in range(3):
        metrics = learner.update(batch)
    assert "loss/critic" in metrics
    other.load_state_dict(copy.deepcopy(learner.state_dict()))
    for one in (learner, other):
        torch.manual_seed(0)
        one.update(batch)
    raw = {"state": np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)}
    assert np.array_equal(act(learner.policy(), raw), act(other.policy(), raw))
    predicted, _ = learner.model.predict(raw["state"], deterministic=True)
    np.testing.assert_allclose(act(learner.policy(), raw), predicted, atol=1e-6)


def test_td3_explores_around_its_action_and_sac_by_its_own_spread():
    for method in ("sac", "td3"):
        learner = make_learner(method, get_method(method).config_class().override(hidden=(8,)), contract=CONTRACT)
        raw = {"position": np.zeros((400, 2), np.float32), "velocity": np.zeros((400, 1), np.float32)}
        spread = act(learner.explore(), raw).std(axis=0)
        assert np.all(spread > 0.05) and np.all(np.abs(act(learner.policy(), raw)).std(axis=0) < 1e-5)
        if method == "td3":
            np.testing.assert_allclose(spread, 0.1, rtol=0.2)
