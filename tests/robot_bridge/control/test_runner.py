"""A policy's chunks become commands, one a period."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tensordict import TensorDict

from robot_bridge.arms.base import ArmState
from robot_bridge.control.decode import ActionDecoder, ActionError
from robot_bridge.control.kinematics import IKError, Kinematics
from robot_bridge.control.runner import PolicyRunner
from sim_envs.arm.observation import world_contract
from sim_envs.arm.world import ArmWorld
from tests.robot_bridge.control.toy_policies import Scripted

HOME = np.array([0.0, 0.2, 0.0, -2.5, 0.0, 2.8, 0.7, 0.04])
EMPTY = TensorDict({}, batch_size=[1])


@pytest.fixture(scope="module")
def kinematics() -> Kinematics:
    return Kinematics(ArmWorld.kinematics_xml())


def state(kinematics: Kinematics) -> ArmState:
    position, quaternion = kinematics.fk(HOME[:7])
    names = (*kinematics.joint_names, "gripper")
    return ArmState(stamp_ns=0, names=names, positions=HOME, velocities=np.zeros(8), ee_pos=position, ee_quat=quaternion)


def runner(kinematics: Kinematics, *chunks: object, execute: int, meaning: str = "delta") -> tuple[PolicyRunner, Scripted]:
    contract = world_contract("lift", "joint_delta")
    action = dataclasses.replace(contract.action, meaning=meaning, horizon=len(chunks[0]), execute=execute)  # type: ignore[arg-type]
    contract = dataclasses.replace(contract, action=action)
    policy = Scripted(contract, list(chunks), execute)
    return PolicyRunner(policy, ActionDecoder(action, kinematics), sender="a"), policy


def test_a_chunk_is_executed_action_by_action_on_one_observation(kinematics: Kinematics) -> None:
    chunk = np.linspace(0.1, 0.4, 4)[:, None] * np.ones(8)
    run, policy = runner(kinematics, chunk, execute=3)
    for sent in range(7):
        command = run.step(EMPTY, 1000 + sent, state(kinematics))
        assert command is not None
        executed = sent % 3
        assert command.positions[0, 0] == pytest.approx(HOME[0] + 0.1 * chunk[executed, 0], abs=1e-7)
        assert command.offset_s == pytest.approx(0.05 * executed)
        assert command.stamp_ns == 1000 + sent - executed  # the chunk's observation, not the newest
        assert run.inferred == (executed == 0)
    assert policy.asked == 3


def test_an_absolute_chunk_is_sent_with_all_that_is_left_of_it(kinematics: Kinematics) -> None:
    run, _ = runner(kinematics, np.linspace(0.1, 0.4, 4)[:, None] * np.ones(8), execute=3, meaning="absolute")
    lengths = []
    for _ in range(4):
        command = run.step(EMPTY, 0, state(kinematics))
        assert command is not None
        lengths.append(len(command.positions))
    assert lengths == [4, 3, 2, 4]


def test_while_the_arm_accepts_nothing_the_policy_is_not_asked_and_the_chunk_is_dropped(kinematics: Kinematics) -> None:
    run, policy = runner(kinematics, np.zeros((4, 8)), execute=4)
    run.step(EMPTY, 0, state(kinematics))
    for _ in range(5):
        assert run.step(EMPTY, 1, state(kinematics), accepts=False) is None
    assert policy.asked == 1
    command = run.step(EMPTY, 2, state(kinematics))
    assert command is not None and policy.asked == 2 and (command.stamp_ns, command.offset_s) == (2, 0.0)


def test_an_arm_that_does_not_move_gets_a_fresh_chunk(kinematics: Kinematics) -> None:
    run, policy = runner(kinematics, np.zeros((4, 8)), execute=4)
    for _ in range(3):
        assert run.step(EMPTY, 0, state(kinematics), moving=False) is not None
    assert policy.asked == 3


def test_a_held_pose_still_gets_inference(kinematics: Kinematics) -> None:
    """The same observation over and over for 5 s: the policy is asked every period and every period has a command."""
    run, policy = runner(kinematics, np.zeros((1, 8)), execute=1)
    commands = [run.step(EMPTY, 0, state(kinematics)) for _ in range(100)]
    assert None not in commands and policy.asked == 100


def test_a_condition_is_prepared_once_and_ends_the_chunk(kinematics: Kinematics) -> None:
    run, policy = runner(kinematics, np.zeros((4, 8)), execute=4)
    run.step(EMPTY, 0, state(kinematics))
    run.set_condition({"task": "lift"})
    run.step(EMPTY, 1, state(kinematics))
    assert policy.asked == 2 and policy.conditions == [{}, {"task": "lift"}]


def test_a_faulty_action_or_unreachable_pose_is_an_error_and_drops_the_chunk(
    kinematics: Kinematics, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, policy = runner(kinematics, np.full((4, 8), np.nan), execute=4)
    with pytest.raises(ActionError):
        run.step(EMPTY, 0, state(kinematics))
    assert run.needs_observation

    def unreachable(*_: object, **__: object) -> None:
        raise IKError("out of reach")

    run, policy = runner(kinematics, np.zeros((4, 8)), execute=4)
    monkeypatch.setattr(run.decoder, "decode", unreachable)
    with pytest.raises(IKError):
        run.step(EMPTY, 0, state(kinematics))
    assert run.needs_observation and policy.asked == 1
