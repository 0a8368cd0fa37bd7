from __future__ import annotations

import pytest
import torch

from robot_bridge.auxiliary.monitoring.regional_score import class_scores, gl_mcm, mcm, outlier_map, region_probabilities, regional_mcm


def cosines(batch: int = 3, places: int = 6, classes: int = 4, negatives: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(
        2 * torch.rand(*shape, generator=generator) - 1
        for shape in ((batch, classes), (batch, places, classes), (batch, places, negatives))
    )


def test_the_regional_score_is_that_of_the_paper():
    whole, local, negative = cosines()
    for row, score in enumerate(regional_mcm(whole, local, negative, k=7, temperature=0.5)):
        e = torch.exp(whole[row] / 0.5)
        values = []
        for place in range(6):
            total = torch.exp(local[row, place] / 0.5).sum() + torch.exp(negative[row, place] / 0.5).sum()
            values += [float(torch.exp(each / 0.5) / total) for each in local[row, place]]
        assert float(score) == pytest.approx(float(e.max() / e.sum()) + sum(sorted(values)[-7:]) / 7, rel=1e-5)


def test_classes_are_scored_as_in_the_paper():
    whole, local, _ = cosines()
    for row, scores in enumerate(class_scores(whole, local, k=2)):
        for label, score in enumerate(scores):
            best = sorted(torch.exp(local[row, :, label]).tolist())[-2:]
            assert float(score) == pytest.approx(float(torch.exp(whole[row, label])) * sum(best) / 2, rel=1e-5)


def test_higher_is_known_whatever_the_score():
    whole = torch.tensor([[0.9, -0.1, 0.0], [0.1, 0.1, 0.1]])
    local = torch.stack((torch.tensor([[0.8, 0.0, 0.0]] * 4), torch.zeros(4, 3)))
    negative = torch.stack((torch.zeros(4, 2), torch.full((4, 2), 0.7)))
    for known, unknown in (mcm(whole), gl_mcm(whole, local), regional_mcm(whole, local, negative, 3)):
        assert known > unknown
    certain, outlying = outlier_map(local, negative, 10.0)
    assert (certain < outlying).all() and (outlying <= 1).all() and (certain >= 0).all()


def test_one_frame_scores_as_in_a_batch():
    whole, local, negative = cosines()
    torch.testing.assert_close(regional_mcm(whole[:1], local[:1], negative[:1], 4), regional_mcm(whole, local, negative, 4)[:1])
    torch.testing.assert_close(gl_mcm(whole[:1], local[:1]), gl_mcm(whole, local)[:1])


def test_more_regions_than_there_are_count_as_all():
    whole, local, negative = cosines()
    torch.testing.assert_close(regional_mcm(whole, local, negative, 24), regional_mcm(whole, local, negative, 1000))
    torch.testing.assert_close(class_scores(whole, local, 6), class_scores(whole, local, 1000))


def test_probabilities_share_1_with_the_negative_prompts_at_any_scale():
    _, local, negative = cosines()
    both = region_probabilities(local, negative, 100.0).sum(-1) + region_probabilities(negative, local, 100.0).sum(-1)
    torch.testing.assert_close(both, torch.ones(3, 6))
