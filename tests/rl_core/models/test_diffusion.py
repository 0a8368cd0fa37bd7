import pytest
import torch

from rl_core.models.diffusion import (
    NoiseMLP,
    ancestral_sample,
    clean_from_noise,
    cosine_schedule,
    ddim_sample,
    noise_from_clean,
    noise_from_velocity,
    q_sample,
    vp_schedule,
)


def test_vp_schedule_has_the_papers_values():
    schedule = vp_schedule(5)
    expected = {
        "beta": [0.0, 0.1959, 0.4588, 0.6358, 0.7549, 0.8350],
        "alpha_bar": [1.0, 0.8041, 0.4352, 0.1585, 0.0389, 0.0064],
        "noise": [0.0, 0.4426, 0.7515, 0.9173, 0.9804, 0.9968],
    }
    for name, values in expected.items():
        torch.testing.assert_close(getattr(schedule, name), torch.tensor(values), atol=1e-4, rtol=0)
    assert schedule.steps == 5


@pytest.mark.parametrize("schedule", [vp_schedule(20), cosine_schedule(50)])
def test_schedules_start_clean_and_end_noisy(schedule):
    assert schedule.alpha_bar[0] == 1.0 and schedule.noise[0] == 0.0
    assert (schedule.alpha_bar.diff() < 0).all()
    assert schedule.alpha_bar[-1] < 0.01


def test_conversions_invert_the_forward_process():
    schedule, t = vp_schedule(5), torch.tensor([1, 3, 5])
    clean, noise = torch.randn(3, 2), torch.randn(3, 2)
    x = q_sample(schedule, clean, t, noise)
    torch.testing.assert_close(clean_from_noise(schedule, x, t, noise), clean, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(noise_from_clean(schedule, x, t, clean), noise, atol=1e-5, rtol=1e-4)
    velocity = schedule.signal[t].unsqueeze(-1) * noise - schedule.noise[t].unsqueeze(-1) * clean
    torch.testing.assert_close(noise_from_velocity(schedule, x, t, velocity), noise, atol=1e-5, rtol=1e-4)
    assert torch.equal(q_sample(schedule, clean, 0, noise), clean)


def test_last_step_adds_no_noise_and_clips():
    schedule, noise = vp_schedule(5), torch.randn(5, 1000, 2, generator=torch.Generator().manual_seed(0))
    outputs = []

    def predict(x, t):
        outputs.append((t, x.clone()))
        return torch.zeros_like(x)

    sample = ancestral_sample(predict, schedule, noise)
    assert [t for t, _ in outputs] == [5, 4, 3, 2, 1]
    assert sample.abs().max() <= 1.0 + 1e-6  # a zero noise network blows x up by 1/sqrt(abar): without the clip it would leave the box
    torch.testing.assert_close(sample, (outputs[-1][1] / schedule.signal[1]).clamp(-1, 1))
    assert ancestral_sample(predict, schedule, noise, clip=None).abs().max() > 1.5
    for k, (t, x) in enumerate(outputs[:4]):  # every step before the last adds sqrt(beta_t) times its own noise
        clean = (x / schedule.signal[t]).clamp(-1, 1)
        mean = (schedule.signal[t - 1] * schedule.beta[t] * clean + schedule.alpha[t].sqrt() * (1 - schedule.alpha_bar[t - 1]) * x) / (
            1 - schedule.alpha_bar[t]
        )
        torch.testing.assert_close(outputs[k + 1][1] - mean, schedule.beta[t].sqrt() * noise[k + 1], atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="valid: 5"):
        ancestral_sample(predict, schedule, noise[:4])


@pytest.mark.parametrize(("std", "steps", "mean", "spread"), [(0.2, 5, 0.205, 0.114), (0.5, 50, 0.375, 0.508)])
def test_guided_gaussian_chain_has_the_calculated_moments(std, steps, mean, spread):
    """Behaviour N(0, std^2) and a linear Q whose shift of the noise is sqrt(1 - abar) * 0.5: the chain's moments in closed form."""
    schedule = vp_schedule(steps)

    def predict(x, t):
        level = schedule.noise[t]
        return level * x / (schedule.alpha_bar[t] * std**2 + level**2) - level * 0.5

    noise = torch.randn(steps, 100_000, 1, generator=torch.Generator().manual_seed(0))
    sample = ancestral_sample(predict, schedule, noise, clip=None)
    assert sample.mean().item() == pytest.approx(mean, abs=0.01)
    assert sample.std().item() == pytest.approx(spread, abs=0.01)


@pytest.mark.parametrize("steps", [[50, 37, 20, 3], 10, 50])
def test_ddim_is_exact_for_a_gaussian_through_any_subset_of_steps(steps):
    """For data that are one point the perfect network is known and every DDIM step is exact, whatever is skipped."""
    schedule, point = vp_schedule(50), torch.tensor([0.3, -0.6])
    sample = ddim_sample(lambda x, t: noise_from_clean(schedule, x, t, point), schedule, torch.randn(64, 2), steps=steps)
    torch.testing.assert_close(sample, point.expand(64, 2), atol=1e-4, rtol=0)


def test_ddim_skips_steps_with_cumulative_levels():
    schedule, start, eps = vp_schedule(50), torch.tensor([[0.4]]), torch.tensor([[0.7]])
    visited = []

    def predict(x, t):
        visited.append((t, x))
        return eps

    sample = ddim_sample(predict, schedule, start, steps=[50, 20], clip=None)
    clean = (start - schedule.noise[50] * eps) / schedule.signal[50]
    middle = schedule.signal[20] * clean + schedule.noise[20] * eps
    torch.testing.assert_close(visited[1][1], middle)
    torch.testing.assert_close(sample, (middle - schedule.noise[20] * eps) / schedule.signal[20])
    for wrong in ([20, 50], [51, 3], [5, 0], []):
        with pytest.raises(ValueError, match="falling"):
            ddim_sample(predict, schedule, start, steps=wrong)


def test_noise_network_equals_an_mlp_over_the_concatenation():
    net = NoiseMLP(3, 2, (16, 16), steps=5)
    observation, x, t = torch.randn(4, 1, 3), torch.randn(4, 6, 2), torch.randint(0, 6, (4, 6))
    whole = torch.cat([observation.expand(-1, 6, -1), x, net.time(t)], dim=-1)
    torch.testing.assert_close(net(x, t, observation), net.net(whole), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(net.denoiser(observation)(x, 4), net(x, torch.full((4, 6), 4), observation))
