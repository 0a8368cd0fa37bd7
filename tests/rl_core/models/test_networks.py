import math

import pytest
import torch
from torch.nn import functional as F

from rl_core.models import MLP, ClippedAdam, EnsembleMLP, cosine_decay, ema_update, mish, sinusoids


def test_mish_equals_pytorch_with_its_gradient():
    x = torch.linspace(-90, 90, 20_001, requires_grad=True)
    ours, theirs = mish(x), F.mish(x)
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)
    (gradient,) = torch.autograd.grad(ours.sum(), x)
    (expected,) = torch.autograd.grad(theirs.sum(), x)
    torch.testing.assert_close(gradient, expected, atol=2e-6, rtol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(mish(x), ours)


def test_mish_has_a_second_derivative():
    x = torch.linspace(-3, 3, 13, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(mish, x)
    assert torch.autograd.gradgradcheck(mish, x)


def test_ensemble_equals_single_mlps_with_its_weights():
    ensemble = EnsembleMLP(5, 2, (16, 8), heads=3, xavier=True, generator=torch.Generator().manual_seed(0))
    for bias in ensemble.biases:
        torch.nn.init.normal_(bias)
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    out = ensemble(x)
    assert out.shape == (3, 7, 2)
    for head in range(3):
        single = MLP(5, 2, (16, 8))
        for layer, weight, bias in zip(single.layers, ensemble.weights, ensemble.biases, strict=True):
            layer.weight.data, layer.bias.data = weight[head].t(), bias[head, 0]
        torch.testing.assert_close(out[head], single(x), atol=1e-6, rtol=1e-5)


def test_ensemble_parts_broadcast_like_their_concatenation():
    ensemble = EnsembleMLP(5, 1, (16,), heads=4)
    state, actions = torch.randn(6, 1, 3), torch.randn(6, 9, 2)
    whole = ensemble(torch.cat([state.expand(-1, 9, -1), actions], dim=-1))
    torch.testing.assert_close(ensemble(state, actions), whole, atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match="valid: 5"):
        ensemble(state, actions[..., :1])


def test_ensemble_heads_are_initialised_independently():
    ensemble = EnsembleMLP(5, 1, (32,), heads=4, xavier=True)
    for weight in ensemble.weights:
        flat = weight.detach().flatten(1)
        assert (torch.corrcoef(flat) - torch.eye(4)).abs().max() < 0.5
        assert not torch.equal(flat[0], flat[1])


@pytest.mark.parametrize("xavier", [True, False])
def test_initial_weights_have_the_stated_bounds(xavier):
    mlp = MLP(50, 30, (40,), xavier=xavier, generator=torch.Generator().manual_seed(0))
    for layer in mlp.layers:
        bound = math.sqrt(6 / (layer.in_features + layer.out_features)) if xavier else 1 / math.sqrt(layer.in_features)
        assert 0.95 * bound < layer.weight.abs().max() <= bound
        assert bool((layer.bias == 0).all()) == xavier


def test_unknown_activation_lists_the_valid_ones():
    with pytest.raises(ValueError, match="mish"):
        MLP(2, 1, (4,), activation="mist")


def test_sinusoids_have_the_stated_frequencies():
    t, k = 3, 2
    embedding = sinusoids(torch.tensor([t]), 16)[0]
    angle = t * math.exp(-k * math.log(10_000) / 7)
    assert embedding.shape == (16,)
    assert embedding[k] == pytest.approx(math.cos(angle), abs=1e-6)
    assert embedding[8 + k] == pytest.approx(math.sin(angle), abs=1e-6)


def test_ema_moves_by_its_rate():
    average, online = MLP(2, 1, (4,)), MLP(2, 1, (4,))
    expected = [0.9 * a + 0.1 * o for a, o in zip(average.parameters(), online.parameters(), strict=True)]
    ema_update(average, online, 0.1)
    for parameter, value in zip(average.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.detach(), value.detach())


def test_cosine_decay_ends():
    assert cosine_decay(0, 10) == 1.0
    assert cosine_decay(5, 10) == pytest.approx(0.5)
    assert cosine_decay(10, 10) == cosine_decay(25, 10) == 0.0


def test_gradients_are_clipped_by_their_joint_norm():
    a, b = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    clipped, seen = ClippedAdam([a, b], lr=1.0, max_norm=1.0), []
    clipped._adam.register_step_pre_hook(lambda *_: seen.append((a.grad.item(), b.grad.item())))
    norm = clipped.minimize(30 * a.sum() + 40 * b.sum())
    assert norm == pytest.approx(50.0)
    assert seen[0] == pytest.approx((0.6, 0.8), abs=1e-5)
    clipped.minimize(0.3 * a.sum() + 0.4 * b.sum())
    assert seen[1] == pytest.approx((0.3, 0.4), abs=1e-5)


def test_optimizer_follows_adam_with_cosine_decay_and_resumes_to_the_bit():
    def make():
        parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        return parameter, ClippedAdam([parameter], lr=0.1, decay_steps=8, max_norm=0.0)

    def loss(parameter):
        return (parameter**2).sum()

    whole, optimizer = make()
    reference = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    adam = torch.optim.Adam([reference], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=8)
    for _ in range(6):
        optimizer.minimize(loss(whole))
        adam.zero_grad()
        loss(reference).backward()
        adam.step()
        schedule.step()
    torch.testing.assert_close(whole, reference, atol=1e-6, rtol=1e-6)

    first, optimizer = make()
    for _ in range(3):
        optimizer.minimize(loss(first))
    state = optimizer.state_dict()
    second, resumed = make()
    second.data = first.data.clone()
    resumed.load_state_dict(state)
    for _ in range(3):
        resumed.minimize(loss(second))
    assert torch.equal(second, whole)
