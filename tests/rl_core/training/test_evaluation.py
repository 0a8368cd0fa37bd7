from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

from rl_core.bundle import bundle_sha256
from rl_core.contract import ContractMismatch
from rl_core.methods import load_policy
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
from rl_core.training.evaluation import EnvEvaluator, SeedOverlap, check_disjoint, evaluate, evaluate_bundle, evaluation_seeds
from rl_core.training.rollout import rollout
from rl_core.training.run import train
from rl_core.training.sources import RandomPolicy
from rl_core.training.worlds import WorldError, make_world
from tests.rl_core.training.synthetic import synthetic_dataset
from tests.rl_core.training.toy import CONTRACT, PointWorld, ToyLearner

SEEDS = evaluation_seeds(0, 7)


class CountingPolicy(StatelessPolicy):
    """Chunks of four, three executed; remembers how often each row was asked and what it was shown."""

    def __init__(self, contract=CONTRACT):
        self.contract = contract

    def reset(self, seeds):
        return PolicyState(generators=super().reset(seeds).generators, tensors={"asked": torch.zeros(len(seeds))})

    def reset_rows(self, state, rows, seeds):
        fresh = super().reset_rows(state, rows, seeds)
        asked = state.tensors["asked"].clone()
        asked[list(rows)] = 0
        return PolicyState(generators=fresh.generators, tensors={"asked": asked})

    def act(self, obs, condition, state):
        asked = state.tensors["asked"] + 1
        noise = state.normal(4, 2)
        flat = flatten_observation(self.contract, obs)
        values = (0.1 * noise - 0.6 * flat[:, None, :2] + 0.01 * asked[:, None, None]).clamp(-1, 1)
        return ActionChunk(values=values, period_s=0.05, execute=3), PolicyState(generators=state.generators, tensors={"asked": asked})


@pytest.mark.parametrize("n_envs", [2, 3, 7, 20])
def test_an_episode_depends_on_its_seed_and_not_on_the_batch(n_envs):
    alone = evaluate(CountingPolicy(), PointWorld, SEEDS, n_envs=1)
    together = evaluate(CountingPolicy(), PointWorld, SEEDS, n_envs=n_envs)
    assert [row.seed for row in together.rows] == SEEDS
    for a, b in zip(alone.rows, together.rows, strict=True):
        assert (a.seed, a.length, a.success) == (b.seed, b.length, b.success)
        assert a.episode_return == pytest.approx(b.episode_return, abs=1e-5)
    assert len({row.episode_return for row in alone.rows}) == len(SEEDS)


def test_the_open_chunk_is_executed_and_dropped_at_a_new_episode():
    steps = list(rollout(CountingPolicy(), [PointWorld()], SEEDS))
    by_seed = {seed: [step for step in steps if step.seed == seed] for seed in SEEDS}
    for seed, episode in by_seed.items():
        assert episode[-1].done and not any(step.done for step in episode[:-1])
        again = list(rollout(CountingPolicy(), [PointWorld()], [seed]))
        assert all(np.array_equal(a.action, b.action) for a, b in zip(episode, again, strict=True))


def test_history_is_oldest_first_and_starts_filled():
    contract = dataclasses.replace(CONTRACT, observation=(dataclasses.replace(CONTRACT.channel("position"), history=3),))
    seen = []

    class Watching(RandomPolicy):
        def act(self, obs, condition, state):
            seen.append(obs["position"][0].clone())
            return super().act(obs, condition, state)

    steps = list(rollout(Watching(contract), [PointWorld()], [1_000_000]))
    positions = [steps[0].before["position"], *(step.observation["position"] for step in steps)]
    assert seen[0].tolist() == [positions[0].tolist()] * 3
    assert seen[2].tolist() == [p.tolist() for p in positions[:3]]


