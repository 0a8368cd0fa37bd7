"""RFMamba's scan in chunks beside the same recurrence step by step and attention of equal width, alternating in one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from robot_bridge.auxiliary.monitoring.rfmamba.omni_scan import SelectiveParameters
from robot_bridge.auxiliary.monitoring.rfmamba.scan import selective_scan, sequential_scan

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)
GROWTH_FROM = 1024
"""Exponents are fitted from this length on; below it calls cost more than numbers."""
WIDTH, STATES, HEADS = 32, 8, 4
ROUNDS = 3


class _Scan(nn.Module):
    """Projections and scan of one path."""

    def __init__(self, scan: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.parameters_of, self.out, self._scan = SelectiveParameters(WIDTH, STATES), nn.Linear(WIDTH, WIDTH), scan

    def forward(self, tokens: Tensor) -> Tensor:
        steps = self.parameters_of(tokens.transpose(0, 1)).permute(2, 0, 1)  # (B, L, 2 D + 2 N)
        x, delta, b, c = steps.split([WIDTH, WIDTH, STATES, STATES], dim=-1)
        return self.out(self._scan(x, delta, -self.parameters_of.a_log.exp(), b, c))


class _Attention(nn.Module):
    """PyTorch's own, with the projections into and out of it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.attention(tokens, tokens, tokens, need_weights=False)[0]


def main() -> dict[str, Any]:
    """Median CPU milliseconds of one sequence forward, and forward and backward; bytes held for the gradient; how they grow.

    `ours` and `peer` are of 8192 tokens, forward alone; the ratio is above 1 where the scan is faster. One thread.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(0)
        modules: dict[str, nn.Module] = {"chunked": _Scan(selective_scan), "sequential": _Scan(sequential_scan), "attention": _Attention()}
        modules["sequential"].load_state_dict(modules["chunked"].state_dict())
        lengths = {length: _measure(modules, length) for length in LENGTHS}
    finally:
        torch.set_num_threads(threads)
    last = lengths[LENGTHS[-1]]
    return {
        "ours": last["chunked"]["forward_ms"],
        "peer": last["attention"]["forward_ms"],
        "ratio": last["attention"]["forward_ms"] / last["chunked"]["forward_ms"],
        "peer_name": "torch.nn.MultiheadAttention of equal width",
        "lengths": lengths,
        "exponents": {
            name: {figure: _exponent(lengths, name, figure) for figure in ("forward_ms", "training_ms", "held_bytes")} for name in modules
        },
        "setting": {
            "unit": "CPU milliseconds per sequence, median",
            "width": WIDTH,
            "states": STATES,
            "attention_heads": HEADS,
            "batch": 1,
            "threads": 1,
            "rounds": ROUNDS,
            "exponents_from": GROWTH_FROM,
        },
    }


def _measure(modules: dict[str, nn.Module], length: int) -> dict[str, Any]:
    tokens = torch.randn(1, length, WIDTH)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in modules}
    with torch.no_grad():
        worst = float((modules["chunked"](tokens) - modules["sequential"](tokens)).abs().max())
    if worst > 1e-5:
        raise AssertionError(f"the scans compared differ by {worst:.2g} at length {length}; valid: up to 1e-5")
    for _ in range(ROUNDS):
        for name, module in modules.items():
            times[name].append((_cpu_ms(partial(_forward, module, tokens)), _cpu_ms(partial(_train, module, tokens))))
    found: dict[str, Any] = {
        name: {"forward_ms": float(np.median([t[0] for t in each])), "training_ms": float(np.median([t[1] for t in each]))}
        for name, each in times.items()
    }
    for name, module in modules.items():
        found[name]["held_bytes"] = _held(module, tokens)
    ours = found["chunked"]
    found["ratios"] = {
        f"{figure}/{name}": found[name][figure] / ours[figure]
        for name in ("sequential", "attention")
        for figure in ("forward_ms", "training_ms", "held_bytes")
    }
    return found


def _forward(module: nn.Module, tokens: Tensor) -> None:
    with torch.no_grad():
        module(tokens)


def _train(module: nn.Module, tokens: Tensor) -> None:
    out = module(tokens)
    out.backward(torch.ones_like(out))


def _held(module: nn.Module, tokens: Tensor) -> int:
    """Bytes that the graph keeps between forward and backward, each storage once, without the parameters."""
    own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = module(tokens)
        held = sum(kept.values())
    del out
    return held


def _cpu_ms(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return 1e3 * (time.process_time() - begun)


def _exponent(lengths: dict[int, dict[str, Any]], name: str, figure: str) -> float:
    """p of a figure ~ length^p."""
    long = [length for length in lengths if length >= GROWTH_FROM]
    return float(np.polyfit(np.log(long), np.log([lengths[length][name][figure] for length in long]), 1)[0])


if __name__ == "__main__":
    print(json.dumps(main()))
