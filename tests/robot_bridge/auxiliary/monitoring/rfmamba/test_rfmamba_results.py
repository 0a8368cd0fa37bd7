"""What RFMamba must show, asserted over the committed results of `armstack reproduce rfmamba`. A missing run fails."""

import statistics
from functools import partial

import pytest

from tests.rl_core import committed_results

values, mean = (partial(read, "rfmamba") for read in (committed_results.values, committed_results.mean))

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("theirs", ["transformer", "neighbours on images", "neighbours on range profiles", "ridge on images"])
def test_joints_are_nearer_than_those_of_a_baseline(theirs: str) -> None:
    gains = [b - a for a, b in zip(values("RFMamba", "mpjpe_cm"), values(theirs, "mpjpe_cm"), strict=True)]
    assert statistics.fmean(gains) > statistics.stdev(gains) / len(gains) ** 0.5 and min(gains) > 0


def test_it_tells_pose_and_not_only_place() -> None:
    """Nearer, relative to the hips, than the mean body is; not asserted: than that body at the true place."""
    assert max(values("RFMamba", "pose_cm")) < min(values("true root, mean body", "mpjpe_cm"))


def test_time_grows_no_faster_than_the_window() -> None:
    assert max(values("latency", "rfmamba_exponent")) < 1.2 < min(values("latency", "transformer_exponent"))
    assert max(values("latency", "rfmamba_ms_2048")) < min(values("latency", "transformer_ms_2048"))


def test_a_cnn_on_images_does_better() -> None:
    """Not the paper's claim, but what is measured here, with minutes of training."""
    gains = [a - b for a, b in zip(values("RFMamba", "mpjpe_cm"), values("CNN on images", "mpjpe_cm"), strict=True)]
    assert min(gains) > 2 and min(values("CNN on images", "accuracy")) > 65


@pytest.mark.parametrize("network", ["without W", "without the branch in space and time", "without the frequency branch", "raster scan"])
def test_no_part_is_in_the_way(network: str) -> None:
    """Spec: what is left without it is no better by more than noise, here the standard error over the seeds."""
    ours, without = values("RFMamba", "mpjpe_cm"), values(network, "mpjpe_cm")
    noise = statistics.stdev(ours) / len(ours) ** 0.5
    assert statistics.fmean(a - b for a, b in zip(without, ours[: len(without)], strict=True)) > -noise


def test_the_frequency_branch_is_worth_most() -> None:
    ours, without = values("RFMamba", "mpjpe_cm"), values("without the frequency branch", "mpjpe_cm")
    assert min(a - b for a, b in zip(without, ours[: len(without)], strict=True)) > 1.5
