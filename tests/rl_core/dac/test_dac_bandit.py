"""A short run of the soft arm of the bandit; the whole table is in test_dac_results.py."""

import torch
from tensordict import TensorDict

from rl_core.dac.bandit import CONTRACT, MODES, make_data, reward, train
from rl_core.dac.config import DACConfig
from rl_core.dac.learner import DACLearner
from rl_core.dac.losses import bc_loss, guidance_loss, guidance_weight
from rl_core.models import ClippedAdam
from rl_core.models.diffusion import NoiseMLP, ancestral_sample, q_sample, vp_schedule


def test_soft_guidance_keeps_both_good_modes_and_drops_the_bad_one():
    updates = 1800
    config = DACConfig.preset("bandit").override(eta=0.25, eta_lr=0.0, actor_lr=4e-3, critic_lr=3e-3, lr_decay_steps=updates)
    figures = train(config, updates=updates, seed=1)
    behaviour = float(reward(make_data(torch.Generator().manual_seed(0))[0]).mean())
    bad, good, also_good = figures.modes
    assert figures.support >= 0.65, figures
    assert figures.reward >= behaviour + 0.15, figures
    assert min(good, also_good) >= 0.25 and bad < 0.15, figures


def test_trained_network_lands_at_the_chains_mean():
    """Behaviour N(0, 0.2^2) and Q = k a with g / (2 eta) = 0.5, T = 5: a perfect network's chain has mean 0.205."""
    generator = torch.Generator().manual_seed(0)
    schedule, eta, gradient = vp_schedule(5), 1.0, 1.0
    actor = NoiseMLP(0, 1, (64, 64), steps=5, generator=generator)
    optimizer = ClippedAdam(actor.parameters(), lr=2e-3, decay_steps=1500)
    nothing = torch.zeros(512, 0)
    for _ in range(1500):
        action = 0.2 * torch.randn(512, 1, generator=generator)
        t, noise = torch.randint(1, 6, (512,), generator=generator), torch.randn(512, 1, generator=generator)
        predicted = actor(q_sample(schedule, action, t, noise), t, nothing)
        weight = guidance_weight(schedule, t, guidance="soft")
        optimizer.minimize(eta * bc_loss(predicted, noise) + guidance_loss(predicted, torch.tensor(gradient), weight))
    with torch.no_grad():
        sample = ancestral_sample(actor.denoiser(torch.zeros(1, 0)), schedule, torch.randn(5, 20_000, 1, generator=generator), clip=None)
    assert abs(sample.mean().item() - 0.205) < 0.2 * 0.205
    assert abs(sample.std().item() - 0.114) < 0.2 * 0.114


def test_critic_learns_the_reward_where_data_are():
    config = DACConfig.preset("bandit").override(guidance="none", diffusion_steps=1, heads=3)
    action, rewards = make_data(torch.Generator().manual_seed(0))
    learner = DACLearner(config, CONTRACT, seed=0)
    rows, zeros = torch.Generator().manual_seed(1), torch.zeros(128, 1)
    for _ in range(400):
        index = torch.randint(len(action), (128,), generator=rows)
        values = {"observation": zeros, "next_observation": zeros, "terminal": torch.ones(128)}
        learner.update(TensorDict({**values, "action": action[index], "reward": rewards[index]}, [128]))
    values = learner.critic(torch.zeros(3, 1), MODES).mean(0)
    torch.testing.assert_close(values.detach(), reward(MODES), atol=0.15, rtol=0)
