"""KeptEpochs: a training that was stopped goes on behind its last whole epoch, and ends as it would have without the stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from rl_core.training.checkpoint import CheckpointStore


@dataclass(frozen=True, kw_only=True)
class KeptEpochs:
    """See the module.

    Attributes:
        store: where epochs are kept; None keeps none.
        parameters: what is trained.
        optimizer: of them.
        schedule: of its learning rate.
    """

    store: CheckpointStore | None
    parameters: Sequence[nn.Parameter]
    optimizer: torch.optim.Optimizer
    schedule: LRScheduler

    def resume(self) -> tuple[int, dict[str, Any]]:
        """How many epochs are done, and what `keep` got with the last of them; all is set to where that one ended.

        Raises:
            CheckpointError: nothing that was kept can be read.
        """
        found = None if self.store is None else self.store.load_newest()
        if found is None:
            return 0, {}
        with torch.no_grad():
            for parameter, values in zip(self.parameters, found.state["parameters"], strict=True):
                parameter.copy_(values)
        self.optimizer.load_state_dict(found.state["optimizer"])
        self.schedule.load_state_dict(found.state["schedule"])
        return found.step, found.state["more"]

    def keep(self, epoch: int, more: dict[str, Any]) -> None:
        """Keeps epoch `epoch`, from 1, with what else the next one depends on: tensors, arrays and plain values."""
        if self.store is not None:
            states = {"optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict(), "more": more}
            self.store.save(epoch, {"parameters": list(self.parameters), **states})
