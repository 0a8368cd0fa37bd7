import dataclasses

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import Action, Channel, RobotContract
from rl_core.dac import DACConfig, DACLearner, policy_from_bundle
from rl_core.dac.export import NumpyDACPolicy, export_bundle
from rl_core.data.episode import Dataset, Episode
from rl_core.methods import load_policy

CONTRACT = RobotContract(
    robot="test",
    observation=(Channel(name="joints", names=("j1", "j2", "j3"), unit="rad"), Channel(name="goal", names=("x", "y"), unit="m")),
    action=Action(names=("j1", "j2"), meaning="delta", space="joint", scale=(0.1, 0.1), units=("rad", "rad"), period_s=0.02),
)
NOTHING = TensorDict({}, [])


def make_dataset() -> Dataset:
    random = np.random.default_rng(0)
    episodes = []
    for index in range(3):
        observations = {"joints": random.normal(2, 3, (9, 3)).astype(np.float32), "goal": random.normal(-1, 0.1, (9, 2)).astype(np.float32)}
        episodes.append(
            Episode(
                observations=observations,
                actions=random.uniform(-1, 1, (8, 2)).astype(np.float32),
                rewards=np.full(8, index, np.float32),
                terminal=False,
                truncated=True,
                stamps_ns=np.arange(9) * 20_000_000,
            )
        )
    return Dataset(contract=CONTRACT, episodes=tuple(episodes))


def make_learner(preset: str = "cpu", **overrides) -> DACLearner:
    return DACLearner(DACConfig.preset(preset).override(**overrides), CONTRACT, seed=3, data=make_dataset())


def make_obs(rows: int, seed: int = 0) -> TensorDict:
    generator = torch.Generator().manual_seed(seed)
    return TensorDict({"joints": torch.randn(rows, 3, generator=generator), "goal": torch.randn(rows, 2, generator=generator)}, [rows])


def test_chunk_has_the_contracts_shape_and_period_and_stays_in_the_box():
    policy = make_learner().policy()
    chunk, _ = policy.act(make_obs(5), NOTHING, policy.reset(range(5)))
    assert chunk.values.shape == (5, 1, 2) and chunk.values.abs().max() <= 1.0
    assert chunk.period_s == 0.02 and chunk.info["value"].shape == (5,)


@pytest.mark.parametrize("make", [lambda policy: policy, NumpyDACPolicy])
def test_a_row_does_not_depend_on_its_neighbours(make):
    policy = make(make_learner().policy())
    obs, seeds = make_obs(6), [11, 12, 13, 14, 15, 16]
    together, state = policy.act(obs, NOTHING, policy.reset(seeds))
    again, _ = policy.act(obs, NOTHING, policy.reset_rows(state, [2], [13]))
    for row in range(6):
        alone, _ = policy.act(obs[row : row + 1], NOTHING, policy.reset(seeds[row : row + 1]))
        torch.testing.assert_close(alone.values[0], together.values[row], atol=1e-5, rtol=0)
    torch.testing.assert_close(again.values[2], together.values[2], atol=1e-5, rtol=0)
    assert not torch.allclose(again.values[3], together.values[3])


