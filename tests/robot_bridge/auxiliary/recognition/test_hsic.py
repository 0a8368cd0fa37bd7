from __future__ import annotations

import pytest
import torch

from robot_bridge.auxiliary.recognition.hsic import hsic


def sets(n: int = 8, d: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, d, generator=generator, dtype=torch.float64), torch.randn(n, d, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("form", ["paper", "cka"])
def test_a_constant_set_is_independent_of_any(form):
    learned, _ = sets()
    constant = torch.ones(8, 16, dtype=torch.float64)
    assert float(hsic(learned, constant, form)) == pytest.approx(0, abs=1e-12)


def test_it_is_the_trace_of_the_paper():
    learned, frozen = sets()
    centre = torch.eye(8, dtype=torch.float64) - 1 / 8
    kernels = []
    for each in (learned, frozen):
        rows = each / each.norm(dim=1, keepdim=True)
        rows = rows / rows.norm()
        kernels.append(rows @ rows.T)
    assert float(hsic(learned, frozen)) == pytest.approx(float(torch.trace(centre @ kernels[0] @ centre @ kernels[1])), rel=1e-12)


@pytest.mark.parametrize("form", ["paper", "cka"])
def test_rotating_the_learned_set_changes_nothing(form):
    learned, frozen = sets()
    rotation = torch.linalg.qr(torch.randn(16, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    assert float(hsic(learned @ rotation, frozen, form)) == pytest.approx(float(hsic(learned, frozen, form)), rel=1e-10)


@pytest.mark.parametrize("form", ["paper", "cka"])
def test_its_gradient_is_right(form):
    learned, frozen = sets(4, 5)
    assert torch.autograd.gradcheck(lambda each: hsic(each, frozen, form), learned.requires_grad_(True))


def test_cka_is_1_of_equal_sets_and_at_most_that():
    learned, frozen = sets()
    assert float(hsic(learned, learned, "cka")) == pytest.approx(1)
    assert 0 < float(hsic(learned, frozen, "cka")) < 1


def test_the_papers_form_is_tiny():
    """A shared mean makes it smaller still, and more classes too: w2 = 6 adds less than 0.01 to the loss."""
    generator = torch.Generator().manual_seed(0)
    sizes = []
    for n in (10, 100):
        shared = 3 * torch.randn(1, 512, generator=generator)
        sizes.append(float(hsic(shared + torch.randn(n, 512, generator=generator), shared + torch.randn(n, 512, generator=generator))))
    assert 6 * sizes[0] < 0.01 and sizes[1] < sizes[0]
