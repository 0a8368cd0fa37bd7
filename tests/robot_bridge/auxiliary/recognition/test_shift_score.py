from __future__ import annotations

import pytest
import torch

from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.shift_score import sensitivity, total_variation


def draws(count: int, shift: float, seed: int) -> torch.Tensor:
    return shift + torch.randn(count, 8, generator=torch.Generator().manual_seed(seed))


def test_equal_data_have_no_distance():
    data = draws(200, 0, 0)
    assert total_variation(data, data) == 0 and total_variation(data, data.flip(0)) == 0


def test_disjoint_data_are_as_far_as_can_be():
    assert total_variation(draws(200, 0, 0), draws(200, 50, 1)) == pytest.approx(1)


def test_histograms_by_hand():
    known, shifted = torch.tensor([[0.0], [0.0], [1.0], [1.0]]), torch.tensor([[0.0], [1.0], [1.0], [1.0]])
    assert total_variation(known, shifted, bins=2) == pytest.approx(0.25)


@pytest.mark.parametrize("score", [total_variation, sensitivity])
def test_scores_grow_with_the_shift(score):
    known = draws(300, 0, 0)
    values = [score(known, draws(300, shift, 1)) for shift in (0.0, 0.5, 1.0, 2.0)]
    assert values == sorted(values) and values[3] > values[0] + 0.3


def test_the_same_distribution_scores_about_0():
    assert abs(sensitivity(draws(400, 0, 0), draws(400, 0, 1))) < 0.02


def test_a_constant_feature_has_no_histogram_to_differ():
    known = torch.cat((draws(50, 0, 0), torch.ones(50, 1)), dim=1)
    assert total_variation(known, known) == 0


def test_features_that_do_not_fit_are_refused():
    with pytest.raises(RecognitionError, match="equally many features"):
        total_variation(draws(5, 0, 0), torch.zeros(5, 3))
    with pytest.raises(RecognitionError, match="2 or more"):
        sensitivity(draws(1, 0, 0), draws(5, 0, 0))
