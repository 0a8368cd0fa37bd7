import math

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.dvfb.inference import InferenceError, regressed_skill
from rl_core.dvfb.pretraining import pretrain
from rl_core.dvfb.skill_discovery.config import SkillDiscoveryConfig
from rl_core.dvfb.skill_discovery.inference import DiscoveredSkills, candidates, policy_from_bundle
from rl_core.dvfb.skill_discovery.learner import SkillDiscoveryLearner
from rl_core.dvfb.skill_discovery.objectives import APS, nearest_distances, particle_entropy
from rl_core.dvfb.skill_discovery.world import SkillWorld
from rl_core.dvfb.solving import solve, solve_blindly
from rl_core.dvfb.states import CarriedStates
from rl_core.training.metrics import read_metrics
from tests.rl_core.dvfb.conftest import WORLD
from tests.rl_core.dvfb.small import CONTRACT, PointWorld, left, make_batch

ALGORITHMS = ("diayn", "cic", "aps")
SMALL = {
    "z_dim": 4,
    "hidden": 16,
    "feature": 8,
    "batch_size": 32,
    "neighbours": 3,
    "random_steps": 40,
    "replay_size": 400,
    "carried_states": 100,
    "skill_steps": 7,
}


def config(algorithm: str, **overrides) -> SkillDiscoveryConfig:
    return SkillDiscoveryConfig().override(**{**SMALL, "algorithm": algorithm, **overrides})


def make_learner(algorithm: str, seed: int = 0, **overrides) -> SkillDiscoveryLearner:
    return SkillDiscoveryLearner(config(algorithm, **overrides), CONTRACT, seed=seed)


def batch(algorithm: str, seed: int = 0, size: int = 32) -> TensorDict:
    """Rows of a world that tells skills."""
    rows, rng = make_batch(seed, size), np.random.default_rng(seed)
    told = torch.from_numpy(np.stack([config(algorithm).draw(rng) for _ in range(size)]))
    for name in ("observation", "next_observation"):
        rows[name] = torch.cat([rows[name], told], -1)
    return rows


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_drawn_skills_have_norm_sqrt_d(algorithm):
    rng = np.random.default_rng(0)
    drawn = np.stack([config(algorithm).draw(rng) for _ in range(50)])
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 2.0, rtol=1e-6)
    assert (len(np.unique(drawn, axis=0)) == 4) == (algorithm == "diayn")


def test_a_world_tells_a_skill_at_the_reset_and_every_so_many_steps():
    settings = config("cic")
    world = SkillWorld(PointWorld(), 4, settings.draw, 7)
    observation, _ = world.reset(seed=3)
    told = [observation["skill"]]
    for _ in range(20):
        observation, *_ = world.step(np.zeros(2))
        assert world.observation_space.contains(observation)
        told.append(observation["skill"])
    same = [np.array_equal(a, b) for a, b in zip(told[:-1], told[1:], strict=True)]
    assert [step for step, value in enumerate(same, 1) if not value] == [7, 14]
    again, _ = world.reset(seed=3)
    assert np.array_equal(again["skill"], told[0])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_update_trains_all_parts_and_reads_no_reward(algorithm):
    learner = make_learner(algorithm)
    before = {name: {k: v.clone() for k, v in module.state_dict().items()} for name, module in learner._modules().items()}
    metrics = learner.update(batch(algorithm))
    assert all(torch.isfinite(torch.as_tensor(value)) for value in metrics.values())
    for name, module in learner._modules().items():
        assert any(not torch.equal(value, before[name][key]) for key, value in module.state_dict().items()), name


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_resume_is_to_the_bit(algorithm):
    whole, first = make_learner(algorithm), make_learner(algorithm)
    for seed in range(4):
        whole.update(batch(algorithm, seed))
    for seed in range(2):
        first.update(batch(algorithm, seed))
    second = make_learner(algorithm, seed=9)
    second.load_state_dict(first.state_dict())
    for seed in range(2, 4):
        second.update(batch(algorithm, seed))
    for name, module in whole._modules().items():
        other = second._modules()[name].state_dict()
        assert all(torch.equal(value, other[key]) for key, value in module.state_dict().items()), name


