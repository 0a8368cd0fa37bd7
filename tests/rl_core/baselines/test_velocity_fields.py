"""The baselines of contractive policies: what each guarantees, and that each learns a motion."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rl_core.baselines.sds_ef import GradientFlow, SDSEFConfig
from rl_core.baselines.snds import SNDSConfig, StableField
from rl_core.baselines.velocity_bc import VelocityBCConfig
from rl_core.baselines.velocity_field import euler_rollouts
from rl_core.methods import get_method, load_policy, make_learner, make_source
from tests.rl_core.contractive.motions import plane_dataset

GENERATOR_SEED = 4


def states(rows: int = 64) -> torch.Tensor:
    return torch.randn(rows, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_the_configurations_are_those_of_the_contractive_policies_code() -> None:
    assert VelocityBCConfig().hidden == (512, 256, 128, 64)
    assert (SNDSConfig().hidden, SNDSConfig().convex_hidden, SNDSConfig().epsilon) == ((256, 256, 256), (64, 64), 0.01)
    assert (SDSEFConfig().blocks, SDSEFConfig().features, SDSEFConfig().length) == (10, 200, 0.45)
    assert all((c.points, c.lr, c.max_grad_norm) == (128, 1e-3, 0.5) for c in (VelocityBCConfig(), SNDSConfig(), SDSEFConfig()))


def test_snds_never_raises_its_lyapunov_function() -> None:
    field = StableField(SNDSConfig(hidden=(32,), convex_hidden=(16, 16)), 2, torch.Generator().manual_seed(GENERATOR_SEED)).double()
    y = states().requires_grad_()
    value = field.lyapunov(y)
    (slope,) = torch.autograd.grad(value.sum(), y)
    velocity, nominal = field(y), field.nominal(y)
    assert ((slope * velocity).sum(-1) <= 1e-9).all() and (value > 0).all()
    falling = (slope * nominal).sum(-1) <= 0
    assert 0 < falling.sum() < len(y)
    torch.testing.assert_close(velocity[falling], nominal[falling])  # projected only where V would rise
    assert field.lyapunov(torch.zeros(1, 2, dtype=torch.float64)).item() == 0.0
    # convex along a line
    line = field.lyapunov(torch.linspace(-2, 2, 41, dtype=torch.float64).unsqueeze(1) * y[:1].detach())
    assert (line[2:] - 2 * line[1:-1] + line[:-2] >= -1e-9).all()


def test_sds_ef_flows_straight_to_the_goal_in_the_bent_space() -> None:
    """Its velocity, mapped by the Jacobian, points from psi(y) to psi(0)."""
    field = GradientFlow(SDSEFConfig(blocks=4, features=32, speed_hidden=(8,)), 2, torch.Generator().manual_seed(GENERATOR_SEED)).double()
    field.bijection.weight.data += 0.1 * torch.randn(field.bijection.weight.shape, generator=torch.Generator().manual_seed(0))
    y = states(8)
    velocity = field(y).detach()
    z, goal = field.bijection(y), field.bijection(torch.zeros(1, 2, dtype=torch.float64))
    assert (field.bijection.inverse(z) - y).abs().max() < 1e-9 and (z - y).abs().max() > 0.05
    for row in range(8):
        jacobian = torch.autograd.functional.jacobian(lambda point: field.bijection(point.unsqueeze(0))[0], y[row])
        pushed = jacobian @ velocity[row]
        towards = goal[0] - z[row]
        cosine = float((pushed @ towards / pushed.norm() / towards.norm()).detach())
        assert math.isclose(cosine, 1.0, abs_tol=1e-9)


@pytest.mark.parametrize("method", ["velocity_bc", "snds", "sds_ef"])
def test_each_learns_a_motion(method: str) -> None:
    dataset = plane_dataset(episodes=1)
    small = {
        "velocity_bc": {"hidden": (64, 64)},
        "snds": {"hidden": (64,), "convex_hidden": (16,)},
        "sds_ef": {"blocks": 3, "features": 50},
    }
    config = get_method(method).config_class.preset("cpu").override(horizon=25, points=64, lr=5e-3, lr_decay_steps=80, **small[method])
    learner, source = make_learner(method, config, dataset, seed=0), make_source(method, config, dataset, seed=0)
    for _ in range(80):
        learner.update(source.next_batch())
    policy = load_policy(learner.bundle())
    demo = learner.reader.read_dataset(dataset).states.double().numpy()  # type: ignore[attr-defined]
    found = euler_rollouts(policy, demo[:, 0])  # type: ignore[arg-type]
    assert np.linalg.norm(found - demo, axis=-1).mean() < 0.15
