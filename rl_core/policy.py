"""Policy: what every trained method is at run time. Pure: same inputs, same outputs; the state is explicit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.contract import RobotContract


@dataclass(frozen=True, kw_only=True)
class ActionChunk:
    """Actions for the next steps of each row.

    Attributes:
        values: (n, H, A) in [-1, 1], A in the order of `contract.action.names`.
        period_s: time between two actions of the chunk, seconds.
        execute: how many of the H actions are executed before the next `act`; at most H.
        info: optional figures per row, e.g. `subgoal` (n, G), `value` (n,), `certificate` (n, ...).
    """

    values: Tensor
    period_s: float
    execute: int = 1
    info: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PolicyState:
    """Everything that `act` carries from one call to the next: one generator a row, and named tensors (n, ...).

    Generators advance in place when a row draws from them; that is the only mutation.
    """

    generators: tuple[torch.Generator, ...]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal noise (n, *shape), each row from its own generator, so that rows never depend on each other."""
        return torch.stack([torch.randn(shape, generator=generator) for generator in self.generators])


def seeded_state(seeds: Sequence[int]) -> PolicyState:
    """A state without memory: one CPU generator a row, seeded with `seeds`."""
    return PolicyState(generators=tuple(torch.Generator().manual_seed(int(seed)) for seed in seeds))


@runtime_checkable
class Policy(Protocol):
    """A policy acts on batches (n = 1 on a robot). `obs` holds one entry a contract channel, (n, ...) or (n, history, ...)."""

    contract: RobotContract

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """Turns a condition (goal pose, task text) into tensors; called when a condition changes."""
        ...

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """A fresh state of n rows, row i drawing from a generator seeded with `seeds[i]`."""
        ...

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """`state` with the given rows as after `reset`, the others untouched."""
        ...

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """The next chunk for each row, and the state after it."""
        ...


class StatelessPolicy:
    """Policy parts shared by methods whose only memory is the rows' generators."""

    contract: RobotContract

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """No condition: an empty TensorDict."""
        return TensorDict({}, batch_size=[])

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset`."""
        return seeded_state(seeds)

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset_rows`."""
        generators = list(state.generators)
        for row, generator in zip(rows, seeded_state(seeds).generators, strict=True):
            generators[row] = generator
        return PolicyState(generators=tuple(generators), tensors=state.tensors)


def flatten_observation(contract: RobotContract, obs: Mapping[str, Any] | TensorDict) -> Tensor:
    """Concatenates the low-dimensional channels (n, ...) in contract order to (n, contract.observation_size), float32.

    Raises:
        KeyError: a channel is missing; the message lists both key sets.
    """
    needed = [channel.name for channel in contract.low_dimensional]
    missing = [name for name in needed if name not in obs.keys()]
    if missing:
        raise KeyError(f"observation lacks {missing}; the policy needs {needed}, the observation has {sorted(map(str, obs.keys()))}")
    rows = [torch.as_tensor(obs[name]).to(torch.float32).flatten(1) for name in needed]
    return torch.cat(rows, dim=-1)
