from __future__ import annotations

import torch

from robot_bridge.auxiliary.recognition.confusion import HIGHEST, LOWEST, confusion_matrix, lowered_true_logit, spectral_weights


def test_columns_are_true_classes_and_the_diagonal_is_0():
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 2])
    predicted = torch.tensor([0, 1, 1, 2, 1, 0, 2])
    expected = torch.tensor([[0, 0.5, 0], [0.5, 0, 0], [0.25, 0, 0]])
    assert torch.equal(confusion_matrix(predicted, labels, 3), expected)
    assert torch.equal(confusion_matrix(predicted, labels, 5)[:, 3:], torch.zeros(5, 2))


def test_balanced_counts_and_rates_have_the_same_direction():
    """The authors count; on balanced data that is the same."""
    rates = torch.rand(5, 5, generator=torch.Generator().manual_seed(0))
    rates.fill_diagonal_(0)
    torch.testing.assert_close(spectral_weights(rates), spectral_weights(400 * rates), rtol=1e-4, atol=1e-4)


def test_weights_are_the_gradient_of_the_spectral_norm():
    matrix = torch.rand(6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    matrix.fill_diagonal_(0)
    matrix.requires_grad_(True)
    (gradient,) = torch.autograd.grad(torch.linalg.matrix_norm(matrix, 2), matrix)
    weights = spectral_weights(matrix.detach())
    assert weights is not None and float(weights.min()) == LOWEST and float(weights.max()) == HIGHEST
    spread = gradient.max() - gradient.min()
    torch.testing.assert_close(weights, LOWEST + (gradient - gradient.min()) / spread * (HIGHEST - LOWEST))


def test_the_worst_confusion_weighs_most():
    matrix = torch.full((4, 4), 0.05)
    matrix[2, 1] = 0.6
    matrix.fill_diagonal_(0)
    weights = spectral_weights(matrix)
    assert weights is not None and int(weights.argmax()) == 2 * 4 + 1


def test_without_confusion_there_is_no_direction():
    assert spectral_weights(torch.zeros(4, 4)) is None


def test_the_true_logit_is_lowered_even_where_it_is_negative():
    """The authors' z - 0.1 z raises a negative one."""
    logits = torch.tensor([[2.0, 1.0], [-2.0, -1.0]])
    lowered = lowered_true_logit(logits, torch.tensor([0, 0]), 0.1)
    torch.testing.assert_close(lowered, torch.tensor([[1.8, 1.0], [-2.2, -1.0]]))
    assert torch.equal(logits, torch.tensor([[2.0, 1.0], [-2.0, -1.0]]))
