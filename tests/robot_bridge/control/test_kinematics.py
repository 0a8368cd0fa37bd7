"""Forward and inverse kinematics of the arm alone."""

import mink
import numpy as np
import pytest

from robot_bridge.control.kinematics import IKError, Kinematics
from robot_bridge.control.rotation import angle_between, from_rotation_vector, inverse, multiply, to_rotation_vector
from sim_envs.arm.world import ArmWorld


@pytest.fixture(scope="module")
def world() -> ArmWorld:
    return ArmWorld("lift")


@pytest.fixture(scope="module")
def kinematics() -> Kinematics:
    return Kinematics(ArmWorld.kinematics_xml())


def test_forward_kinematics_is_the_worlds(world: ArmWorld, kinematics: Kinematics) -> None:
    for seed in range(5):
        world.reset(seed)
        reading = world.state()
        position, quaternion = kinematics.fk(reading.joint_pos)
        assert position == pytest.approx(reading.eef_pos, abs=1e-12)
        assert angle_between(quaternion, reading.eef_quat) < 1e-6


def test_inverse_undoes_forward(kinematics: Kinematics) -> None:
    rng = np.random.default_rng(0)
    home = np.array([0.0, 0.2, 0.0, -2.6, 0.0, 2.9, 0.78])
    for _ in range(20):
        position, quaternion = kinematics.fk(home + rng.uniform(-0.15, 0.15, 7))
        solved = kinematics.ik(position, quaternion, home)
        reached, turned = kinematics.fk(solved)
        assert np.linalg.norm(reached - position) < 2e-5
        assert angle_between(turned, quaternion) < 2e-4


def test_asking_for_the_present_pose_moves_nothing(kinematics: Kinematics) -> None:
    joints = np.array([0.1, 0.2, -0.1, -2.5, 0.1, 2.8, 0.7])
    assert (kinematics.ik(*kinematics.fk(joints), joints) == joints).all()


def test_the_same_question_has_the_same_answer_whatever_was_asked_before(kinematics: Kinematics) -> None:
    joints = np.array([0.1, 0.2, -0.1, -2.5, 0.1, 2.8, 0.7])
    position, quaternion = kinematics.fk(joints)
    first = kinematics.ik(position + 0.03, quaternion, joints)
    kinematics.ik(position - 0.05, quaternion, joints)
    assert (kinematics.ik(position + 0.03, quaternion, joints) == first).all()
    assert (Kinematics(ArmWorld.kinematics_xml()).ik(position + 0.03, quaternion, joints) == first).all()


def test_out_of_reach_not_finite_and_unnormalised_are_named_errors(kinematics: Kinematics) -> None:
    joints = np.array([0.1, 0.2, -0.1, -2.5, 0.1, 2.8, 0.7])
    position, quaternion = kinematics.fk(joints)
    with pytest.raises(IKError, match="out of reach"):
        kinematics.ik(position + (2.0, 0.0, 0.0), quaternion, joints)
    with pytest.raises(IKError, match="finite"):
        kinematics.ik(position * np.nan, quaternion, joints)
    with pytest.raises(IKError, match="norm 1"):
        kinematics.ik(position, quaternion * 2, joints)


def test_an_infeasible_program_is_a_named_error(kinematics: Kinematics, monkeypatch: pytest.MonkeyPatch) -> None:
    """mink 0.0.5 ends in a bare AssertionError where the quadratic program has no solution."""
    joints = np.array([0.1, 0.2, -0.1, -2.5, 0.1, 2.8, 0.7])
    position, quaternion = kinematics.fk(joints)

    class Impossible(mink.ConfigurationLimit):
        def compute_qp_inequalities(self, configuration: mink.Configuration, dt: float):  # type: ignore[no-untyped-def]
            constraint = super().compute_qp_inequalities(configuration, dt)
            return type(constraint)(G=constraint.G, h=np.full_like(constraint.h, -1.0))

    monkeypatch.setattr(kinematics, "_limit", Impossible(kinematics._model))
    with pytest.raises(IKError, match="infeasible"):
        kinematics.ik(position + 0.01, quaternion, joints)


def test_an_unknown_site_lists_the_sites() -> None:
    with pytest.raises(ValueError, match="ee"):
        Kinematics(ArmWorld.kinematics_xml(), site="tool")


def test_rotation_vectors_and_quaternions_agree() -> None:
    yaw = from_rotation_vector(np.array([0.0, 0.0, np.pi / 2]))
    assert yaw == pytest.approx([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])  # x y z w
    rng = np.random.default_rng(1)
    for _ in range(50):
        vector = rng.uniform(-1.7, 1.7, 3)
        assert to_rotation_vector(from_rotation_vector(vector)) == pytest.approx(vector, abs=1e-9)
        quaternion = from_rotation_vector(vector)
        assert multiply(quaternion, inverse(quaternion)) == pytest.approx([0, 0, 0, 1], abs=1e-12)
        assert angle_between(quaternion, -quaternion) < 1e-6
    assert to_rotation_vector(np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(np.zeros(3))
