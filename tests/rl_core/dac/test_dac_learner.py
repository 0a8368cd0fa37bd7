import pytest
import torch
from tensordict import TensorDict

from rl_core.contract import Action, Channel, RobotContract
from rl_core.dac import DACConfig, DACLearner
from rl_core.data.episode import Dataset, DatasetError
from rl_core.training.config import ConfigError

SMALL = {
    "batch_size": 32,
    "heads": 3,
    "next_actions": 2,
    "actor_hidden": (32, 32),
    "critic_hidden": (32, 32),
    "ema_start": 4,
    "reward_scaling": "none",
}


def make_contract(observation: int = 4, action: int = 2) -> RobotContract:
    return RobotContract(
        robot="test",
        observation=(Channel(name="state", names=tuple(f"s{i}" for i in range(observation))),),
        action=Action(
            names=tuple(f"a{i}" for i in range(action)),
            meaning="absolute",
            space="joint",
            scale=(1.0,) * action,
            units=("rad",) * action,
        ),
    )


def make_batch(seed: int = 0, size: int = 32) -> TensorDict:
    generator = torch.Generator().manual_seed(seed)
    return TensorDict(
        {
            "observation": torch.randn(size, 4, generator=generator),
            "action": torch.rand(size, 2, generator=generator) * 2 - 1,
            "reward": torch.randn(size, generator=generator),
            "terminal": (torch.rand(size, generator=generator) < 0.1).float(),
            "next_observation": torch.randn(size, 4, generator=generator),
        },
        [size],
    )


def make_learner(seed: int = 0, **overrides) -> DACLearner:
    return DACLearner(DACConfig().override(**{**SMALL, **overrides}), make_contract(), seed=seed)


