"""ConditionedPolicy: a method that knows only observations, given a goal from outside.

Such a method is trained on data in which the goal is an observation channel. `with_condition` says of which channels that holds; from then
on the bundle's contract asks for them as its condition, and whoever runs the policy gives them when they change instead of at every step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.contract import Channel, RobotContract
from rl_core.errors import ArmstackError
from rl_core.policy import ActionChunk, Policy, PolicyState


class ConditionError(ArmstackError):
    """A condition that a policy cannot act on; names the channel, what was found and what would be valid."""


def with_condition(bundle: Bundle, channels: Sequence[str]) -> Bundle:
    """The same bundle, whose contract asks for `channels` (the last of its observation) as its condition.

    Raises:
        ConditionError: they are not the last observation channels, in this order, or an image or text is among them.
    """
    contract = bundle.contract
    names = [channel.name for channel in contract.observation] if contract else []
    first = len(names) - len(channels)
    if contract is None or not channels or names[first:] != list(channels) or first < 1:
        raise ConditionError(f"condition {list(channels)}, valid: the last of the observation channels {names}, in their order")
    moved = contract.observation[first:]
    if unfit := [channel.name for channel in moved if channel.kind not in ("vector", "quaternion", "latent") or channel.history != 1]:
        raise ConditionError(f"condition {unfit}, valid: vectors, quaternions and latents without history")
    need = dataclasses.replace(contract, observation=contract.observation[:first], condition=(*contract.condition, *moved))
    return dataclasses.replace(bundle, contract=need)


def as_observed(contract: RobotContract) -> RobotContract:
    """The contract of the policy inside: its condition is the last of what it observes."""
    return dataclasses.replace(contract, observation=(*contract.observation, *contract.condition), condition=())


class ConditionedPolicy:
    """See the module.

    Args:
        policy: trained under `as_observed(contract)`.
        contract: with a condition.
    """

    def __init__(self, policy: Policy, contract: RobotContract) -> None:
        self._policy = policy
        self.contract = contract
        self.reset = policy.reset
        self.reset_rows = policy.reset_rows

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """The channels of the contract's condition, (size,) float32 each; more may be given.

        Raises:
            ConditionError: one is missing, or is no such channel's value.
        """
        values = {channel.name: _value(channel, condition) for channel in self.contract.condition}
        return TensorDict(values, batch_size=[])

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; every row has the same condition."""
        rows = obs.batch_size[0]
        seen = {name: obs[name] for name in obs.keys()}
        seen |= {channel.name: condition[channel.name].expand(rows, -1) for channel in self.contract.condition}
        return self._policy.act(TensorDict(seen, batch_size=[rows]), TensorDict({}, batch_size=[]), state)


def _value(channel: Channel, condition: Mapping[str, Any]) -> torch.Tensor:
    if channel.name not in condition:
        raise ConditionError(f"{channel.name}: missing, found {sorted(condition)}; valid: {channel.names} in {channel.unit}")
    value = torch.as_tensor(condition[channel.name], dtype=torch.float32)
    if value.shape != channel.shape or not torch.isfinite(value).all():
        raise ConditionError(f"{channel.name}: {value.tolist()}, valid: {channel.size} finite numbers for {channel.names}")
    if channel.kind == "quaternion" and abs(float(value.norm()) - 1) > 1e-3:
        raise ConditionError(f"{channel.name}: norm {float(value.norm()):.4f}, valid: 1 (x, y, z, w)")
    return value
