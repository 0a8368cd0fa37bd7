import dataclasses

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle, BundleError, bundle_sha256
from rl_core.dvfb.finetune_config import FineTuneConfig
from rl_core.dvfb.finetuning import FineTuneLearner, finetune
from rl_core.dvfb.losses import implicit_reward
from rl_core.dvfb.policy import policy_from_bundle, with_skill
from rl_core.dvfb.reward_mapping import RewardMapping
from rl_core.dvfb.skills import on_sphere
from rl_core.training.config import ConfigError
from rl_core.training.metrics import read_metrics
from rl_core.training.trainer import Trainer
from tests.rl_core.dvfb.conftest import WORLD
from tests.rl_core.dvfb.small import make_batch, make_learner

NOW = {"batch_size": 32, "still_steps": 0}


def solved(**overrides) -> Bundle:
    return with_skill(make_learner(**overrides).bundle(), on_sphere(torch.tensor([1.0, -2.0, 0.5, 1.0])))


def tuner(seed: int = 0, bundle: Bundle | None = None, **overrides) -> FineTuneLearner:
    return FineTuneLearner(FineTuneConfig().override(**{**NOW, **overrides}), bundle or solved(), seed=seed)


def rewarded_batch(seed: int = 0, scale: float = 1.0) -> TensorDict:
    batch = make_batch(seed)
    batch["reward"] = scale * torch.rand(32, generator=torch.Generator().manual_seed(seed))
    return batch