def test_diayn_learns_to_tell_its_skills_apart_and_rewards_it():
    learner = make_learner("diayn", lr=3e-3, hidden=32)
    rows = batch("diayn", size=256)
    rows["next_observation"][:, :3] = 0.1 * rows["next_observation"][:, :3] + rows["observation"][:, 3:6]  # each skill has its place
    for _ in range(150):
        metrics = learner.update(rows)
    assert 0.9 * math.log(4) < metrics["reward/intrinsic"] <= math.log(4)
    skills = rows["observation"][:, 3:]
    others = learner.objective.reward(rows["observation"][:, :3], rows["next_observation"][:, :3], skills.roll(1, dims=1))
    assert others.mean() < 0


def test_aps_features_come_to_agree_with_the_skill():
    learner = make_learner("aps", lr=3e-3, hidden=32)
    rows = batch("aps", size=256)
    rows["next_observation"][:, :3] = rows["observation"][:, 3:6]
    before = learner.update(rows)["loss/representation"]
    for _ in range(150):
        metrics = learner.update(rows)
    assert metrics["loss/representation"] < -0.7 < before - 0.3


def test_particle_entropy_by_hand():
    points = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    assert nearest_distances(points, 2).tolist() == [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0], [4.0, 6.0]]
    entropy = particle_entropy(points, neighbours=2, scale=torch.tensor(2.0))
    torch.testing.assert_close(entropy, torch.log1p(torch.tensor([1.0, 0.75, 1.25, 2.5])))
    assert nearest_distances(points, 99).shape == (4, 3)


class Told(torch.nn.Module):
    """A representation that reads the skill off the state."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def logits(self, observation, next_observation, skills):
        return 5.0 * next_observation @ skills.T


def test_the_skill_whose_states_are_rewarded_most_is_chosen():
    place = torch.eye(4).repeat(25, 1)
    states = CarriedStates(observation=place, action=torch.zeros(100, 2), next_observation=place)
    found = DiscoveredSkills(config("diayn"), CONTRACT, Told(), states)
    for skill in range(4):
        rewards = 1.0 + place[:, skill]
        torch.testing.assert_close(found.from_rewards(rewards), 2.0 * torch.eye(4)[skill])
        torch.testing.assert_close(found.from_rewards(rewards - 10.0), 2.0 * torch.eye(4)[skill])  # negative rewards too
    seldom = torch.where(torch.arange(100) < 3, place[:, 2], torch.zeros(100))  # few states of skill 2, but no others
    torch.testing.assert_close(found.from_rewards(seldom), 2.0 * torch.eye(4)[2])
    assert candidates(config("cic")).shape == (256, 4) and torch.equal(candidates(config("cic")), candidates(config("cic")))


def test_aps_regresses():
    objective, place = APS(config("aps"), 3, neighbours=3), torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    states = CarriedStates(observation=place, action=torch.zeros(200, 2), next_observation=place)
    rewards = place[:, 0].abs()
    found = DiscoveredSkills(config("aps"), CONTRACT, objective, states).from_rewards(rewards)
    torch.testing.assert_close(found, regressed_skill(objective.features(place).detach(), rewards))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_run_gives_a_bundle_that_solves_tasks(tmp_path, algorithm):
    overrides = {**SMALL, "algorithm": algorithm}
    trainer = {"updates": 30, "log_every": 10, "checkpoint_every": 10}
    result = pretrain("skill_discovery", WORLD, tmp_path / "run", overrides=overrides, trainer=trainer, rewards=("left",), eval_episodes=2)
    bundle = Bundle.load(result.bundle)
    states = CarriedStates.from_bundle(bundle)
    assert states.observation.shape[1] == CONTRACT.observation_size and len(states) == 100
    assert 0 <= list(read_metrics(tmp_path / "run"))[-1]["eval/left_return"] <= 20
    solved = solve(result.bundle, tmp_path / "left", reward=left)
    policy = policy_from_bundle(Bundle.load(solved.bundle))
    assert policy.contract.condition == () and Bundle.load(solved.bundle).parents == (bundle_sha256(result.bundle),)
    blind = [solve_blindly(result.bundle, tmp_path / "blind", seed=seed).skill for seed in (1, 1, 2, 3, 4, 5)]
    assert all(z.norm().item() == pytest.approx(2.0, abs=1e-5) for z in blind)
    assert torch.equal(blind[0], blind[1]) and len(torch.unique(torch.stack(blind), dim=0)) > 1
    with pytest.raises(InferenceError, match="nearest carried state"):
        solve(result.bundle, tmp_path / "far", goal={"channel": "position", "position": [9.0, 9.0]})
