"""TimedPolicy: the policy of a policy node, with the time that each of its actions took."""

from __future__ import annotations

import time

from tensordict import TensorDict

from rl_core.policy import ActionChunk, Policy, PolicyState
from robot_bridge.nodes.latency import Latency


class TimedPolicy:
    """A policy whose `act` adds to the stage `inference`."""

    def __init__(self, policy: Policy, latency: Latency) -> None:
        self._policy = policy
        self._latency = latency
        self.contract = policy.contract
        self.prepare = policy.prepare
        self.reset = policy.reset
        self.reset_rows = policy.reset_rows

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        start = time.perf_counter()
        result = self._policy.act(obs, condition, state)
        self._latency.add("inference", time.perf_counter() - start)
        return result