def weights(module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(module, before) -> bool:
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_mapped_rewards_have_the_mean_of_the_implicit_reward(scale):
    generator = torch.Generator().manual_seed(0)
    mapping, implicit = RewardMapping(), 3.0 + torch.randn(512, generator=generator)
    mapped = mapping(scale * torch.rand(512, generator=generator), implicit)
    assert mapped.mean().item() == pytest.approx(float(implicit.mean()), rel=1e-3)


@pytest.mark.parametrize("mapped", [True, False])
def test_rewards_in_other_units_lead_to_the_same_actor_where_they_are_mapped(mapped):
    bundle = solved()
    learners = [tuner(bundle=bundle, reward_scale=scale, reward_mapping=mapped) for scale in (1.0, 100.0)]
    losses = [[float(learner.update(rewarded_batch(seed))["loss/critic"]) for seed in range(3)] for learner in learners]
    assert (losses[1] == pytest.approx(losses[0], rel=1e-3)) is mapped


def test_the_mapping_cannot_turn_a_task_around():
    for sign_task, sign_implicit in ((1, -1), (-1, 1), (-1, -1)):
        mapping = RewardMapping()
        reward = sign_task * torch.tensor([1.0, 2.0, 3.0])
        mapped = mapping(reward, sign_implicit * torch.tensor([4.0, 4.0, 4.0]))
        assert (mapped.sign() == reward.sign()).all() and mapping.ratio.item() == pytest.approx(2.0, rel=1e-6)


def test_no_reward_gives_no_nan():
    mapping = RewardMapping()
    for _ in range(3):
        assert torch.equal(mapping(torch.zeros(8), torch.randn(8)), torch.zeros(8))
    learner, batch = tuner(), rewarded_batch(scale=0.0)
    for _ in range(3):
        assert all(torch.isfinite(torch.as_tensor(value)) for value in learner.update(batch).values())


def test_means_run_over_all_batches():
    mapping = RewardMapping()
    mapping(torch.full((10,), 1.0), torch.full((10,), 2.0))
    mapping(torch.full((30,), 5.0), torch.full((30,), 10.0))
    assert mapping.task.mean.item() == pytest.approx(4.0) and mapping.implicit.mean.item() == pytest.approx(8.0)


def test_the_learner_maps_onto_the_reward_that_its_skill_asks_for():
    learner, batch = tuner(), rewarded_batch(scale=100.0)
    metrics = learner.update(batch)
    implicit = implicit_reward(learner.b(batch["next_observation"]), learner.skill.expand(32, -1))
    expected = implicit.mean().abs() / batch["reward"].mean()
    assert float(metrics["reward/mapping_ratio"]) == pytest.approx(float(expected), rel=1e-4)


def test_with_mapping_the_rewards_scale_does_not_matter():
    """The curves for rewards times 0.01 and times 100 coincide; without mapping they do not."""

    def tuned(scale: float, reward_mapping: bool) -> torch.Tensor:
        learner = tuner(reward_mapping=reward_mapping)
        for seed in range(5):
            learner.update(rewarded_batch(seed, scale))
        return torch.nn.utils.parameters_to_vector(learner.critic.parameters()).detach()

    torch.testing.assert_close(tuned(0.01, True), tuned(100.0, True), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(tuned(0.01, False), tuned(100.0, False), rtol=1e-3, atol=1e-4)


def test_f_and_b_are_frozen_to_the_bit_and_the_critic_is_fresh():
    bundle = solved()
    learner, other = tuner(bundle=bundle), tuner(bundle=bundle, seed=1)
    pretraining = make_learner()
    frozen = {name: weights(getattr(learner, name)) for name in ("f", "b")}
    assert all(torch.equal(value, bundle.weights[f"{net}.{name}"]) for net in frozen for name, value in frozen[net].items())
    assert same(learner.actor, {name.removeprefix("actor."): value for name, value in bundle.weights.items()})
    assert not same(learner.critic, weights(pretraining.critic)) and not same(learner.critic, weights(other.critic))
    assert not any(name.startswith(("critic", "novelty", "contrastive")) for name in bundle.weights)
    before = {"actor": weights(learner.actor), "critic": weights(learner.critic)}
    for seed in range(100):
        learner.update(rewarded_batch(seed))
    assert same(learner.f, frozen["f"]) and same(learner.b, frozen["b"])
    assert not same(learner.actor, before["actor"]) and not same(learner.critic, before["critic"])
    assert not hasattr(learner, "novelty") and not hasattr(learner, "contrastive")  # no intrinsic reward can leak in


def test_the_skill_value_is_a_switch():
    batch, losses = rewarded_batch(), {}
    for skill_value in (True, False):
        metrics = tuner(skill_value=skill_value).update(batch)
        losses[skill_value] = float(metrics["loss/actor"])
        assert ("q/skill_mean" in metrics) == skill_value
        assert losses[skill_value] == pytest.approx(-50 * float(metrics["q/task_mean"]) - float(metrics.get("q/skill_mean", 0.0)), rel=1e-4)
    assert losses[True] != pytest.approx(losses[False])


def test_nothing_is_learned_while_the_zero_shot_policy_collects():
    learner = tuner(still_steps=6, steps_per_update=2)
    before = weights(learner.actor)
    for seed in range(3):
        assert learner.update(rewarded_batch(seed)) == {} and same(learner.actor, before)
    assert "loss/actor" in learner.update(rewarded_batch(3)) and not same(learner.actor, before)


def test_resume_is_to_the_bit():
    whole, first = tuner(), tuner()
    for seed in range(6):
        whole.update(rewarded_batch(seed))
    for seed in range(3):
        first.update(rewarded_batch(seed))
    second = tuner(seed=9)
    second.load_state_dict(first.state_dict())
    for seed in range(3, 6):
        second.update(rewarded_batch(seed))
    for name in ("actor", "critic", "critic_target", "mapping"):
        assert same(getattr(second, name), weights(getattr(whole, name))), name
    assert second.batches == whole.batches and torch.equal(second.generator.get_state(), whole.generator.get_state())


def run(folder, bundle, **options):
    overrides = {"batch_size": 32, "still_steps": 40, **options.pop("overrides", {})}
    trainer = {"updates": 50, "log_every": 10, "eval_every": 10, "checkpoint_every": 10}
    kwargs = {"world_kwargs": {"reward": "left"}, "eval_episodes": 3}
    return finetune(bundle, WORLD, folder, overrides=overrides, trainer=trainer, **kwargs, **options)


def test_fine_tuning_starts_at_the_zero_shot_return_and_gives_a_bundle(tmp_path):
    folder = solved().save(tmp_path / "solved")
    result = run(tmp_path / "run", folder)
    bundle = Bundle.load(result.bundle)
    assert bundle.parents == (bundle_sha256(folder),) and "eval/return_mean" in result.metrics
    rows = list(read_metrics(tmp_path / "run"))
    assert rows[0]["eval/return_mean"] == rows[1]["eval/return_mean"]  # the first 40 steps, 20 updates, learn nothing
    assert "loss/critic" not in rows[1] and "loss/critic" in rows[3]
    policy = policy_from_bundle(bundle)
    assert not same(policy.actor, weights(policy_from_bundle(Bundle.load(folder)).actor))
    assert all(torch.equal(value, bundle.weights[name]) for name, value in solved().weights.items() if not name.startswith("actor"))


def test_resume_is_resume(tmp_path, monkeypatch):
    folder = solved().save(tmp_path / "solved")
    whole = run(tmp_path / "whole", folder)
    loop = Trainer._loop

    def stop_early(self, step, metrics_log, progress):
        if step == 0:
            self.stop()
        return loop(self, step, metrics_log, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_loop", stop_early)
        assert not run(tmp_path / "cut", folder).finished
    assert bundle_sha256(run(tmp_path / "cut", folder, resume=True).bundle) == bundle_sha256(whole.bundle)


def test_unsolved_bundles_are_refused(tmp_path):
    with pytest.raises(BundleError, match="armstack solve"):
        tuner(bundle=make_learner().bundle())
    with pytest.raises(BundleError, match="armstack solve"):
        tuner(bundle=dataclasses.replace(solved(), arrays={}))


def test_defaults_are_the_papers():
    config = FineTuneConfig.preset("paper")
    assert (config.task_weight, config.still_steps, config.steps_per_update, config.batch_size) == (50.0, 4000, 2, 1024)
    assert config.skill_value and config.reward_mapping
    assert FineTuneConfig.UPDATES["paper"] * config.steps_per_update == 100_000
    assert FineTuneConfig.from_dict(FineTuneConfig.preset("cpu").to_dict()) == FineTuneConfig.preset("cpu")
    for values in ({"lr": 0.0}, {"gamma": 1.0}, {"tau": 0.0}, {"steps_per_update": 0}, {"task_weight": float(np.nan)}):
        with pytest.raises(ConfigError, match=f"FineTuneConfig.{next(iter(values))}"):
            FineTuneConfig().override(**values)