def test_success_is_success_at_any_step_and_json_has_the_agreed_keys():
    result = evaluate(CountingPolicy(), PointWorld, SEEDS, sha256="abc")
    seen = {seed: False for seed in SEEDS}
    for step in rollout(CountingPolicy(), [PointWorld()], SEEDS):
        seen[step.seed] |= step.info["success"]
    assert [row.success for row in result.rows] == list(seen.values()) and 0 < sum(seen.values()) < 7
    values = json.loads(json.dumps(result.to_dict(rows=False)))
    assert set(values) == {"success_rate", "success_ci95", "return_mean", "return_ci95", "episodes", "seed", "bundle_sha256"}
    assert (values["episodes"], values["seed"], values["bundle_sha256"]) == (7, 1_000_000, "abc")
    assert values["success_ci95"][0] < values["success_rate"] < values["success_ci95"][1]
    assert len(result.to_dict()["rows"]) == 7


def test_a_world_without_success_has_none():
    env_result = evaluate(RandomPolicy(make_world("Pendulum-v1").contract), lambda: make_world("Pendulum-v1"), [1_000_000])
    assert env_result.success_rate is None and env_result.success_ci95 is None
    assert "eval/success_rate" not in env_result.metrics()
    assert env_result.rows[0].length == 200


def test_evaluation_seeds_are_disjoint_from_collection():
    assert evaluation_seeds(0, 3) == [1_000_000, 1_000_001, 1_000_002]
    assert not set(evaluation_seeds(0, 10_000)) & set(evaluation_seeds(1, 10_000))
    dataset = synthetic_dataset()
    check_disjoint(evaluation_seeds(0, 50), dataset)
    with pytest.raises(SeedOverlap, match=r"evaluation seeds \[2, 4\]"):
        check_disjoint([2, 4, 1_000_000], dataset)
    with pytest.raises(ValueError, match="valid: 1..10000"):
        evaluation_seeds(0, 10_001)


def test_a_policy_that_needs_more_than_the_world_offers_is_refused():
    policy = RandomPolicy(synthetic_dataset().contract)
    with pytest.raises(ContractMismatch, match="observation.goal"):
        evaluate(policy, PointWorld, SEEDS)


@pytest.mark.parametrize("seeds", [[], [1_000_000, 1_000_000]])
def test_each_seed_is_judged_once(seeds):
    with pytest.raises(ValueError, match="at least one, each once"):
        evaluate(CountingPolicy(), PointWorld, seeds)


def test_the_trainers_evaluator_uses_the_same_seeds_each_time():
    evaluator = EnvEvaluator(PointWorld, SEEDS, n_envs=2)
    policy = ToyLearner().policy()
    first = evaluator.evaluate(policy, 1)
    assert first == evaluator.evaluate(policy, 2)
    assert set(first) == {"eval/return_mean", "eval/success_rate", "eval/episode_length"}


def test_wrong_weights_are_never_evaluated(tmp_path, monkeypatch):
    """The weights judged are those that were saved, and the result carries the hash of their files."""
    dataset = synthetic_dataset()
    result = train("bc", dataset, tmp_path / "run", preset="cpu", overrides={"hidden": (8,)}, trainer={"updates": 5})
    judged = []
    monkeypatch.setattr("rl_core.training.evaluation.evaluate", lambda policy, *a, **k: judged.append((policy, k["sha256"])))
    evaluate_bundle(result.bundle, PointWorld, episodes=3)
    policy, sha256 = judged[0]
    assert sha256 == bundle_sha256(result.bundle)
    saved = load_policy(result.bundle)
    assert all(torch.equal(a, b) for a, b in zip(policy.net.parameters(), saved.net.parameters(), strict=True))


def test_worlds_by_name():
    world = make_world("Pendulum-v1")
    assert world.contract.observation_size == 3 and world.contract.action.size == 1
    observation, _ = world.reset(seed=0)
    assert set(observation) == {"state"}
    with pytest.raises(WorldError, match="NoSuchWorld"):
        make_world("NoSuchWorld-v0")
    with pytest.raises(WorldError, match="valid: a flat bounded Box"):
        make_world("CartPole-v1")


def test_box_world_maps_the_unit_box_on_the_worlds():
    world = make_world("Pendulum-v1")
    bare = world.env
    for action in (-1.0, 0.3, 1.0):
        world.reset(seed=3)
        ours = world.step(np.array([action]))[0]["state"]
        bare.reset(seed=3)
        theirs = bare.step(np.array([2.0 * action], np.float32))[0]
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
