"""Epochs that a stop does not cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.errors import ArmstackError
from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.epochs import Epochs, warm_up_cosine


def train(kind: str, store: CheckpointStore | None, *, stop_in: int = -1) -> tuple[torch.Tensor, float, list[str]]:
    """Three epochs of a weight that is drawn towards random numbers; Ctrl-C in the middle of epoch `stop_in`."""
    weight, said = torch.nn.Parameter(torch.zeros(3)), list[str]()
    generator: torch.Generator | np.random.Generator = torch.Generator().manual_seed(0) if kind == "torch" else np.random.default_rng(0)
    optimizer = torch.optim.Adam([weight], lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_cosine(step, 6, 0.3))

    def epoch(number: int) -> float:
        for step in range(2):
            if number == stop_in and step == 1:
                raise KeyboardInterrupt
            wanted = (
                torch.rand(3, generator=generator) if isinstance(generator, torch.Generator) else torch.tensor(generator.random(3)).float()
            )
            loss = (weight - wanted).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        return float(loss.detach())

    epochs = Epochs(count=3, parameters=[weight], optimizer=optimizer, schedule=schedule, generator=generator, store=store, say=said.append)
    try:
        last = epochs.run(epoch)
    except KeyboardInterrupt:
        last = float("nan")
    return weight.detach().clone(), last, said


@pytest.mark.parametrize("kind", ["torch", "numpy"])
@pytest.mark.parametrize("stop_in", [0, 1, 2])
def test_a_stopped_training_ends_as_one_that_was_not(kind: str, stop_in: int, tmp_path: Path) -> None:
    whole, last, _ = train(kind, None)
    _, _, said = train(kind, CheckpointStore(tmp_path), stop_in=stop_in)
    assert said[-1] == f"{stop_in} of 3 epochs are kept; the same command goes on from there"
    again, last_again, said = train(kind, CheckpointStore(tmp_path))
    assert torch.equal(whole, again) and last == last_again
    assert len([line for line in said if ", about " in line]) == 3 - stop_in


def test_a_finished_training_is_not_done_again(tmp_path: Path) -> None:
    whole, last, _ = train("torch", CheckpointStore(tmp_path))
    again, last_again, said = train("torch", CheckpointStore(tmp_path), stop_in=0)
    assert torch.equal(whole, again) and last == last_again and len(said) == 1


def test_nothing_kept_nothing_promised() -> None:
    assert not any("are kept" in line for line in train("torch", None, stop_in=1)[2])


def test_the_rate_rises_and_then_falls_to_nothing() -> None:
    rates = [warm_up_cosine(step, 100, 0.1) for step in range(101)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == 1.0 and max(rates) == 1.0
    assert all(later <= earlier for earlier, later in zip(rates[9:], rates[10:], strict=False)) and rates[100] == pytest.approx(0.0)


def test_a_loss_that_is_not_finite_ends_it_and_is_not_kept(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    store = CheckpointStore(tmp_path)
    generator = torch.Generator().manual_seed(0)
    epochs = Epochs(count=3, parameters=[weight], optimizer=optimizer, schedule=schedule, generator=generator, store=store)
    with pytest.raises(ArmstackError, match=r"epoch 2: loss nan, valid: finite. Try a lower learning rate \(--config.lr\)"):
        epochs.run(lambda number: [1.0, float("nan"), 1.0][number])
    kept = store.load_newest()
    assert kept is not None and kept.step == 1
