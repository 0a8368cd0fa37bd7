"""The guarantee: both variants contract for any parameters, and go on doing so whatever an optimiser does to them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from rl_core.contractive.ren import ContinuousREN, DiscreteREN, UnconstrainedRNN, field
from rl_core.contractive.rollout import discrete_rollout, neurons

LATENTS = (2, 3, 8, 32, 64)
CASES = [(seed, LATENTS[seed % len(LATENTS)], 1 + seed % 4, (1.0, 1.5, 3.0)[seed % 3]) for seed in range(20)]


def discrete(latent: int, neurons: int, c: float, seed: int) -> DiscreteREN:
    return DiscreteREN(latent, neurons, c, generator=torch.Generator().manual_seed(seed)).double()


def continuous(latent: int, neurons: int, c: float, seed: int, step: float = 1 / 49) -> ContinuousREN:
    return ContinuousREN(latent, neurons, c, step=step, generator=torch.Generator().manual_seed(seed)).double()


def pairs(latent: int, seed: int, spread: float = 3.0) -> Tensor:
    """Two starts a row, (32, 2, n_x): some far apart, some close together, so that the neurons are met saturated and steep."""
    generator = torch.Generator().manual_seed(100 + seed)
    first = spread * torch.randn(32, latent, generator=generator, dtype=torch.float64)
    apart = torch.randn(32, latent, generator=generator, dtype=torch.float64) * torch.logspace(-3, 1, 32, dtype=torch.float64).unsqueeze(1)
    return torch.stack([first, first + apart], dim=1)


def energies(ren: DiscreteREN | ContinuousREN, latent: int, seed: int, steps: int) -> Tensor:
    """V between the pairs' rollouts, (32, steps + 1)."""
    with torch.no_grad():
        states = ren.rollout(pairs(latent, seed).flatten(0, 1), steps).unflatten(0, (32, 2))
        apart = states[:, 0] - states[:, 1]
        return torch.einsum("btx,xy,bty->bt", apart, ren.metric(), apart)


@pytest.mark.parametrize(("seed", "latent", "width", "c"), CASES)
def test_v_falls_by_the_promised_factor_in_each_step_for_random_parameters(seed: int, latent: int, width: int, c: float) -> None:
    ren = discrete(latent, width, c, seed)
    v = energies(ren, latent, seed, 20)
    known = v[:, :-1] > 1e-18  # below it differences of states are rounding
    ratios = (v[:, 1:] / v[:, :-1])[known]
    assert ratios.max() <= 1 / c + 1e-6
    # What is certified for these parameters is at most what is promised for all, and still an upper bound.
    certified = ren.certified()
    assert certified <= ren.promised == c**-0.5
    assert ratios.max() <= certified**2 * (1 + 1e-6)


@pytest.mark.parametrize(("seed", "latent", "width", "c"), [(s, n, w, (0.5, 6.0, 12.0)[s % 3]) for s, n, w, _ in CASES])
def test_continuous_v_decays_at_the_promised_rate_under_rk4(seed: int, latent: int, width: int, c: float) -> None:
    ren = continuous(latent, width, c, seed)
    v = energies(ren, latent, seed, 20)
    time = torch.arange(21, dtype=torch.float64) * ren.step
    shares = v / v[:, :1]
    assert (shares <= torch.exp(-c * time) * (1 + 1e-3) + 1e-12).all()
    certified = ren.certified()
    assert certified <= ren.promised == math.exp(-0.5 * c * ren.step)
    assert (shares <= certified ** (2 * torch.arange(21)) * (1 + 1e-3) + 1e-12).all()


@pytest.mark.parametrize("variant", ["discrete", "continuous"])
def test_the_certificate_holds_after_fifty_adam_steps_towards_anything(variant: str) -> None:
    """Nothing but the parameterisation guarantees it: the loss asks for motions that diverge."""
    ren = discrete(8, 2, 1.5, 3) if variant == "discrete" else continuous(4, 2, 6.0, 3, step=0.02)
    latent = ren.latent
    optimizer = torch.optim.Adam(ren.parameters(), lr=1e-2)
    before = ren.metric().detach().clone()
    start = pairs(latent, 0)[:4, 0]
    for _ in range(50):
        optimizer.zero_grad()
        loss = (ren.rollout(start, 4) - 5.0 * torch.arange(5).reshape(1, 5, 1)).square().mean()
        loss.backward()
        optimizer.step()
    assert not torch.allclose(before, ren.metric())
    v = energies(ren, latent, 1, 20)
    bound = ren.promised ** (2 * torch.arange(21)) * (1 + 1e-3)
    assert (v / v[:, :1] <= bound + 1e-12).all()


@torch.no_grad()
@pytest.mark.parametrize("make", [discrete, continuous])
def test_the_origin_is_a_fixed_point_and_every_motion_ends_there(make) -> None:
    ren = make(4, 2, 1.5, 0)
    assert torch.equal(ren.rollout(torch.zeros(1, 4, dtype=torch.float64), 5), torch.zeros(1, 6, 4, dtype=torch.float64))
    assert ren.rollout(pairs(4, 0)[:, 0], 500)[:, -1].abs().max() < 1e-2


def test_an_unconstrained_network_has_no_such_bound() -> None:
    """So that the checks above can fail: its largest gain is above 1 and V does rise."""
    ren = UnconstrainedRNN(8, 2, 1.0, generator=torch.Generator().manual_seed(0)).double()
    ren.a.data *= 1.3
    assert ren.certified() > 1 and math.isinf(ren.promised)
    v = energies(ren, 8, 0, 5)  # type: ignore[arg-type]
    assert (v[:, 1:] > v[:, :-1]).any()


@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_written_out_adjoint_is_the_gradient(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    m = discrete(3, width, 1.1, 5).matrices()
    start = torch.randn(2, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    parts = [part.detach().requires_grad_() for part in (m.a, m.b, m.c1, m.d11)]
    assert torch.autograd.gradcheck(lambda *inputs: discrete_rollout(*inputs, 4), (start, *parts))

    # and it equals what autograd records step by step, down to the free parameters
    def recorded(ren: DiscreteREN, x: Tensor) -> Tensor:
        m, states = ren.matrices(), [x]
        for _ in range(6):
            states.append(field(m, states[-1]))
        return torch.stack(states, dim=1)

    gradients = []
    for function in (lambda ren, x: ren.rollout(x, 6), recorded):
        ren = discrete(5, width, 1.1, 6)
        x = pairs(5, 0)[:3, 0].clone().requires_grad_()
        function(ren, x).square().sum().backward()
        gradients.append((x.grad, ren.x.grad, ren.y.grad))
    for ours, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-9)


def test_neurons_are_evaluated_in_order() -> None:
    d11 = torch.tensor([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [-1.0, 3.0, 0.0]])
    v = torch.tensor([[0.3, -0.2, 0.1]])
    first = math.tanh(0.3)
    second = math.tanh(-0.2 + 2 * first)
    third = math.tanh(0.1 - first + 3 * second)
    torch.testing.assert_close(neurons(v, d11), torch.tensor([[first, second, third]]))


def test_corners_of_the_slopes_bound_the_jacobian_everywhere() -> None:
    ren = discrete(4, 3, 1.2, 1)
    m = ren.matrices()
    assert m.slopes().shape == (8, 4, 4)
    corners = torch.linalg.matrix_norm(m.slopes(), ord=2).max()
    for x in pairs(4, 2)[:, 0]:
        jacobian = torch.autograd.functional.jacobian(lambda point: field(m, point.unsqueeze(0))[0], x)
        assert torch.linalg.matrix_norm(jacobian, ord=2) <= corners + 1e-9
