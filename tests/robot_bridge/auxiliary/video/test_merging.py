"""Bipartite soft matching and merging."""

from __future__ import annotations

import pytest
import torch

from robot_bridge.auxiliary.video.merging import Matching, match, merge, removable


@pytest.mark.parametrize("cls", [1, 2])
def test_only_patches_of_the_even_places_go_and_only_into_odd_ones(cls: int) -> None:
    matching = match(torch.randn(3, 11, 5), cls, 4)
    for places, parity in ((matching.source, 0), (matching.target, 1)):
        assert (places % 2 == parity).all() and places.min() >= cls
    # the first patch stands at place `cls`: it may go with two CLS tokens in front of it and never with one
    first = torch.zeros(1, 11, 5)
    first[0, :, 0], first[0, cls : cls + 2] = 1.0, torch.tensor([0.0, 1.0, 0, 0, 0])
    gone = match(first, cls, 1).source.tolist()
    assert (gone == [[cls]]) if cls % 2 == 0 else (gone == [[cls + 1]])


def test_the_most_similar_pairs_merge_and_the_rest_keeps_its_order() -> None:
    tokens = torch.eye(9)[None].clone()
    tokens[0, 4], tokens[0, 7] = (
        torch.tensor([0, 0, 0, 0, 1.0, 0, 0, 0, 0]),
        torch.tensor([0, 0, 0, 0, 5.0, 0, 0, 0, 0]),
    )  # directions agree
    matching = match(tokens, 1, 1)
    assert (matching.source.tolist(), matching.target.tolist()) == ([[4]], [[7]])
    assert matching.kept.tolist() == [[0, 1, 2, 3, 5, 6, 7, 8]]


def test_a_merged_token_is_the_mean_weighted_by_sizes() -> None:
    x = torch.tensor([[[9.0], [1.0], [3.0], [5.0], [7.0]]])
    size = torch.tensor([[[1.0], [2.0], [1.0], [1.0], [4.0]]])
    both_into_one = Matching(source=torch.tensor([[2, 4]]), target=torch.tensor([[1, 1]]), kept=torch.tensor([[0, 1, 3]]))
    merged, sizes = merge(x, size, both_into_one)
    assert sizes.flatten().tolist() == [1, 7, 1]
    assert merged.flatten().tolist() == pytest.approx([9, (2 * 1 + 1 * 3 + 4 * 7) / 7, 5])


def test_sources_are_gathered_before_targets_are_overwritten() -> None:
    """A place that is both in a chain: what is added to it must not travel on."""
    x, size = torch.tensor([[[1.0], [2.0], [4.0]]]), torch.ones(1, 3, 1)
    chain = Matching(source=torch.tensor([[0, 1]]), target=torch.tensor([[1, 2]]), kept=torch.tensor([[2]]))
    merged, sizes = merge(x, size, chain)
    assert sizes.item() == 2 and merged.item() == (2 + 4) / 2


def test_removal_is_capped_at_half_of_the_patches() -> None:
    assert [removable(9, 1, wanted) for wanted in (0, 3, 4, 100)] == [0, 3, 4, 4]
    assert removable(2, 2, 5) == removable(3, 2, 5) == 0
    for cls in (1, 2, 3):
        for tokens in range(cls, cls + 9):
            removed = removable(tokens, cls, 100)
            assert match(torch.randn(2, tokens, 4), cls, removed).source.shape == (2, removed) if removed else True


def test_gradients_reach_merged_tokens() -> None:
    x = torch.randn(2, 9, 4, requires_grad=True)
    merged, _ = merge(x, torch.ones(2, 9, 1), match(x.detach(), 1, 4))
    merged.sum().backward()
    assert x.grad is not None and (x.grad != 0).all()
