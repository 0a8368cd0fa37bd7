"""HandPolicy: a policy of the goal worlds on an arm that is also told how to turn its hand, and more often.

There an action is a displacement of the hand and the gripper, and the hand keeps pointing down (`sim_envs.arm.goal_worlds`). An arm's
action has a rotation too, and another period.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.contract import Action, Channel, ContractMismatch, RobotContract
from rl_core.policy import ActionChunk, Policy, PolicyState
from robot_bridge.control.decode import POSE_AXES

DESIRED = "desired_goal"
"""Channel of a goal of several bodies; its dimensions are called BODY_AXIS."""
FOLLOWED = {("osc_pose", "joint_position"): 2 / 3}
"""(controller of the policy's world, the arm's) -> of a displacement, what is asked of the arm. Measured: a full one, asked for over and
over, moves the hand 2.7 cm in 0.1 s under operational space control, and 4.0 cm by joint servos behind the command filter."""
_ORIENTATION = Channel(name="eef_quat", kind="quaternion", frame="base", rate_hz=20.0)
_DOWN = (1.0, 0.0, 0.0, 0.0)


def fitted(policy: Policy, offered: Sequence[RobotContract]) -> Policy:
    """`policy`, as a `HandPolicy` where it moves a hand that keeps pointing down.

    Raises:
        ContractMismatch: it does, and the arm understands no displacements of its hand, or not as many to a period of the policy's.
    """
    need = policy.contract.action
    if need.gripper is None or (need.space, need.meaning) != ("end_effector", "delta") or need.names[:-1] != POSE_AXES[:3]:
        return policy
    deltas = [
        c.action for c in offered if (c.action.space, c.action.meaning) == ("end_effector", "delta") and c.action.names[:6] == POSE_AXES
    ]
    fitting = [action for action in deltas if _repeats(need, action)]
    if not fitting:
        found = [f"{action.names} every {action.period_s} s" for action in deltas]
        raise ContractMismatch("policy", "arm", [f"action: needs {POSE_AXES} at a whole share of {need.period_s} s, offered {found}"])
    named = [action for action in fitting if action.gripper == need.gripper]
    return HandPolicy(policy, (named or fitting)[0])


def _repeats(need: Action, offered: Action) -> int:
    """Periods of `offered` in one of `need`; 0 where that is no whole number."""
    ratio = need.period_s / offered.period_s
    return round(ratio) if abs(ratio - round(ratio)) < 1e-6 else 0


class HandPolicy:
    """Implements `Policy` with the state of `policy`. Each of its actions is a chunk of as many equal displacements as the arm has periods
    in it, smaller ones where the arm follows them further than the policy's world did (`FOLLOWED`). They also turn the hand so that it
    points down, less and less: how far it was off was seen before the first.

    `desired_goal` is observed as one channel `goal_BODY_pos` for each body that it is of.

    Args:
        policy: its action is x, y, z and the gripper.
        action: the arm's, with x, y, z, rx, ry, rz and the gripper.
    """

    def __init__(self, policy: Policy, action: Action) -> None:
        self._policy = policy
        self.reset, self.reset_rows, self.prepare = policy.reset, policy.reset_rows, policy.prepare
        self.subgoal_channel: Channel | None = getattr(policy, "subgoal_channel", None)
        need = policy.contract
        self._repeats = _repeats(need.action, action)
        self._share = FOLLOWED.get((need.action.controller, action.controller), 1.0)
        self._turn = torch.tensor(action.scale[3:6])
        goal = next((channel for channel in need.observation if channel.name == DESIRED), None)
        parts = _bodies(goal) if goal is not None else ()
        self._parts = [part.name for part in parts]
        seen = tuple(channel for channel in need.observation if channel.name != DESIRED) + parts
        if all(channel.name != _ORIENTATION.name for channel in seen):
            seen += (_ORIENTATION,)
        own = need.action  # displacement and gripper stay the policy's, so that any difference from the arm's is told
        moved = dataclasses.replace(
            own,
            names=(*own.names[:3], *action.names[3:6], *own.names[3:]),
            scale=(*own.scale[:3], *action.scale[3:6], *own.scale[3:]),
            units=(*own.units[:3], *action.units[3:6], *own.units[3:]),
            period_s=action.period_s,
            horizon=self._repeats * own.horizon,
            execute=self._repeats * own.execute,
            controller=action.controller,
        )
        self.contract = dataclasses.replace(need, observation=seen, action=moved)

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        seen: dict[str, Any] = {str(name): value for name, value in obs.items()}
        if self._parts:
            seen[DESIRED] = torch.cat([seen[name] for name in self._parts], dim=-1)
        rows = obs.batch_size[0]
        chunk, after = self._policy.act(TensorDict(seen, batch_size=[rows]), condition, state)
        moves = chunk.values.repeat_interleave(self._repeats, dim=1)
        turn = (rotation_down(obs[_ORIENTATION.name]) / self._turn).clamp(-1.0, 1.0)
        turns = turn.unsqueeze(1) * torch.linspace(1.0, 0.0, moves.shape[1] + 1)[:-1, None]
        values = torch.cat([self._share * moves[..., :3], turns, moves[..., 3:]], dim=-1)
        period_s, execute = self.contract.action.period_s, self._repeats * chunk.execute
        return ActionChunk(values=values, period_s=period_s, execute=execute, info=chunk.info), after


def _bodies(goal: Channel) -> tuple[Channel, ...]:
    """A channel for each body that a goal is of, in order."""
    bodies = list(dict.fromkeys(name.rpartition("_")[0] for name in goal.names))
    if goal.names != tuple(f"{body}_{axis}" for body in bodies for axis in POSE_AXES[:3]):
        raise ContractMismatch(
            "policy", "arm", [f"observation.{goal.name}.names: needs {goal.names}, offered positions of bodies, BODY_x, BODY_y, BODY_z"]
        )
    return tuple(dataclasses.replace(goal, name=f"goal_{body}_pos", names=POSE_AXES[:3], shape=()) for body in bodies)


def rotation_down(quaternion: Tensor) -> Tensor:
    """Rotation vectors (n, 3), rad, base axes, that turn orientations (n, 4), x y z w, the shorter way to a hand that points down."""
    down = quaternion.new_tensor(_DOWN)
    # down * conjugate(quaternion)
    vector = (
        -down[3] * quaternion[:, :3]
        + quaternion[:, 3:] * down[:3]
        - torch.linalg.cross(down[:3].expand(len(quaternion), 3), quaternion[:, :3])
    )
    scalar = (quaternion @ down).unsqueeze(-1)
    vector, scalar = torch.where(scalar < 0, -vector, vector), scalar.abs()
    norm = vector.norm(dim=-1, keepdim=True)
    return vector * torch.where(norm > 1e-9, 2.0 * torch.atan2(norm, scalar) / norm.clamp_min(1e-9), 2.0)
