"""The simulated arm behind the Arm protocol."""

import numpy as np
import pytest

from robot_bridge.arms.base import Arm, ArmLost
from robot_bridge.arms.simulated import SimulatedArm
from sim_envs.arm.world import ArmWorld, SimulationFault
from tests.robot_bridge.control.rig import bench_limits


def test_it_reads_what_the_world_is_and_time_passes_only_by_commands() -> None:
    world = ArmWorld("lift")
    world.reset(0)
    arm = SimulatedArm(world)
    assert isinstance(arm, Arm)
    arm.connect()
    state = arm.read()
    assert state.names == (*world.joint_names, "gripper") == arm.limits.names
    assert (state.positions[:7] == world.state().joint_pos).all() and state.positions[7] == world.state().gripper_pos
    arm.command(state.positions, 0.01)
    assert world.time_s == pytest.approx(0.01) and arm.read().stamp_ns == arm.clock.now_ns == 10_000_000
    world.reset(1)
    assert arm.read().stamp_ns == 10_000_000  # stamps never go back
    arm.stop()
    arm.close()


def test_it_goes_where_it_is_sent() -> None:
    world = ArmWorld("lift")
    world.reset(0)
    arm = SimulatedArm(world)
    target = arm.read().positions + 0.02
    for _ in range(100):
        arm.command(target, 0.01)
    assert arm.read().positions == pytest.approx(target, abs=2e-3)


def test_diverged_physics_is_a_lost_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ArmWorld("lift")
    world.reset(0)
    arm = SimulatedArm(world)

    def diverge(substeps: int) -> None:
        raise SimulationFault("physics diverged")

    monkeypatch.setattr(world, "advance", diverge)
    with pytest.raises(ArmLost, match="diverged"):
        arm.command(np.zeros(8), 0.01)


def test_limits_of_another_arm_are_refused() -> None:
    with pytest.raises(ValueError, match="panda_joint1"):
        SimulatedArm(ArmWorld("lift"), bench_limits())
