"""ExploredBox: a policy that learned by exploring a box, kept inside of what it has seen.

The worlds that are explored cut every action at the hand's box (`sim_envs.arm.reward_free`), so a policy of theirs may push against its
walls for ever. An arm has no such walls but its workspace, and none for how the hand is turned.

Under operational space control a hand follows an action by a small share in one period, and a policy learns to ask for much. An arm's
servos go the whole way, or the command filter refuses so large a step. So each action is cut to what the hand would have done of it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.dvfb.states import CarriedStates
from rl_core.policy import ActionChunk, Policy, PolicyState
from rl_core.restore import restore_contract
from robot_bridge.control.decode import POSE_AXES

SHARE = 0.99
"""Share of the carried states that each side of the box leaves in: the hand overshoots its walls."""
_HAND = ("eef_pos", "eef_quat")
_DUE = 2.0
"""Periods until a command is to be reached; see `ActionDecoder.command`."""

Array = NDArray[np.float64]


def kept_inside(policy: Policy, bundle: Bundle) -> Policy:
    """`policy` of `bundle`, as an `ExploredBox` where the bundle carries states of a hand that the policy moves by displacements."""
    if "states.next_observation" not in bundle.arrays:
        return policy
    contract, action = restore_contract(bundle), policy.contract.action
    seen = {channel.name for channel in policy.contract.observation if channel.history == 1}
    moved = (action.space, action.meaning) == ("end_effector", "delta") and action.names[: len(POSE_AXES)] == POSE_AXES
    if not moved or not seen.issuperset(_HAND):
        return policy
    states = CarriedStates.from_bundle(bundle)
    before, after = (
        [part[:, _columns(contract, name)].double().numpy() for name in _HAND] for part in (states.observation, states.next_observation)
    )
    share = np.ones(2)
    if action.controller == "osc_pose":
        share = np.minimum(_DUE * _followed(states.action.double().numpy() * np.array(action.scale), before, after), 1.0)
    return ExploredBox(policy, *after, share=share)


def _followed(asked: Array, before: list[Array], after: list[Array]) -> Array:
    """(2,) how far the hand went in a period for what was asked (N, A), metres and rad: of place and turn, root mean squares."""
    turned = (Rotation.from_quat(after[1]) * Rotation.from_quat(before[1]).inv()).as_rotvec()
    pairs = (asked[:, :3], after[0] - before[0]), (asked[:, 3:6], turned)
    return np.array([np.sqrt((made**2).sum() / max((wanted**2).sum(), 1e-12)) for wanted, made in pairs])


def _columns(contract: RobotContract, name: str) -> slice:
    """Where a channel of any kind lies in the flat observation."""
    start = 0
    for channel in contract.low_dimensional:
        end = start + channel.size * channel.history
        if channel.name == name:
            return slice(end - channel.size, end)
        start = end
    raise KeyError(name)


class ExploredBox:
    """Implements `Policy` with the state of `policy`. Of each action that is left which leads to a pose inside of the box; from outside it
    leads back.

    Args:
        policy: its actions are single ones, x, y, z, rx, ry, rz and perhaps a gripper.
        positions: (N, 3) of the hand, metres, frame base.
        orientations: (N, 4) x, y, z, w.
        share: (2,) of an action's displacement and of its turn that are asked of the arm.

    Attributes:
        low, high: corners of the box of the hand's positions, metres.
        turned: (2, 3) least and largest rotation vectors, rad, from the mean orientation.
        share: see above.
    """

    def __init__(self, policy: Policy, positions: Array, orientations: Array, *, share: Array) -> None:
        self._policy = policy
        self.contract = policy.contract
        self.prepare, self.reset, self.reset_rows = policy.prepare, policy.reset, policy.reset_rows
        self.example_condition: Mapping[str, Any] = getattr(policy, "example_condition", {})
        sides = ((1 - SHARE) / 2, (1 + SHARE) / 2)
        self.low, self.high = np.quantile(positions, sides, axis=0)
        rotations = Rotation.from_quat(orientations)
        self._mean = rotations.mean()
        self.turned = np.quantile((rotations * self._mean.inv()).as_rotvec(), sides, axis=0)
        self.share = share
        scale = np.array(self.contract.action.scale)
        self._step, self._turn = scale[:3], scale[3:6]

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        chunk, after = self._policy.act(obs, condition, state)
        position, orientation = (obs[name].double().numpy() for name in _HAND)
        orientation[~orientation.any(axis=1)] = self._mean.as_quat()  # the zeros that a policy is warmed up with
        action = chunk.values[:, 0].double().numpy().clip(-1.0, 1.0)
        action[:, :6] *= self.share.repeat(3)
        action[:, :3] = (np.clip(position + self._step * action[:, :3], self.low, self.high) - position) / self._step
        turned = Rotation.from_quat(orientation) * self._mean.inv()
        asked = (Rotation.from_rotvec(self._turn * action[:, 3:6]) * turned).as_rotvec()
        action[:, 3:6] = (Rotation.from_rotvec(np.clip(asked, *self.turned)) * turned.inv()).as_rotvec() / self._turn
        values = torch.from_numpy(action.clip(-1.0, 1.0)).to(torch.float32).unsqueeze(1)
        return ActionChunk(values=values, period_s=chunk.period_s, execute=chunk.execute, info=chunk.info), after
