from __future__ import annotations

import math

import pytest
import torch

from robot_bridge.auxiliary.monitoring.local_prompt_losses import diversity_loss, negative_loss, positive_loss


def similarities(batch: int = 3, places: int = 7, classes: int = 4, negatives: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    local = 3 * torch.randn(batch, places, classes, generator=generator, dtype=torch.float64)
    negative = 3 * torch.randn(batch, places, negatives, generator=generator, dtype=torch.float64)
    return local, negative, torch.tensor([0, 3, 1])[:batch]


def top(values: torch.Tensor, k: int) -> list[int]:
    return sorted(range(len(values)), key=lambda place: -float(values[place]))[:k]


def test_the_positive_loss_is_that_of_the_paper():
    local, negative, labels = similarities()
    expected = []
    for own, none, label in zip(local, negative, labels, strict=True):
        share = [sum(math.exp(own[place, c]) for place in top(own[:, c], 3)) for c in range(4)]
        rest = sum(sum(math.exp(none[place, j]) for place in top(none[:, j], 3)) for j in range(5))
        expected.append(-math.log(share[label] / (sum(share) + rest)))
    assert float(positive_loss(local, negative, labels, 3)) == pytest.approx(sum(expected) / 3)


def test_the_negative_loss_is_that_of_the_paper():
    """Its regions are those of the negative crop that look most like the label."""
    local, negative, labels = similarities()
    expected = []
    for own, none, label in zip(local, negative, labels, strict=True):
        found = sum(math.exp(none[place, j]) for place in top(own[:, label], 3) for j in range(5))
        classes = sum(math.exp(own[place, c]) for c in range(4) for place in top(own[:, c], 3))
        expected.append(-math.log(found / (found + classes)))
    assert float(negative_loss(local, negative, labels, 3)) == pytest.approx(sum(expected) / 3)


@pytest.mark.parametrize("loss", [positive_loss, negative_loss])
def test_one_sample_and_large_logits_do_no_harm(loss):
    local, negative, labels = similarities()
    one = loss(local[:1], negative[:1], labels[:1], 3)
    assert one.shape == () and torch.isfinite(one)
    assert torch.isfinite(loss((1000 * local).float(), (1000 * negative).float(), labels, 3))
    torch.testing.assert_close(loss(local, negative, labels, 7), loss(local, negative, labels, 99))


def test_diversity_counts_the_diagonal_as_a_constant():
    assert float(diversity_loss(torch.eye(5))) == pytest.approx(1 / 4)
    assert float(diversity_loss(torch.ones(5, 3))) == pytest.approx(5 / 4)
    assert float(diversity_loss(7 * torch.eye(5))) == pytest.approx(1 / 4)
