"""What contractive policies must show, asserted over the committed results of the long runs (`armstack reproduce contractive`). A missing
run fails. Figures are means over seeds; orders of two methods are asserted on them without a margin, as there are 30 shapes.

Hoped for, not found (docs/methods/contractive.md says why) and not asserted: that c 3 brings motions together sooner than c 1, that the
linear lift jumps farther than the exact one.
"""

import statistics
from functools import partial

import pytest

from tests.rl_core import committed_results

values, mean = (partial(read, "contractive") for read in (committed_results.values, committed_results.mean))
RADII = (0.05, 0.1, 0.2)
METHODS = ("contractive", "BC", "SNDS")

pytestmark = pytest.mark.slow


def shapes() -> list[str]:
    """The 30 shapes, by the groups of the method itself."""
    return [group.removeprefix("contractive, ") for group in committed_results.groups("contractive") if group.startswith("contractive, ")]


def test_all_thirty_shapes_are_there() -> None:
    assert len(shapes()) == 30


def test_no_bound_is_violated_by_a_sampled_start_and_the_bound_says_something() -> None:
    for radius in RADII:
        assert all(max(values(f"contractive, {shape}", f"violations_{radius}")) == 0 for shape in shapes())
    assert statistics.median(mean(f"contractive, {shape}", "bound_ratio_0.2") for shape in shapes()) <= 20


def test_v_falls_as_certified_and_k_stays_below_its_bound() -> None:
    for shape in shapes():
        group = f"contractive, {shape}"
        assert max(values(group, "largest_v_0.2")) <= max(values(group, "certified_v")) + 1e-6
        for found, bound in zip(values(group, "k_empirical"), values(group, "k_theory"), strict=True):
            assert found <= bound


def test_most_shapes_are_fitted() -> None:
    assert sum(mean(f"contractive, {shape}", "mse") <= 2e-3 for shape in shapes()) >= 26


def test_starts_beside_the_demonstrated_one_come_back() -> None:
    for shape in shapes():
        group = f"contractive, {shape}"
        assert mean(group, "oos_mse_0.2") <= 2e-2, shape
        assert max(values(group, "diverging_share_0.2")) == 0, shape
    assert sum(mean(f"contractive, {shape}", "contracted_20_0.2") < 0.5 for shape in shapes()) >= 26
    assert statistics.median(mean(f"contractive, {shape}", "oos_end_0.2") for shape in shapes()) < 0.02


def test_out_of_sample_it_is_closer_than_cloning_on_28_of_30_shapes_and_than_stable_baselines_on_the_mean() -> None:
    for radius in RADII:
        dtw = {method: {shape: mean(f"{method}, {shape}", f"oos_dtw_{radius}") for shape in shapes()} for method in METHODS}
        assert sum(dtw["contractive"][shape] < dtw["BC"][shape] for shape in shapes()) >= 28
        assert statistics.fmean(dtw["contractive"].values()) < statistics.fmean(dtw["SNDS"].values())


@pytest.mark.parametrize("radius", RADII)
def test_on_sine_it_is_closer_than_euclideanizing_flows(radius: float) -> None:
    assert mean("contractive, Sine", f"oos_dtw_{radius}") < mean("SDS-EF, Sine", f"oos_dtw_{radius}")


@pytest.mark.parametrize("shape", ["Sine", "GShape"])
def test_ablations_point_where_they_should(shape: str) -> None:
    def of(setting: str, figure: str) -> float:
        return mean(f"{setting}, {shape}", figure)

    # A faster contraction leaves less room for the shape.
    assert of("c 3.0", "mse") > 10 * of("c 1.1", "mse")
    # The bijection fits better, and so does a larger latent state than 2 or 8.
    assert of("no bijection", "mse") > of("as above", "mse")
    assert min(of("n_x 2", "mse"), of("n_x 8", "mse")) > of("as above", "mse")
    # Out of sample the exact lift is better than the linear one; free and without jitter it is not.
    assert of("linear lift", "oos_mse_0.2") > of("as above", "oos_mse_0.2")
    assert of("no clamp, no jitter", "oos_mse_0.2") > of("as above", "oos_mse_0.2")
    # Without the parameterisation V rises.
    assert of("unconstrained network", "certified_v") > 1
