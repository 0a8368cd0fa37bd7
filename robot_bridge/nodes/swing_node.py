"""Lets one joint of the simulated arm swing to and fro, as a policy node does with a policy: for demonstrations of what guards an arm."""

from __future__ import annotations

from typing import Any

from rl_core.contract import ContractError
from robot_bridge.control.swing import Swing
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.spin import NodeError, run
from sim_envs.arm.observation import world_contract

JOINT, AMPLITUDE_RAD, PERIOD_S = "panda_joint1", 0.4, 6.0


def make_swing_node(joint: str = JOINT, amplitude_rad: float = AMPLITUDE_RAD, period_s: float = PERIOD_S, **options: Any) -> PolicyNode:
    """The policy node with a `Swing`; `options` are arguments of `LifecycleNode`.

    Raises:
        NodeError: no such joint.
    """
    try:
        swing = Swing(world_contract("reach", "joint_delta"), joint, amplitude_rad=amplitude_rad, period_s=period_s)
    except ContractError as error:
        raise NodeError(str(error)) from error
    return PolicyNode(policy=swing, **options)


def main() -> int:
    """Entry point of `swing_node`."""
    return run(make_swing_node)


if __name__ == "__main__":
    raise SystemExit(main())
