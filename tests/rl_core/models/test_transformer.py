"""The transformer and its optimiser."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rl_core.models.transformer import SelfAttention, Transformer
from rl_core.models.transformer_optimizer import WarmUpAdamW


def test_attention_is_that_of_torchs_own_module() -> None:
    torch.manual_seed(0)
    ours, theirs = SelfAttention(8, 2, 0.0), nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.qkv.weight)
        theirs.in_proj_bias.copy_(ours.qkv.bias)
        theirs.out_proj.weight.copy_(ours.out.weight)
        theirs.out_proj.bias.copy_(ours.out.bias)
    x = torch.randn(3, 5, 8)
    torch.testing.assert_close(ours(x), theirs(x, x, x, need_weights=False)[0])


def test_every_position_sees_every_other_and_no_other_row() -> None:
    """No causal mask: the last token changes the first position's features, and the first token the last's."""
    torch.manual_seed(0)
    net = Transformer(5, 16, layers=2, heads=4, dropout=0.1).eval()
    tokens = torch.randn(2, 5, 16, requires_grad=True)
    for position in range(5):
        (gradient,) = torch.autograd.grad(net(tokens)[0, position, 0], tokens)
        assert (gradient[0].abs().sum(-1) > 0).all()
        assert not gradient[1].any()


def test_dropout_is_for_training_only() -> None:
    torch.manual_seed(0)
    net, tokens = Transformer(5, 16, layers=1, heads=4, dropout=0.5), torch.randn(2, 5, 16)
    assert not torch.equal(net.train()(tokens), net(tokens))
    assert torch.equal(net.eval()(tokens), net(tokens))


def test_a_width_that_the_heads_do_not_share_is_refused() -> None:
    with pytest.raises(ValueError, match="width 10 for 4 heads"):
        Transformer(5, 10, layers=1, heads=4)


def test_the_rate_rises_to_its_constant_and_weights_decay() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer = WarmUpAdamW([weight], lr=0.1, warm_up=4, weight_decay=0.5, max_norm=1.0)
    steps, norms = [], []
    for _ in range(6):
        before = weight.item()
        norms.append(optimizer.minimize((3 * weight).sum()).item())
        steps.append(before - weight.item())
        # AdamW by hand: a constant gradient makes the moments' ratio 1, so a step is rate * (1 + decay * weight)
        rate = 0.1 * min(1.0, len(steps) / 4)
        assert steps[-1] == pytest.approx(rate * (1 + 0.5 * before), rel=1e-4)
    assert norms == pytest.approx([3.0] * 6)  # before clipping


def test_an_optimiser_goes_on_to_the_bit() -> None:
    def run(break_at: int) -> torch.Tensor:
        weight = nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = WarmUpAdamW([weight], lr=0.05, warm_up=3, weight_decay=0.01, max_norm=0.0)
        for step in range(6):
            if step == break_at:
                state = optimizer.state_dict()
                optimizer = WarmUpAdamW([weight], lr=0.05, warm_up=3, weight_decay=0.01, max_norm=0.0)
                optimizer.load_state_dict(state)
            optimizer.minimize((weight**2).sum() * (step + 1))
        return weight.detach()

    assert torch.equal(run(-1), run(2))
