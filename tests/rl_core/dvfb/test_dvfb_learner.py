import pytest
import torch

from rl_core.dvfb import DVFBConfig
from rl_core.training.config import ConfigError
from tests.rl_core.dvfb.small import make_batch, make_learner

PARTS = ("actor", "nets", "critic", "critic_target", "novelty", "contrastive")


def snapshot(learner) -> dict[str, torch.Tensor]:
    return {f"{part}.{name}": value.clone() for part in PARTS for name, value in getattr(learner, part).state_dict().items()}


def changed(before, after) -> set[str]:
    """Parts, of `nets` its own parts, of which any number changed."""
    names = {name for name, value in before.items() if not torch.equal(value, after[name])}
    return {".".join(name.split(".")[: 2 if name.startswith(("nets", "novelty")) else 1]) for name in names}


TRAINED = {
    "full": {"actor", "nets.f", "nets.b", "nets.f_target", "nets.b_target", "critic", "critic_target", "contrastive"},
    "fb_rnd": {"actor", "nets.f", "nets.b", "nets.f_target", "nets.b_target", "critic", "critic_target"},
    "fb_only": {"actor", "nets.f", "nets.b", "nets.f_target", "nets.b_target"},
    "sf_laplacian": {"actor", "nets.f", "nets.b", "nets.f_target", "nets.b_target"},
}


@pytest.mark.parametrize("variant", TRAINED)
def test_each_variant_trains_its_parts_and_no_others(variant):
    learner = make_learner(variant=variant)
    before = snapshot(learner)
    metrics = learner.update(make_batch())
    novelty = {"novelty.predictor", "novelty.moments"} if variant in ("full", "fb_rnd") else set()
    assert changed(before, snapshot(learner)) == TRAINED[variant] | novelty  # the random network never moves
    assert all(torch.isfinite(torch.as_tensor(value)) for value in metrics.values())  # the batch's rewards are NaN: nobody read them
    assert ("reward/contrastive_entropy" in metrics) == (variant == "full")
    assert ("reward/intrinsic" in metrics) == (variant in ("full", "fb_rnd"))


def test_intrinsic_reward_is_novelty_and_half_the_contrastive_entropy():
    metrics = make_learner().update(make_batch())
    expected = metrics["reward/novelty"] + 0.5 * metrics["reward/contrastive_entropy"]
    torch.testing.assert_close(metrics["reward/intrinsic"], expected)


def test_next_actions_are_the_current_policys_for_the_batchs_own_skills():
    learner = make_learner(action_std=0.0)
    step = learner.step_of(make_batch())
    torch.testing.assert_close(step.next_action, learner.actor(step.next_observation, step.skill).detach())
    noisy = make_learner()
    drawn = noisy.step_of(make_batch(size=2000))
    noise = drawn.next_action - noisy.actor(drawn.next_observation, drawn.skill).detach()
    inside = drawn.next_action.abs() < 1
    assert 0.1 < noise[inside].std() < 0.2 and noise.abs().max() <= 0.3 + 1e-6


def test_the_weight_decides_which_value_the_actor_follows():
    """With alpha = 0 DVFB's actor is FB's; a large one follows the exploration value alone."""

    def direction(weight: float, **overrides) -> torch.Tensor:
        learner = make_learner(exploration_weight=weight, lr=1e-4, **overrides)
        step = learner.step_of(make_batch())
        before = torch.nn.utils.parameters_to_vector(learner.actor.parameters()).detach().clone()
        learner.optimizers["actor"].minimize = lambda loss: setattr(learner, "loss", loss)
        learner._update_actor(step)
        assert torch.equal(before, torch.nn.utils.parameters_to_vector(learner.actor.parameters()))
        return torch.cat([g.flatten() for g in torch.autograd.grad(learner.loss, list(learner.actor.parameters()))])

    def cosine(a, b) -> float:
        return float(torch.cosine_similarity(a, b, dim=0))

    plain, without, strong, stronger = direction(0.0, variant="fb_only"), direction(0.0), direction(1e4), direction(2e4)
    torch.testing.assert_close(without, plain)
    assert cosine(strong, stronger) > 0.999 and cosine(strong, without) < 0.9


@pytest.mark.parametrize("options", [{}, {"variant": "sf_laplacian"}, {"goal": "pair_compat"}], ids=str)
def test_resume_is_to_the_bit(options):
    whole = make_learner(**options)
    for seed in range(6):
        whole.update(make_batch(seed))
    first = make_learner(**options)
    for seed in range(3):
        first.update(make_batch(seed))
    second = make_learner(seed=99, **options)
    second.load_state_dict(first.state_dict())
    for seed in range(3, 6):
        second.update(make_batch(seed))
    assert changed(snapshot(whole), snapshot(second)) == set()
    assert torch.equal(whole.generator.get_state(), second.generator.get_state())


def test_seed_decides_everything():
    a, b, c = make_learner(seed=1), make_learner(seed=1), make_learner(seed=2)
    torch.rand(3)  # the global generator plays no part
    for learner in (a, b, c):
        learner.update(make_batch())
    assert changed(snapshot(a), snapshot(b)) == set()
    assert "actor" in changed(snapshot(a), snapshot(c))


def test_networks_start_orthogonal():
    learner = make_learner()
    weight = learner.actor.head[0].weight  # (16, 16)
    torch.testing.assert_close(weight @ weight.T, torch.eye(16), atol=1e-5, rtol=0)
    heads = learner.nets.f.heads.weights[0]  # (2, 16, 16)
    torch.testing.assert_close(heads[0] @ heads[0].T, torch.eye(16), atol=1e-5, rtol=0)
    assert not torch.allclose(heads[0], heads[1])
    assert all(not layer.bias.any() for layer in learner.actor.modules() if isinstance(layer, torch.nn.Linear))


def test_defaults_are_the_papers():
    config = DVFBConfig.preset("paper")
    assert config == DVFBConfig()
    assert (config.z_dim, config.hidden, config.feature, config.backward_hidden, config.novelty_features) == (50, 1024, 512, 526, 512)
    assert (config.batch_size, config.steps_per_update, config.random_steps, config.replay_size) == (1024, 2, 4000, 1_000_000)
    assert (config.lr, config.gamma, config.tau, config.action_std, config.action_clip) == (1e-4, 0.99, 0.01, 0.2, 0.3)
    assert (config.skill_steps, config.mix_ratio, config.ortho_coef, config.q_loss_coef) == (300, 0.5, 1.0, 0.01)
    assert (config.exploration_weight, config.contrastive_weight, config.neighbours, config.temperature) == (50.0, 0.5, 12, 1.0)
    assert (config.variant, config.goal, config.neighbour_kind) == ("full", "canonical", "nearest")
    cpu = DVFBConfig.preset("cpu")
    assert cpu.exploration_weight == cpu.z_dim == 32 and cpu.carried_states == 10_000


@pytest.mark.parametrize("preset", ["paper", "cpu"])
def test_config_survives_json(preset):
    config = DVFBConfig.preset(preset)
    assert DVFBConfig.from_dict(config.to_dict()) == config


def test_wrong_values_name_the_field_and_the_range():
    wrong = (
        {"z_dim": 1},
        {"gamma": 1.0},
        {"mix_ratio": 1.5},
        {"tau": 0.0},
        {"lr": 0.0},
        {"skill_steps": 0},
        {"variant": "sf_laplacian", "goal": "pair"},
    )
    for values in wrong:
        with pytest.raises(ConfigError, match=f"DVFBConfig.{list(values)[-1]}"):
            DVFBConfig().override(**values)
