"""PolicyRunner: from observations to commands, one policy period after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

from rl_core.conditioned_policy import ConditionError
from rl_core.policy import ActionChunk, Policy, PolicyState
from robot_bridge.arms.base import ArmState
from robot_bridge.control.background import BackgroundInference
from robot_bridge.control.command import JointCommand
from robot_bridge.control.decode import ActionDecoder


class PolicyRunner:
    """Runs a policy for one arm (n = 1): infers when the chunk is used up, and sends the chunk's next actions every period.

    While the arm is not moving the chunk is dropped, and while no command would be accepted the policy is not asked, so that
    subgoal and latent clocks stand still; motion goes on from a fresh observation.

    After `infer_in_background` a late inference keeps nobody waiting: the open chunk is executed beyond its `execute` meanwhile. An answer
    that comes d periods after its observation takes over at its own action d, the one that is due then.

    Args:
        policy: its contract's action is the decoder's.
        decoder: for the arm that is driven.
        sender: identity of the publisher.
        source: kind of sender.

    Attributes:
        info: what the policy said about the chunk in use (subgoal, value, certificate).
        inferred: whether the last `step` asked the policy.
        action: (A,) policy values that were due in the last `step`, sent or not; None where none were.
        waited_s: how long the last `step` waited for the policy.
        late: chunks that took over after their first action was due.
        stale: chunks that came after their last action was due, and were not used.
    """

    def __init__(self, policy: Policy, decoder: ActionDecoder, *, sender: str, source: str = "policy") -> None:
        self.policy = policy
        self.decoder = decoder
        self.sender = sender
        self.source = source
        self.info: Mapping[str, Tensor] = {}
        self.inferred = False
        self.action: NDArray[np.float64] | None = None
        self.waited_s = 0.0
        self.late = 0
        self.stale = 0
        self._background: BackgroundInference | None = None
        self._patience_s = 0.0
        self._asked_ns = self._delay = 0
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

    def infer_in_background(self, patience_s: float) -> None:
        """From now on another thread asks the policy. A `step` with an action left to send waits at most `patience_s` for the answer, one
        without at most a period."""
        self._background, self._patience_s = BackgroundInference(self.policy), patience_s

    def close(self) -> None:
        """Ends the thread, where there is one."""
        if self._background is not None:
            self._background.close()

    def drop(self) -> None:
        """Forgets the open chunk and the inference under way."""
        if self._background is not None:
            self._background.forget()
        self._drop_chunk()

    def _drop_chunk(self) -> None:
        self._chunk: NDArray[np.float64] | None = None
        self._stamp_ns = 0
        self._executed = 0
        self._execute = 0

    @property
    def needs_observation(self) -> bool:
        """Whether the next `step` asks the policy, if that is not under way."""
        return self._chunk is None or self._executed >= self._execute

    @property
    def _spent(self) -> bool:
        """Whether no action is left to send."""
        return self._chunk is None or self._executed >= len(self._chunk)

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
            None while the arm accepts nothing, or where the policy's answer is late and no action left.

        Raises:
            ConditionError: the policy asks for a condition that was never set.
            ActionError: the policy gave no finite action; the chunk is dropped.
            IKError: no joint positions reach the pose; the chunk is dropped.
        """
        self.inferred = False
        self.action = None
        self.waited_s = 0.0
        if not accepts:
            self.drop()
            return None
        if not moving:
            self._drop_chunk()
        start = time.perf_counter()
        if self._background is not None:
            self._infer_beside(self._background, observation, stamp_ns, moving)
        elif self.needs_observation:
            self._take(*self.policy.act(observation, self._prepared, self._state), stamp_ns, 0)
        self.waited_s = time.perf_counter() - start
        if self._chunk is None or self._spent:
            return None
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

    @property
    def _prepared(self) -> TensorDict:
        if self._condition is None:
            raise ConditionError(f"no condition yet; needed: {[channel.name for channel in self.policy.contract.condition]}")
        return self._condition

    def _infer_beside(self, background: BackgroundInference, observation: TensorDict, stamp_ns: int, moving: bool) -> None:
        if background.busy:
            # while the arm stands, what was seen stays true and no action becomes due
            self._delay = self._delay + 1 if moving else 0
        elif self.needs_observation:
            self._ask(background, observation, stamp_ns)
        answer = background.answer(self.decoder.action.period_s if self._spent else self._patience_s)
        if answer is None:
            return
        self._take(*answer, self._asked_ns, self._delay)
        if self._delay and self.needs_observation:
            self._ask(background, observation, stamp_ns)

    def _ask(self, background: BackgroundInference, observation: TensorDict, stamp_ns: int) -> None:
        background.ask(observation, self._prepared, self._state)
        self._asked_ns, self._delay = stamp_ns, 0

    def _take(self, chunk: ActionChunk, state: PolicyState, stamp_ns: int, delay: int) -> None:
        """A chunk that was asked for `delay` periods ago takes over."""
        self._state = state
        values = chunk.values[0].double().numpy()
        if delay >= len(values):
            self.stale += 1
            return
        self.late += delay > 0
        self.info = chunk.info
        self.inferred = True
        self._chunk = values
        self._stamp_ns = stamp_ns
        self._executed = delay
        self._execute = chunk.execute
