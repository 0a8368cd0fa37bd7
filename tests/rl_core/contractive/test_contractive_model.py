"""Bijection, lift and the whole map, in torch and as the NumPy model that acts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_core.contractive.config import ContractiveConfig
from rl_core.contractive.coupling import Coupling
from rl_core.contractive.lift import correction, right_inverse
from rl_core.contractive.model import ContractiveModel
from rl_core.contractive.numpy_model import NumpyModel
from rl_core.training.config import ConfigError


def stirred(module: torch.nn.Module, scale: float = 0.5) -> torch.nn.Module:
    """With random last layers too, as after training."""
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        parameter.data += scale * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return module


def model(size: int = 2, extra: int = 0, **overrides) -> ContractiveModel:
    config = ContractiveConfig(latent=8, horizon=20, **overrides)
    made = ContractiveModel(config, size, extra, generator=torch.Generator().manual_seed(0)).double()
    stirred(made.bijection, 0.3)
    return made


def points(rows: int, size: int) -> torch.Tensor:
    return torch.randn(rows, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("log_scale", [0.0, 0.3])
def test_the_inverse_inverts_and_the_start_is_the_identity(size: int, log_scale: float) -> None:
    phi = Coupling(size, 4, 16, log_scale=log_scale, generator=torch.Generator().manual_seed(0)).double()
    y = points(50, size)
    assert torch.equal(phi(y), y)
    stirred(phi)
    assert (phi(y) - y).abs().max() > 0.1
    assert (phi.inverse(phi(y)) - y).abs().max() < 1e-5


def test_a_clamped_block_stretches_by_no_more_than_it_may() -> None:
    phi = stirred(Coupling(2, 1, 16, log_scale=0.3, generator=torch.Generator().manual_seed(0)).double(), 5.0)
    z = points(200, 2).requires_grad_()
    stretched = torch.autograd.grad(phi(z)[:, 1].sum(), z)[0][:, 1]
    assert stretched.min() >= np.exp(-0.3) - 1e-9 and stretched.max() <= np.exp(0.3) + 1e-9


@pytest.mark.parametrize("size", [2, 6])
def test_the_exact_lift_gives_the_measured_state_back_and_zero_is_the_goal(size: int) -> None:
    made = model(size)
    y = points(50, size)
    assert (made.decode(made.lift(y)) - y).abs().max() < 1e-4
    assert made.decode(torch.zeros(1, 8, dtype=torch.float64)).abs().max() == 0.0


def test_the_linear_lift_is_the_authors() -> None:
    """x0 = C+ y0, the first output overwritten by y0; the second comes from a decoder that the lift does not invert."""
    made = model(lift="linear")
    y = points(3, 2)
    torch.testing.assert_close(made.lift(y), y @ torch.linalg.pinv(made.readout).T)
    latent, states = made.rollout(y)
    assert torch.equal(states[:, 0], y)
    assert (made.decode(latent)[:, 0] - y).abs().max() > 1e-2


def test_amplification_bounds_what_a_deviation_can_grow_to() -> None:
    made = model()
    torch.testing.assert_close(made.ren.inverse_metric() @ made.ren.metric(), torch.eye(8, dtype=torch.float64))
    root = torch.linalg.cholesky(made.ren.metric()).T
    out = torch.linalg.matrix_norm(made.readout @ torch.linalg.inv(root), ord=2)
    into = torch.linalg.matrix_norm(root @ right_inverse(made.readout), ord=2)
    bound = (0.5 * made.amplification()).exp()
    assert out * into <= bound <= 2 * out * into  # Frobenius norms of two rows: at most twice


def test_a_correction_moves_the_readout_and_leaves_the_null_space_alone() -> None:
    made = model()
    pseudo_inverse = right_inverse(made.readout)
    torch.testing.assert_close(pseudo_inverse, torch.linalg.pinv(made.readout))
    x = points(4, 8)
    moved = x + correction(points(4, 2), x @ made.readout.T, pseudo_inverse)
    torch.testing.assert_close(moved @ made.readout.T, points(4, 2))
    null = torch.eye(8, dtype=torch.float64) - pseudo_inverse @ made.readout
    torch.testing.assert_close(moved @ null.T, x @ null.T)


VARIANTS = [{}, {"lift": "linear"}, {"dynamics": "continuous", "c": 6.0}, {"blocks": 0}, {"dynamics": "unconstrained"}]


@pytest.mark.parametrize("overrides", VARIANTS)
def test_the_numpy_model_equals_the_torch_model(overrides: dict) -> None:
    made = model(extra=1, **overrides)
    numpy_model = NumpyModel(made)
    y = points(5, 2)
    with torch.no_grad():
        latent, states = made.rollout(y)
        extra = made.extra(latent[:, 3])
    ours_latent, ours = numpy_model.rollout(y.numpy())
    np.testing.assert_allclose(ours_latent, latent.numpy(), atol=1e-10)
    np.testing.assert_allclose(ours, states.numpy(), atol=1e-10)
    np.testing.assert_allclose(numpy_model.extra(ours_latent[:, 3]), extra.numpy(), atol=1e-10)
    energy = torch.einsum("tx,xy,ty->t", latent[0], made.ren.metric(), latent[0])
    np.testing.assert_allclose(numpy_model.energy(ours_latent[0]), energy.detach())


def test_paper_code_is_the_authors_setting() -> None:
    config = ContractiveConfig.preset("paper_code")
    assert (config.latent, config.neurons, config.c, config.blocks, config.block_width) == (64, 2, 1.5, 8, 8)
    assert (config.lift, config.log_scale, config.jitter_copies) == ("linear", 0.0, 0)


@pytest.mark.parametrize("values", [{"c": 0.9}, {"horizon": 2}, {"jitter_skip": 49}, {"lag": -1}, {"dynamics": "continuous", "c": -1.0}])
def test_settings_without_a_guarantee_are_refused(values: dict) -> None:
    with pytest.raises(ConfigError, match=f"ContractiveConfig.{[name for name in values if name != 'dynamics'][0]}"):
        ContractiveConfig(**values)
