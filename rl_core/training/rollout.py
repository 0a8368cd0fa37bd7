"""Rolling policies out in worlds: n at once, each row by its own seed."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.contract import RobotContract
from rl_core.policy import Policy, PolicyState
from rl_core.training.worlds import contract_of


class ChannelHistory:
    """The last samples of each channel a policy needs, for one row; the first sample fills the past."""

    def __init__(self, contract: RobotContract) -> None:
        self._channels = contract.observation
        self._samples: dict[str, deque[Any]] = {}

    def start(self, obs: dict[str, Any]) -> None:
        """A new episode begins with `obs`."""
        self._samples = {c.name: deque([obs[c.name]] * c.history, maxlen=c.history) for c in self._channels}

    def push(self, obs: dict[str, Any]) -> None:
        """The newest observation."""
        for channel in self._channels:
            self._samples[channel.name].append(obs[channel.name])

    def value(self, name: str) -> NDArray[Any]:
        """(...) for history 1, else (history, ...), oldest first."""
        samples = self._samples[name]
        return np.asarray(samples[0]) if samples.maxlen == 1 else np.stack([np.asarray(sample) for sample in samples])

    def flat(self) -> NDArray[np.float32]:
        """(contract.observation_size,): as `rl_core.policy.flatten_observation` of one row."""
        parts = [self.value(c.name).reshape(-1) for c in self._channels if c.kind in ("vector", "quaternion", "latent")]
        return np.concatenate(parts).astype(np.float32)


def batch_observation(contract: RobotContract, histories: Sequence[ChannelHistory]) -> TensorDict:
    """One entry a contract channel, (n, ...) or (n, history, ...)."""
    values = {c.name: torch.from_numpy(np.stack([history.value(c.name) for history in histories])) for c in contract.observation}
    return TensorDict(values, batch_size=[len(histories)])


def select_rows(state: PolicyState, rows: Sequence[int]) -> PolicyState:
    """The state of some rows; their generators are shared with `state`."""
    index = torch.as_tensor(rows, dtype=torch.long)
    return PolicyState(generators=tuple(state.generators[row] for row in rows), tensors={k: v[index] for k, v in state.tensors.items()})


def merge_rows(state: PolicyState, rows: Sequence[int], part: PolicyState) -> PolicyState:
    """`state` with some rows replaced by `part`'s."""
    index = torch.as_tensor(rows, dtype=torch.long)
    tensors = {}
    for name, value in state.tensors.items():
        value = value.clone()
        value[index] = part.tensors[name]
        tensors[name] = value
    generators = list(state.generators)
    for row, generator in zip(rows, part.generators, strict=True):
        generators[row] = generator
    return PolicyState(generators=tuple(generators), tensors=tensors)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of one row.

    Attributes:
        row: index into the environments.
        seed: seed of the row's episode.
        before: the world's observation that the step began with.
        action: (A,) what was asked for.
        observation: the world's observation after the step.
    """

    row: int
    seed: int
    before: dict[str, Any]
    action: NDArray[np.float32]
    observation: dict[str, Any]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def done(self) -> bool:
        """Terminated or truncated."""
        return self.terminated or self.truncated


class _Row:
    def __init__(self, env: gymnasium.Env, contract: RobotContract) -> None:
        self.env = env
        self.history = ChannelHistory(contract)
        self.seed: int = -1
        self.observation: dict[str, Any] = {}
        self.chunk: deque[NDArray[np.float32]] = deque()

    def start(self, seed: int) -> None:
        self.observation, _ = self.env.reset(seed=seed)
        self.history.start(self.observation)
        self.chunk.clear()
        self.seed = seed


def rollout(
    policy: Policy, envs: Sequence[gymnasium.Env], seeds: Sequence[int], *, condition: dict[str, Any] | None = None
) -> Iterator[Step]:
    """Runs one episode a seed, `len(envs)` at a time, and gives every step.

    An episode depends on its seed alone: the world is reset with it and the row's generator is seeded with it. Rows that
    need a new chunk are acted for together, so batches of other sizes may differ in a float's last bit.

    Raises:
        ContractMismatch: the policy needs what neither a world offers nor `condition` holds.
    """
    for env in envs:
        offered = contract_of(env)
        there = {channel.name for channel in offered.condition}
        given = (channel for channel in policy.contract.condition if channel.name in (condition or {}) and channel.name not in there)
        policy.contract.accepts(dataclasses.replace(offered, condition=(*offered.condition, *given)), offered_by=str(env))
    prepared = policy.prepare(condition or {})
    waiting = deque(seeds)
    rows = [_Row(env, policy.contract) for env in envs[: len(waiting)]]
    for row in rows:
        row.start(waiting.popleft())
    state = policy.reset([row.seed for row in rows])
    active = list(range(len(rows)))
    while active:
        hungry = [i for i in active if not rows[i].chunk]
        if hungry:
            obs = batch_observation(policy.contract, [rows[i].history for i in hungry])
            with torch.no_grad():
                chunk, after = policy.act(obs, prepared, select_rows(state, hungry))
            state = merge_rows(state, hungry, after)
            values = chunk.values[:, : chunk.execute].cpu().numpy().astype(np.float32)
            for i, actions in zip(hungry, values, strict=True):
                rows[i].chunk.extend(actions)
        for i in list(active):
            row = rows[i]
            action = row.chunk.popleft()
            observation, reward, terminated, truncated, info = row.env.step(action)
            before, row.observation = row.observation, observation
            row.history.push(observation)
            yield Step(
                row=i,
                seed=row.seed,
                before=before,
                action=action,
                observation=observation,
                reward=float(reward),
                terminated=bool(terminated),
                truncated=bool(truncated),
                info=info,
            )
            if terminated or truncated:
                if waiting:
                    row.start(waiting.popleft())
                    state = policy.reset_rows(state, [i], [row.seed])
                else:
                    active.remove(i)
