"""Inference beside the sender: late chunks take over where they are due, and a period is never kept waiting."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from tensordict import TensorDict

from rl_core.policy import ActionChunk, PolicyState
from robot_bridge.control.background import BackgroundInference
from robot_bridge.control.decode import ActionDecoder
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.runner import PolicyRunner
from sim_envs.arm.observation import world_contract
from sim_envs.arm.world import ArmWorld
from tests.robot_bridge.control.test_runner import EMPTY, state
from tests.robot_bridge.control.toy_policies import Scripted

WAIT_S = 10.0
"""Longer than any test needs."""


class Gated(Scripted):
    """Answers when it is let; a chunk's number is in the thousandths of its first column, its actions count up from 0.1 in tenths."""

    def __init__(self, horizon: int, execute: int) -> None:
        contract = world_contract("lift", "joint_delta")
        action = dataclasses.replace(contract.action, horizon=horizon, execute=execute)
        chunks = []
        for number in range(40):
            chunk = np.zeros((horizon, 8))
            chunk[:, 0] = np.arange(1, horizon + 1) / 10 + number / 1000
            chunks.append(chunk)
        super().__init__(dataclasses.replace(contract, action=action), chunks, execute)
        self.let = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        self.begun.release()
        assert self.let.acquire(timeout=WAIT_S)
        return super().act(obs, condition, state)


class Bench:
    """A runner with a gated policy; `step` gives (chunk number, action number) of what was sent."""

    def __init__(self, kinematics: Kinematics, *, horizon: int = 5, execute: int = 1) -> None:
        self.policy = Gated(horizon, execute)
        self.runner = PolicyRunner(self.policy, ActionDecoder(self.policy.contract.action, kinematics), sender="a")
        self.measured = state(kinematics)
        self.now = 0

    def step(self, *, answered: bool = False, moving: bool = True, accepts: bool = True) -> tuple[int, int] | None:
        """One period; with `answered` the policy answers within it."""
        if answered:
            self.policy.let.release()
        self.runner._patience_s = WAIT_S if answered else 0.0
        if answered or not self.runner._spent:
            command = self._command(moving, accepts)
        else:  # nothing to send: do not wait out the period
            action = self.runner.decoder.action
            self.runner.decoder.action = dataclasses.replace(action, period_s=0.002)
            command = self._command(moving, accepts)
            self.runner.decoder.action = action
        if command is None:
            return None
        assert self.runner.action is not None
        tenths, thousandths = divmod(round(1000 * self.runner.action[0]), 100)
        assert command.offset_s == pytest.approx(0.05 * (tenths - 1))
        return thousandths, tenths - 1

    def _command(self, moving: bool, accepts: bool):  # type: ignore[no-untyped-def]
        self.now += 1
        return self.runner.step(EMPTY, self.now, self.measured, moving=moving, accepts=accepts)


@pytest.fixture(scope="module")
def kinematics() -> Kinematics:
    return Kinematics(ArmWorld.kinematics_xml())


@pytest.fixture
def bench(kinematics: Kinematics) -> Iterator[Bench]:
    bench = Bench(kinematics)
    bench.runner.infer_in_background(0.0)
    yield bench
    bench.policy.let.release(100)
    bench.runner.close()


def test_a_policy_that_answers_in_time_acts_as_without_the_thread(bench: Bench, kinematics: Kinematics) -> None:
    plain = Bench(kinematics)
    plain.policy.let.release(100)
    assert [bench.step(answered=True) for _ in range(6)] == [plain.step() for _ in range(6)] == [(k, 0) for k in range(6)]
    assert bench.runner.late == bench.runner.stale == 0


def test_a_late_chunk_takes_over_at_the_action_that_is_due(bench: Bench) -> None:
    """Asked at a period, answered two later: its first two actions belong to periods that the open chunk has already served."""
    assert bench.step(answered=True) == (0, 0)
    assert [bench.step(), bench.step()] == [(0, 1), (0, 2)]  # the open chunk goes on
    assert bench.step(answered=True) == (1, 2)
    assert bench.runner.late == 1 and bench.policy.asked == 2
    # it was asked again at once, with what was seen when the late chunk came
    assert bench.step(answered=True) == (2, 1)


def test_the_stamp_of_a_late_chunk_is_that_of_its_observation(bench: Bench) -> None:
    bench.step(answered=True)
    asked_at = bench.now + 1
    bench.step()
    bench.step(answered=True)
    assert bench.runner._stamp_ns == asked_at


def test_a_chunk_that_comes_after_its_last_action_is_not_used_and_the_policy_is_asked_anew(bench: Bench) -> None:
    assert bench.step(answered=True) == (0, 0)
    assert [bench.step() for _ in range(6)] == [(0, 1), (0, 2), (0, 3), (0, 4), None, None]
    bench.policy.let.release()
    bench.runner._patience_s = WAIT_S
    assert bench._command(True, True) is None  # 6 periods late, of 5 actions
    assert bench.runner.stale == 1
    assert bench.step(answered=True) == (2, 1)


def test_while_the_arm_stands_a_slow_first_inference_is_not_thrown_away(bench: Bench) -> None:
    """An arm does not move before its first command: an inference of several periods must still lead to one."""
    assert [bench.step(moving=False) for _ in range(4)] == [None] * 4
    assert bench.step(answered=True, moving=False) == (0, 0)
    assert bench.policy.asked == 1


def test_what_was_under_way_when_the_arm_stopped_or_the_task_changed_is_never_sent(bench: Bench) -> None:
    for interrupt in (
        lambda: bench.step(accepts=False),
        lambda: bench.runner.set_condition({"task": "another"}),
        lambda: bench.runner.reset(3),
    ):
        bench.step(answered=True)
        while bench.policy.begun.acquire(blocking=False):
            pass
        bench.step()
        assert bench.policy.begun.acquire(timeout=WAIT_S)  # another inference is under way
        interrupt()
        number = bench.policy.asked
        bench.policy.let.release()  # the forgotten answer
        sent = bench.step(answered=True)
        assert sent == (number + 1, 0)


def test_an_error_of_the_policy_reaches_who_asked() -> None:
    class Faulty(Gated):
        def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
            raise TimeoutError("its own")

    policy = Faulty(5, 1)
    background = BackgroundInference(policy)
    background.ask(EMPTY, policy.prepare({}), policy.reset([0]))
    with pytest.raises(TimeoutError, match="its own"):
        background.answer(WAIT_S)
    assert not background.busy and background.answer(0.0) is None
    background.close()
