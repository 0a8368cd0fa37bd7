"""Swing: a policy that lets one joint swing to and fro, for demonstrations and tests of what slows and holds an arm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from tensordict import TensorDict

from rl_core.contract import ContractError, RobotContract
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy


class Swing(StatelessPolicy):
    """The joint goes amplitude sin(2 pi t / period) from where it was at first; the others stay. The gripper is open.

    Its time goes on with its actions, so an arm that was held goes on where it was.

    Args:
        contract: with actions that are deltas of joints.
        joint: which one.
        amplitude_rad: to either side.
        period_s: there and back.

    Raises:
        ContractError: other actions, or no such joint; lists those there are.
    """

    def __init__(self, contract: RobotContract, joint: str, *, amplitude_rad: float, period_s: float) -> None:
        action = contract.action
        if (action.space, action.meaning) != ("joint", "delta") or joint not in action.names:
            raise ContractError(f"swing of {joint!r} by {action.meaning} actions of {action.names}, valid: deltas of joints, one of them")
        self.contract = contract.select(("joint_pos",))
        self._joints = contract.channel("joint_pos").names
        self._joint, self._amplitude, self._step = joint, amplitude_rad, 2 * math.pi * action.period_s / period_s

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset`."""
        rows, size = len(seeds), len(self._joints)
        tensors = {"step": torch.zeros(rows, 1), "first": torch.full((rows, size), torch.nan)}
        return PolicyState(generators=super().reset(seeds).generators, tensors=tensors)

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset_rows`."""
        fresh = self.reset(seeds).tensors
        tensors = {name: values.index_copy(0, torch.tensor(rows), fresh[name]) for name, values in state.tensors.items()}
        return PolicyState(generators=super().reset_rows(state, rows, seeds).generators, tensors=tensors)

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        joints, action = obs["joint_pos"], self.contract.action
        first = torch.where(state.tensors["first"].isnan(), joints, state.tensors["first"])
        step = state.tensors["step"] + 1
        target = first.clone()
        target[:, self._joints.index(self._joint)] += self._amplitude * torch.sin(self._step * step[:, 0])
        wanted = {name: target[:, i] - joints[:, i] for i, name in enumerate(self._joints)}
        columns = [
            (wanted[name] / scale).clamp(-1.0, 1.0) if name in wanted else torch.full_like(step[:, 0], -1.0)
            for name, scale in zip(action.names, action.scale, strict=True)
        ]
        chunk = ActionChunk(values=torch.stack(columns, dim=1)[:, None], period_s=action.period_s)
        return chunk, PolicyState(generators=state.generators, tensors={"step": step, "first": first})
