"""The scan in chunks against the recurrence as it is written, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from robot_bridge.auxiliary.monitoring.rfmamba import scan
from robot_bridge.auxiliary.monitoring.rfmamba.scan import linear_recurrence_, selective_scan, sequential_scan


def inputs(
    length: int, *, batch: int = 2, width: int = 3, states: int = 4, largest: float = 2.0, dtype: torch.dtype = torch.float32
) -> list[Tensor]:
    generator = torch.Generator().manual_seed(length)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    delta = largest * torch.rand(batch, length, width, generator=generator, dtype=torch.float64).to(dtype)
    a = -torch.arange(1, states + 1).to(dtype).repeat(width, 1)
    found = [normal(batch, length, width), delta, a, normal(batch, length, states), normal(batch, length, states)]
    return [tensor.requires_grad_() for tensor in found]


def dense(x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """y_t = sum_{s <= t} C_t exp(A sum_{s < r <= t} Delta_r) Delta_s B_s x_s, every pair written out."""
    until = delta.cumsum(dim=1)
    lower = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    between = (until[:, :, None] - until[:, None]).masked_fill(~lower[..., None], 0.0)
    weight = torch.exp(between[..., None] * a) * lower[..., None, None]
    return torch.einsum("btn,btsdn,bsn,bsd->btd", c, weight, b, delta * x)


@pytest.mark.parametrize("chunk", [0, 1, 5, 1000])
@pytest.mark.parametrize("length", [1, 2, 7, 64, 130])
def test_values_and_gradients_are_those_of_the_recurrence(length: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_BLOCK", 24 * 20)  # several blocks, whose states are worked out twice
    given = inputs(length)
    expected, found = sequential_scan(*given), selective_scan(*given, chunk=chunk)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    for ours, theirs in zip(torch.autograd.grad(found, given, upstream), torch.autograd.grad(expected, given, upstream), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5 * max(1.0, float(theirs.abs().max())), rtol=1e-5)


def test_values_are_those_of_the_sum_over_all_pairs() -> None:
    given = inputs(40, dtype=torch.float64)
    torch.testing.assert_close(selective_scan(*given), dense(*given), atol=1e-12, rtol=1e-10)


def test_the_gradient_is_right_by_finite_differences() -> None:
    assert torch.autograd.gradcheck(
        lambda *given: selective_scan(*given, chunk=3), inputs(8, batch=1, width=2, states=2, dtype=torch.float64)
    )


@pytest.mark.parametrize("largest", [1e-4, 60.0, 1e4])
def test_long_sequences_and_large_steps_stay_finite(largest: float) -> None:
    """Products of decays underflow within a few steps of Delta = 60; a form that divides by them gives NaN."""
    given = inputs(3000, batch=1, largest=largest)
    found = selective_scan(*given)
    torch.testing.assert_close(found, sequential_scan(*given), atol=1e-5 * float(found.detach().abs().max()), rtol=1e-4)
    for gradient in torch.autograd.grad(found.sum(), given):
        assert gradient.isfinite().all()


def test_the_state_of_half_precision_inputs_is_float32() -> None:
    given = [tensor.detach() for tensor in inputs(500, largest=0.02)]
    low = [tensor.bfloat16() for tensor in given]
    found = selective_scan(*low)
    exact = sequential_scan(*(tensor.float() for tensor in low))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), exact, atol=0.02 * float(exact.abs().max()), rtol=0.01)


def test_the_recurrence_in_chunks_forgets_nothing_at_their_seams() -> None:
    decay = torch.full((100, 1), 0.99, dtype=torch.float64)
    drive = torch.zeros(100, 1, dtype=torch.float64)
    drive[0] = 1.0
    found = linear_recurrence_(decay, drive, chunk=7)
    torch.testing.assert_close(found[:, 0], 0.99 ** torch.arange(100, dtype=torch.float64))


class _Work(TorchDispatchMode):
    """Counts calls and the numbers they write."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.numbers = self.largest = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        size = found.numel() if isinstance(found, Tensor) else 0
        self.calls, self.numbers, self.largest = self.calls + 1, self.numbers + size, max(self.largest, size)
        return found


def work(length: int, scanned: Any = selective_scan) -> _Work:
    given = [tensor.detach() for tensor in inputs(length, batch=1, width=8, states=8)]
    with _Work() as counted:
        scanned(*given)
    return counted


def test_work_is_linear_in_the_length() -> None:
    short, long = work(4096), work(16384)
    assert 3.5 < long.numbers / short.numbers < 4.5
    assert long.calls < 4 * short.calls + 10


def test_far_fewer_calls_than_step_by_step_and_no_more_memory_than_a_block() -> None:
    assert 10 * work(2048).calls < work(2048, sequential_scan).calls
    assert work(16384).largest < 1.1 * scan._BLOCK < 16384 * 8 * 8 / 4  # of a block's states, never of all of them
