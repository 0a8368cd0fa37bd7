"""Bounds that no sampled start violates, and a monitor that holds the policy to its certificate."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_core.contractive import CertificateMonitor
from rl_core.contractive.bounds import bounds_by_distance, bounds_by_metric, certify, discount
from rl_core.contractive.certificate import Certificate
from rl_core.contractive.evaluation import drawn_starts
from rl_core.contractive.metric import tightened
from rl_core.contractive.numpy_model import NumpyModel
from tests.rl_core.contractive.motions import plane_dataset, trained

CASES = [{}, {"lift": "linear"}, {"dynamics": "continuous", "c": 6.0, "latent": 4, "horizon": 12}]


@pytest.fixture(scope="module", params=CASES, ids=["exact", "linear", "continuous"])
def case(request: pytest.FixtureRequest) -> tuple[NumpyModel, Certificate, np.ndarray]:
    """Model, certificate and demonstrations of a short training."""
    learner = trained(plane_dataset(), 6 if "dynamics" in request.param else 40, **request.param)
    states = learner.demonstrations.states
    certificate = certify(learner.model, states, margin=0.2)
    return NumpyModel(learner.model.double(), certificate.metric), certificate, states.double().numpy()


def test_no_sampled_start_violates_a_bound(case: tuple[NumpyModel, Certificate, np.ndarray]) -> None:
    model, certificate, demos = case
    ratios = []
    for radius in (0.05, 0.1, 0.2):
        starts, _ = drawn_starts(demos[:, 0], radius, seed=5)
        latents, motions = model.rollout(starts)
        error = np.linalg.norm(motions[:, None] - demos[None], axis=-1).mean(axis=-1)
        by_metric, by_distance = bounds_by_metric(certificate, latents[:, 0], starts), bounds_by_distance(certificate, starts)
        assert (error <= by_metric).all() and (error <= by_distance).all()
        assert error.min(axis=1).max() <= certificate.bound_worst
        ratios.append(np.median((by_metric / error).min(axis=1)))
    assert max(ratios) < 20  # and it is not vacuous
    assert 1.0 <= certificate.k_empirical <= certificate.k_theory


def test_the_gain_turns_v_into_distances(case: tuple[NumpyModel, Certificate, np.ndarray]) -> None:
    model, certificate, demos = case
    starts, of = drawn_starts(demos[:, 0], 0.2, seed=6)
    latents, motions = model.rollout(starts)
    nominal_latents, nominal = model.rollout(demos[:, 0])
    apart = np.linalg.norm(motions - nominal[of], axis=-1)[:, 1:]
    assert (apart <= certificate.gain * np.sqrt(model.energy(latents - nominal_latents[of]))[:, 1:] + 1e-12).all()


def test_the_metric_found_says_more_than_the_parameters_own() -> None:
    learner = trained(plane_dataset(), 40)
    network = learner.model.double()
    deviations = torch.randn(9, network.config.latent, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    stretch = torch.linspace(1.0, 0.3, 50, dtype=torch.float64)

    def bound(metric: torch.Tensor, factor: float) -> float:
        root = torch.linalg.cholesky(metric).T
        gain = torch.linalg.matrix_norm(torch.linalg.solve_triangular(root, network.readout, upper=True, left=False), ord=2)
        return float(gain * torch.linalg.vector_norm(deviations @ root.T, dim=1).mean() * (stretch * factor ** torch.arange(50)).sum())

    found, factor = tightened(network, deviations, stretch)
    assert bound(found, factor) < 0.9 * bound(network.ren.metric(), network.ren.certified())
    # and its factor is one: V of any two states falls by it
    x = torch.randn(2, 200, network.config.latent, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    apart, later = x[0] - x[1], network.ren.rollout(x[0], 1)[:, 1] - network.ren.rollout(x[1], 1)[:, 1]
    energy = [torch.einsum("ni,ij,nj->n", d, found, d) for d in (apart, later)]
    assert float((energy[1] / energy[0]).max()) <= factor**2 + 1e-9


def test_discount_is_the_mean_of_the_powers() -> None:
    assert discount(0.5, np.ones(3)) == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert discount(0.5, np.array([1.0, 0.2, 1.0])) == pytest.approx((1 + 0.1 + 0.25) / 3)
    assert discount(1.0, np.ones(7)) == 1.0


FACTOR = 0.9


def certificate() -> Certificate:
    one, two = np.eye(1), np.zeros((1, 2))
    return Certificate(
        metric=one, promised=0.95, factor=FACTOR, gain=1.0, stretch=np.ones(50), k_theory=2.0, k_empirical=1.5, errors=np.zeros(1),
        starts=two, latents=np.zeros((1, 1)), horizon=50, low=np.array([-1.0, -1.0]), high=np.array([1.0, 1.0]), bound_worst=1.0,
        bound_expected=1.0,
    )  # fmt: skip


def watch(values: list[float], *, state: tuple[float, float] = (0.0, 0.0), patience: int = 5):
    monitor = CertificateMonitor(certificate(), patience=patience)
    return [monitor.update([value, step, *state]) for step, value in enumerate(values)], monitor


def promised(steps: int, start: float = 1.0) -> list[float]:
    return [start * FACTOR ** (2 * step) for step in range(steps)]


def test_decay_as_certified_is_well() -> None:
    verdicts, _ = watch(promised(40))
    assert {verdict.status for verdict in verdicts} == {"ok"}
    assert verdicts[10].bound == pytest.approx(FACTOR**20) and verdicts[-1].disturbances == 0


def test_a_jump_is_a_disturbance_and_the_bound_begins_anew_there() -> None:
    verdicts, _ = watch([*promised(10), *promised(20, start=0.8)])
    assert [verdict.status for verdict in verdicts[9:12]] == ["ok", "disturbed", "ok"]
    assert verdicts[10].bound == 0.8 and verdicts[11].bound == pytest.approx(0.8 * FACTOR**2)
    assert verdicts[-1].status == "ok" and verdicts[-1].disturbances == 1


def test_a_blocked_arm_is_held_after_the_periods_allowed() -> None:
    verdicts, monitor = watch([*promised(6), *[promised(6)[-1]] * 20])
    statuses = [verdict.status for verdict in verdicts]
    first = statuses.index("hold")
    assert set(statuses[:first]) == {"ok"} and verdicts[first].slow_steps == 5
    assert "above its bound" in verdicts[first].reason
    assert set(statuses[first:]) == {"hold"}  # and it stays, until a new motion begins
    monitor.reset()
    assert monitor.update([1.0, 0.0, 0.0, 0.0]).status == "ok"


def test_an_arm_that_is_dragged_away_is_held_though_each_jump_begins_anew() -> None:
    verdicts, _ = watch([0.1 * 1.3**step for step in range(10)])
    assert [verdict.status for verdict in verdicts] == ["ok", *["disturbed"] * 4, *["hold"] * 5]


def test_outside_of_the_certified_region_it_is_held_at_once() -> None:
    verdicts, _ = watch(promised(2), state=(0.0, 1.5))
    assert verdicts[0].status == "hold" and "state 1 is 1.5, outside of the certified region -1..1" in verdicts[0].reason
    assert watch(promised(2), state=(float("nan"), 0.0))[0][0].status == "hold"


def test_near_the_goal_v_is_no_longer_judged() -> None:
    verdicts, _ = watch([*promised(40), *[3e-4, 1e-4] * 20])
    assert {verdict.status for verdict in verdicts} == {"ok"}


def test_values_that_are_no_numbers_are_not_well() -> None:
    verdicts, _ = watch([1.0, *[float("nan")] * 10])
    assert verdicts[-1].status == "hold"
