"""PolicyRunner: from observations to commands, one policy period after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

from rl_core.conditioned_policy import ConditionError
from rl_core.policy import Policy, PolicyState
from robot_bridge.arms.base import ArmState
from robot_bridge.control.command import JointCommand
from robot_bridge.control.decode import ActionDecoder


class PolicyRunner:
    """Runs a policy for one arm (n = 1): infers when the chunk is used up, and sends the chunk's next actions every period.

    While the arm is not moving the chunk is dropped, and while no command would be accepted the policy is not asked, so that
    subgoal and latent clocks stand still; motion goes on from a fresh observation.

    Args:
        policy: its contract's action is the decoder's.
        decoder: for the arm that is driven.
        sender: identity of the publisher.
        source: kind of sender.

    Attributes:
        info: what the policy said about the chunk in use (subgoal, value, certificate).
        inferred: whether the last `step` asked the policy.
        action: (A,) policy values that were due in the last `step`, sent or not; None where the policy was not asked.
    """

    def __init__(self, policy: Policy, decoder: ActionDecoder, *, sender: str, source: str = "policy") -> None:
        self.policy = policy
        self.decoder = decoder
        self.sender = sender
        self.source = source
        self.info: Mapping[str, Tensor] = {}
        self.inferred = False
        self.action: NDArray[np.float64] | None = None
        self._condition = None if policy.contract.condition else policy.prepare({})
        self.reset(0)

    def reset(self, seed: int) -> None:
        """An episode begins: fresh policy state drawing from `seed`, no chunk."""
        self._state: PolicyState = self.policy.reset([seed])
        self.drop()

    def set_condition(self, condition: Mapping[str, Any]) -> None:
        """A goal or task changed: prepared once; the chunk made for the old one is dropped."""
        self._condition = self.policy.prepare(condition)
        self.drop()

    def drop(self) -> None:
        """Forgets the open chunk."""
        self._chunk: NDArray[np.float64] | None = None
        self._stamp_ns = 0
        self._executed = 0
        self._execute = 0

    @property
    def needs_observation(self) -> bool:
        """Whether the next `step` asks the policy."""
        return self._chunk is None or self._executed >= self._execute

    def step(
        self, observation: TensorDict, stamp_ns: int, measured: ArmState, *, accepts: bool = True, moving: bool = True
    ) -> JointCommand | None:
        """The command for this period.

        Args:
            observation: one row, from `ObservationAssembler.assemble`; used only when the policy is asked.
            stamp_ns: time of the oldest observation in it.
            measured: where the arm is now.
            accepts: whether the arm would follow a command (`LoopStatus.accepts`).
            moving: whether the arm followed the last one.

        Returns:
            None while the arm accepts nothing.

        Raises:
            ConditionError: the policy asks for a condition that was never set.
            ActionError: the policy gave no finite action; the chunk is dropped.
            IKError: no joint positions reach the pose; the chunk is dropped.
        """
        self.inferred = False
        self.action = None
        if not accepts or not moving:
            self.drop()
        if not accepts:
            return None
        if self.needs_observation:
            self._infer(observation, stamp_ns)
        assert self._chunk is not None
        self.action = self._chunk[self._executed]
        try:
            command = self.decoder.command(
                self._chunk[self._executed :],
                measured,
                stamp_ns=self._stamp_ns,
                source=self.source,
                sender=self.sender,
                offset_s=self._executed * self.decoder.action.period_s,
            )
        except Exception:
            self.drop()
            raise
        self._executed += 1
        return command

    def _infer(self, observation: TensorDict, stamp_ns: int) -> None:
        if self._condition is None:
            raise ConditionError(f"no condition yet; needed: {[channel.name for channel in self.policy.contract.condition]}")
        chunk, self._state = self.policy.act(observation, self._condition, self._state)
        self.info = chunk.info
        self.inferred = True
        self._chunk = chunk.values[0].double().numpy()
        self._stamp_ns = stamp_ns
        self._executed = 0
        self._execute = chunk.execute