def test_best_of_the_online_actors_candidates_by_mean_target_q():
    learner = make_learner(action_candidates=4)
    policy, obs = learner.policy(), make_obs(8)
    with torch.no_grad():  # online and target networks differ
        for parameter in [*learner.actor_target.parameters(), *learner.critic.parameters()]:
            parameter.zero_()
    observation = learner.normalizer.normalize("observation", torch.cat([obs["joints"], obs["goal"]], dim=-1))
    candidates = policy.candidates(observation, policy.reset(range(8)).normal(5, 4, 2))
    values = torch.stack([learner.critic_target(observation, candidates[:, k]).mean(0) for k in range(4)], dim=1)
    best = candidates[torch.arange(8), values.argmax(1)].clamp(-1, 1)
    chunk, _ = policy.act(obs, NOTHING, policy.reset(range(8)))
    torch.testing.assert_close(chunk.values[:, 0], best.detach(), atol=1e-5, rtol=0)
    torch.testing.assert_close(chunk.info["value"], values.amax(1).detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("preset", ["default", "cpu"])
def test_exported_policy_gives_the_torch_policys_actions(preset):
    policy = make_learner(preset).policy()
    exported = NumpyDACPolicy(policy)
    ours, theirs = exported.reset([5, 6]), policy.reset([5, 6])
    for seed in range(10):
        fast, ours = exported.act(make_obs(2, seed), NOTHING, ours)
        slow, theirs = policy.act(make_obs(2, seed), NOTHING, theirs)
        torch.testing.assert_close(fast.values, slow.values, atol=1e-5, rtol=0)
        torch.testing.assert_close(fast.info["value"], slow.info["value"], atol=1e-4, rtol=1e-5)


def test_deployed_policy_keeps_its_statistics(tmp_path):
    """Same actions from the bundle alone, normaliser included, in both runtimes (pain: deploy loses statistics)."""
    learner = make_learner()
    for _ in range(3):
        batch = make_batch()
        learner.update(batch)
    policy = learner.policy()
    expected, _ = policy.act(make_obs(4), NOTHING, policy.reset(range(4)))
    learner.bundle().save(tmp_path / "torch")
    export_bundle(learner.bundle()).save(tmp_path / "numpy")
    # The NumPy runtime adds in another order: the chain's rounding, up to 4e-6 here, is its own.
    for name, kind, tolerance in (("torch", type(policy), 1e-6), ("numpy", NumpyDACPolicy, 1e-5)):
        loaded = load_policy(tmp_path / name)
        assert type(loaded) is kind
        chunk, _ = loaded.act(make_obs(4), NOTHING, loaded.reset(range(4)))
        torch.testing.assert_close(chunk.values, expected.values, atol=tolerance, rtol=0)
    shifted = make_obs(4)
    shifted["joints"] += 3.0  # the statistics matter at all
    assert not torch.allclose(policy.act(shifted, NOTHING, policy.reset(range(4)))[0].values, expected.values)


def make_batch() -> TensorDict:
    generator = torch.Generator().manual_seed(0)
    values = {
        "observation": torch.randn(128, 5, generator=generator),
        "action": torch.rand(128, 2, generator=generator) * 2 - 1,
        "reward": torch.randn(128, generator=generator),
        "terminal": torch.zeros(128),
        "next_observation": torch.randn(128, 5, generator=generator),
    }
    return TensorDict(values, [128])


def test_bundle_of_other_sizes_is_refused():
    bundle = make_learner().bundle()
    with pytest.raises(BundleError, match="does not fit"):
        policy_from_bundle(dataclasses.replace(bundle, config={**bundle.config, "heads": 3}))
    with pytest.raises(BundleError, match="valid: dac"):
        policy_from_bundle(dataclasses.replace(bundle, method="bc"))
    with pytest.raises(BundleError, match="valid: the contract"):
        policy_from_bundle(Bundle(kind="policy", method="dac", config=bundle.config, weights=bundle.weights))


def test_rewards_are_scaled_by_the_range_of_returns():
    # returns 0, 8 and 16
    assert make_learner().reward_scale == pytest.approx(1000 / 16)
    assert make_learner(reward_scaling="none").reward_scale == 1.0


def test_fine_tuning_starts_from_a_bundle():
    trained, fresh = make_learner(), make_learner(eta=2.0)
    trained.update(make_batch())
    fresh.init_from(trained.bundle())
    for a, b in zip(fresh.actor_target.parameters(), trained.actor.parameters(), strict=True):
        assert torch.equal(a, b)
    assert fresh.eta.item() == 2.0


def test_scaled_actions_reach_the_networks_as_a_full_box_and_the_robot_as_they_were_recorded():
    """A dataset whose actions fill a tenth of [-1, 1], off its middle: [0.1, 0.3] and [-0.05, 0.05]."""
    data = make_dataset()
    squeeze = lambda actions: (actions * [0.1, 0.05] + [0.2, 0.0]).astype(np.float32)  # noqa: E731
    data = dataclasses.replace(data, episodes=tuple(dataclasses.replace(e, actions=squeeze(e.actions)) for e in data.episodes))
    recorded = np.concatenate([episode.actions for episode in data.episodes])
    learner = DACLearner(DACConfig.preset("cpu").override(scale_actions=True), CONTRACT, seed=3, data=data)
    seen = learner._scaled("action", torch.from_numpy(recorded))
    torch.testing.assert_close(seen.amin(0), torch.tensor([-1.0, -1.0]))
    torch.testing.assert_close(seen.amax(0), torch.tensor([1.0, 1.0]))
    low, high = torch.from_numpy(recorded.min(0)), torch.from_numpy(recorded.max(0))
    for policy in (learner.policy(), policy_from_bundle(learner.bundle()), policy_from_bundle(export_bundle(learner.bundle()))):
        values = policy.act(make_obs(64), NOTHING, policy.reset(range(64)))[0].values[:, 0]
        assert (values >= low - 1e-6).all() and (values <= high + 1e-6).all()
        assert (values.amax(0) - values.amin(0) > 0.5 * (high - low)).all()  # the range is used, not a tenth of it


def test_the_actor_is_led_by_the_target_critic_that_has_just_moved(monkeypatch):
    learner = make_learner(critic_ema_rate=1.0)
    seen = []
    monkeypatch.setattr(learner, "_update_actor", lambda *_: seen.append([p.clone() for p in learner.critic_target.parameters()]) or {})
    transitions = {"observation": torch.randn(8, 5), "action": torch.zeros(8, 2), "reward": torch.ones(8), "terminal": torch.zeros(8)}
    learner.update(TensorDict({**transitions, "next_observation": torch.randn(8, 5)}, [8]))
    for target, critic in zip(seen[0], learner.critic.parameters(), strict=True):
        assert torch.equal(target, critic)
