"""The protocols the Trainer knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.policy import Policy


@runtime_checkable
class Learner(Protocol):
    """A method's learning side: networks, optimisers and one update."""

    def update(self, batch: TensorDict) -> Mapping[str, float]:
        """One gradient step on a batch with flat keys (`observation`, `action`, `reward`, `terminal`, `next_observation`).

        Returns metrics with the house's names (`loss/critic`, `loss/actor`, ...). Values may be 0-d tensors: the Trainer
        converts them only when it logs.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that resume needs: networks, optimisers, step count, own generators. Tensors, numbers, dicts and lists only."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        ...

    def policy(self) -> Policy:
        """The policy to evaluate now; it shares the learner's weights."""
        ...

    def bundle(self) -> Bundle:
        """The policy as a bundle that `rl_core.methods.load_policy` reads."""
        ...


@runtime_checkable
class Source(Protocol):
    """Where batches come from: replay, windows, whole rollouts, or environments that are stepped meanwhile."""

    def next_batch(self) -> TensorDict:
        """The next batch."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Sampler position and generators."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """Judges a policy; called by the Trainer between updates."""

    def evaluate(self, policy: Policy, step: int) -> Mapping[str, float]:
        """Figures such as `eval/success_rate`, `eval/return_mean`."""
        ...


@runtime_checkable
class Drawer(Protocol):
    """A learner that has pictures of its own."""

    def draw(self, run_dir: Path) -> None:
        """Writes them into the run's folder; called when all updates are made."""
        ...
