"""Training in epochs that a stop does not cost: it goes on behind the last whole one, and ends as it would have without the stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from rl_core.errors import ArmstackError
from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.told_progress import time_left


def warm_up_cosine(step: int, steps: int, share: float) -> float:
    """Factor of the learning rate at a step: rises over the first `share` of the steps, then falls to 0 as half a cosine."""
    warm = max(round(share * steps), 1)
    return (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


@dataclass(frozen=True, kw_only=True)
class Epochs:
    """See the module.

    Attributes:
        count: how many.
        parameters: what is trained.
        optimizer: of them.
        schedule: of its learning rate.
        generator: all that is drawn comes from it.
        store: where whole epochs are kept, of a training with equal arguments. None keeps none.
        say: told the loss of each epoch, and how long the rest takes.
    """

    count: int
    parameters: Sequence[nn.Parameter]
    optimizer: torch.optim.Optimizer
    schedule: LRScheduler
    generator: torch.Generator | np.random.Generator
    store: CheckpointStore | None = None
    say: Callable[[str], None] = lambda text: None

    def run(self, epoch: Callable[[int], float]) -> float:
        """Runs the epochs that are left; `epoch` is given its number, from 0, and gives its mean loss.

        Returns:
            The last epoch's mean loss; 0 without epochs.

        Raises:
            ArmstackError: a loss that is not finite; that epoch is not kept.
            CheckpointError: nothing that was kept can be read.
            KeyboardInterrupt: Ctrl-C; what is kept has been said.
        """
        first, loss = self._resume()
        begun, done = time.monotonic(), first
        try:
            while done < self.count:
                loss = epoch(done)
                if not math.isfinite(loss):
                    raise ArmstackError(f"epoch {done + 1}: loss {loss}, valid: finite. Try a lower learning rate (--config.lr)")
                done += 1
                self._keep(done, loss)
                left = time_left(time.monotonic() - begun, done - first, self.count - first)
                self.say(f"epoch {done}/{self.count}: loss {loss:.4f}, about {left} left")
        except KeyboardInterrupt:
            if self.store is not None:
                self.say(f"{done} of {self.count} epochs are kept; the same command goes on from there")
            raise
        return loss

    def _resume(self) -> tuple[int, float]:
        found = None if self.store is None else self.store.load_newest()
        if found is None:
            return 0, 0.0
        with torch.no_grad():
            for parameter, values in zip(self.parameters, found.state["parameters"], strict=True):
                parameter.copy_(values)
        for name, part in self._parts().items():
            part.load_state_dict(found.state[name])
        if isinstance(self.generator, torch.Generator):
            self.generator.set_state(found.state["generator"])
        else:
            self.generator.bit_generator.state = found.state["generator"]
        self.say(f"epoch {found.step}/{self.count}: found in the run's folder, loss {found.state['loss']:.4f}")
        return found.step, found.state["loss"]

    def _keep(self, done: int, loss: float) -> None:
        if self.store is None:
            return
        drawn = self.generator
        state = drawn.get_state() if isinstance(drawn, torch.Generator) else dict(drawn.bit_generator.state)
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        self.store.save(done, {"parameters": list(self.parameters), "loss": loss, "generator": state, **parts})

    def _parts(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer, "schedule": self.schedule}