def snapshot(module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


def changed(module, before) -> bool:
    return any(not torch.equal(a, b) for a, b in zip(module.parameters(), before, strict=True))


def actor_gradients(learner: DACLearner, batch: TensorDict) -> list[torch.Tensor]:
    learner.generator.manual_seed(7)
    noise = torch.randn(32, 2, generator=learner.generator)
    t = torch.randint(1, 6, (32,), generator=learner.generator)
    x = learner.schedule.signal[t, None] * batch["action"] + learner.schedule.noise[t, None] * noise
    predicted = learner.actor(x, t, batch["observation"])
    term = learner.guidance_term(batch["observation"], batch["action"], x, t, predicted)
    return torch.autograd.grad(term, list(learner.actor.parameters()))


@pytest.mark.parametrize("guidance", ["soft", "hard", "denoised"])
def test_actor_step_touches_no_critic_and_critic_step_no_actor(guidance):
    learner, batch = make_learner(guidance=guidance), make_batch()
    before = {name: snapshot(getattr(learner, name)) for name in ("actor", "critic", "actor_target", "critic_target")}
    learner._update_critic(batch["observation"], batch["action"], batch)
    assert changed(learner.critic, before["critic"])
    assert not any(changed(getattr(learner, name), before[name]) for name in ("actor", "actor_target", "critic_target"))
    assert all(parameter.grad is None for parameter in learner.actor.parameters())

    before["critic"] = snapshot(learner.critic)
    learner._update_actor(batch["observation"], batch["action"])
    assert changed(learner.actor, before["actor"])
    assert not any(changed(getattr(learner, name), before[name]) for name in ("critic", "actor_target", "critic_target"))
    assert all(p.grad is None for module in (learner.critic, learner.critic_target) for p in module.parameters())


@pytest.mark.parametrize("guidance", ["soft", "hard", "denoised"])
def test_reward_scale_leaves_the_actor_gradient_unchanged(guidance):
    learner, batch = make_learner(guidance=guidance), make_batch()
    before = actor_gradients(learner, batch)
    last = len(learner.critic_target.net.weights) - 1
    with torch.no_grad():
        learner.critic_target.net.weights[last].mul_(100)
        learner.critic_target.net.biases[last].mul_(100)
    for scaled, plain in zip(actor_gradients(learner, batch), before, strict=True):
        torch.testing.assert_close(scaled, plain, atol=1e-5, rtol=1e-4)
    assert any(gradient.abs().max() > 1e-4 for gradient in before)


def test_hard_guidance_differs_from_soft_by_the_noise_level():
    learner, batch = make_learner(), make_batch()
    t = torch.full((32,), 1)
    predicted = torch.randn(32, 2)
    soft = learner.guidance_term(batch["observation"], batch["action"], batch["action"], t, predicted)
    hard = make_learner(guidance="hard").guidance_term(batch["observation"], batch["action"], batch["action"], t, predicted)
    assert (soft / hard).item() == pytest.approx(0.4426, abs=1e-3)


def test_guidance_uses_the_target_critic():
    learner, batch = make_learner(), make_batch()
    before = actor_gradients(learner, batch)
    with torch.no_grad():
        for parameter in learner.critic.parameters():
            parameter.add_(1.0)
    for a, b in zip(actor_gradients(learner, batch), before, strict=True):
        assert torch.equal(a, b)


def test_targets_come_from_the_target_networks_and_stop_at_terminals():
    learner = make_learner()
    with torch.no_grad():  # a target critic that says 5 everywhere, an online critic that says something else
        for parameter in learner.critic_target.parameters():
            parameter.zero_()
        learner.critic_target.net.biases[-1].fill_(5.0)
    reward, terminal = torch.tensor([1.0, 1.0]), torch.tensor([0.0, 1.0])
    torch.testing.assert_close(learner.critic_targets(reward, terminal, torch.randn(2, 4)), torch.tensor([1 + 0.99 * 5, 1.0]))


def test_target_actor_waits_then_moves_every_fifth_step():
    learner, batch = make_learner(ema_start=7), make_batch()
    initial = snapshot(learner.actor_target)
    assert not changed(learner.actor, initial)  # online and target start from the same weights
    assert not changed(learner.critic, snapshot(learner.critic_target))
    moved = []
    for _ in range(16):
        before = snapshot(learner.actor_target)
        learner.update(batch)
        moved.append(changed(learner.actor_target, before))
    assert [step for step, value in enumerate(moved, 1) if value] == [10, 15]


def test_eta_moves_only_with_a_rate():
    fixed, free = make_learner(eta_lr=0.0), make_learner(eta_lr=1e-2, bc_threshold=0.0)
    for seed in range(3):
        fixed.update(make_batch(seed))
        metrics = free.update(make_batch(seed))
    assert fixed.eta.item() == 1.0
    assert 1.0 < free.eta.item() <= 1.03 + 1e-6
    assert metrics["dual/eta"].item() == free.eta.item()


def test_resume_is_to_the_bit():
    whole = make_learner()
    for seed in range(10):
        whole.update(make_batch(seed))
    first = make_learner()
    for seed in range(5):
        first.update(make_batch(seed))
    second = make_learner(seed=99)
    second.load_state_dict(first.state_dict())
    for seed in range(5, 10):
        second.update(make_batch(seed))
    for name in ("actor", "critic", "actor_target", "critic_target"):
        assert not changed(getattr(second, name), snapshot(getattr(whole, name))), name
    assert torch.equal(second.eta, whole.eta)
    assert torch.equal(second.generator.get_state(), whole.generator.get_state())


def test_seed_decides_everything():
    a, b, c = make_learner(seed=1), make_learner(seed=1), make_learner(seed=2)
    torch.rand(3)  # the global generator plays no part
    for learner in (a, b, c):
        learner.update(make_batch())
    assert not changed(a.actor, snapshot(b.actor))
    assert changed(a.actor, snapshot(c.actor))


def test_return_range_scaling_without_data_says_what_to_use():
    with pytest.raises(DatasetError, match="use 'none'"):
        make_learner(reward_scaling="return_range")
    with pytest.raises(DatasetError, match="use 'none'"):
        DACLearner(DACConfig(), make_contract(), data=Dataset(contract=make_contract(), episodes=()))


def test_defaults_are_the_papers():
    config = DACConfig()
    assert (config.batch_size, config.heads, config.next_actions, config.action_candidates, config.diffusion_steps) == (256, 10, 10, 10, 5)
    assert (config.actor_hidden, config.critic_hidden) == ((256,) * 3, (256,) * 3)
    assert (config.actor_lr, config.critic_lr, config.lr_decay_steps, config.max_grad_norm) == (3e-4, 3e-4, 2_000_000, 1.0)
    assert (config.eta, config.eta_lr, config.bc_threshold, config.rho, config.gamma) == (1.0, 1e-3, 1.0, 1.0, 0.99)
    assert (config.critic_ema_rate, config.actor_ema_rate, config.actor_ema_every, config.ema_start) == (0.005, 0.005, 5, 1000)
    assert not config.normalize_observations


@pytest.mark.parametrize("preset", ["default", "cpu", "demo", "bandit"])
def test_config_survives_json(preset):
    config = DACConfig.preset(preset)
    assert DACConfig.from_dict(config.to_dict()) == config


def test_wrong_values_name_the_field_and_the_range():
    for values, field in (({"heads": 0}, "heads"), ({"eta": 1e-9}, "eta"), ({"gamma": 1.0}, "gamma"), ({"rho": -1.0}, "rho")):
        with pytest.raises(ConfigError, match=f"DACConfig.{field}"):
            DACConfig().override(**values)
