"""BackgroundInference: a policy asked on a thread of its own, so that who sends commands never waits for it longer than it wants to."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait

import torch
from tensordict import TensorDict

from rl_core.policy import ActionChunk, Policy, PolicyState

Answer = tuple[ActionChunk, PolicyState]


class BackgroundInference:
    """One question at a time. Questions are answered one after the other, also those whose answer nobody wants any more.

    Args:
        policy: asked on the thread alone.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="inference")
        self._asked: Future[Answer] | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer is waited for."""
        return self._asked is not None

    def ask(self, observation: TensorDict, condition: TensorDict, state: PolicyState) -> None:
        """Begins an inference; what was asked before is forgotten."""
        self.forget()
        self._asked = self._thread.submit(self._act, observation, condition, state)

    def answer(self, wait_s: float) -> Answer | None:
        """The answer, or None where it is not there within `wait_s`; raises what the policy raised."""
        asked = self._asked
        if asked is None or not wait([asked], wait_s).done:
            return None
        self._asked = None
        return asked.result()

    def forget(self) -> None:
        """The answer under way is not wanted."""
        if self._asked is not None:
            self._asked.cancel()
        self._asked = None

    def close(self) -> None:
        """Ends the thread with the inference under way."""
        self.forget()
        self._thread.shutdown(wait=False)

    def _act(self, observation: TensorDict, condition: TensorDict, state: PolicyState) -> Answer:
        with torch.no_grad():  # a thread's own setting
            return self._policy.act(observation, condition, state)
