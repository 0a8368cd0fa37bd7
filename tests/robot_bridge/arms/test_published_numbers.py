"""Every number of an arm that somebody publishes, as it is published. The source stands beside it; whoever changes one changes both."""

from __future__ import annotations

from math import pi, radians

import numpy as np
import pytest

from robot_bridge.arms.franka import FrankaArm, franka_limits
from robot_bridge.arms.servo_model import load_servo_arm
from robot_bridge.arms.trossen import TrossenArm, widowx_limits
from robot_bridge.arms.ur import URArm, ur_limits
from robot_bridge.control.kinematics import Kinematics


def test_panda_limits() -> None:
    """frankaemika/franka_ros, franka_description/robots/panda/joint_limits.yaml; acceleration, jerk: libfranka 0.9.2, rate_limiting.h."""
    limits = franka_limits("panda")
    assert limits.position_max[:7] == (2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973)
    assert limits.position_min[:7] == (-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973)
    assert limits.velocity[:7] == (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61)
    assert limits.stop_acceleration[:7] == (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
    assert limits.stop_jerk[:7] == (7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0)
    assert limits.acceleration[:7] == tuple(a / 2 for a in limits.stop_acceleration[:7])


def test_fr3_limits() -> None:
    """Franka, "Limits for Franka Research 3"; acceleration and jerk: libfranka 0.10 and later, rate_limiting.h. Inside the wider ranges of
    mujoco_menagerie, franka_fr3/fr3.xml.
    """
    limits = franka_limits("fr3")
    assert limits.position_max[:7] == (2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159)
    assert limits.position_min[:7] == (-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159)
    wider = (
        (-2.9007, 2.9007),
        (-1.8361, 1.8361),
        (-2.9007, 2.9007),
        (-3.0770, -0.1169),
        (-2.8763, 2.8763),
        (0.4398, 4.6216),
        (-3.0508, 3.0508),
    )
    assert all(low <= a and b <= high for a, b, (low, high) in zip(limits.position_min, limits.position_max, wider, strict=False))
    assert limits.velocity[:7] == (2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26)
    assert limits.stop_acceleration[:7] == (10.0,) * 7 and limits.stop_jerk[:7] == (5000.0,) * 7


def _modified_dh(rows: list[tuple[float, float, float]], joints: np.ndarray) -> np.ndarray:
    """Pose (4, 4) after Craig's convention: a and alpha of the joint before, d and theta of this one."""
    pose = np.eye(4)
    for (a, d, alpha), theta in zip(rows, [*joints, 0.0], strict=False):
        c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        pose = pose @ np.array([[c, -s, 0, a], [s * ca, c * ca, -sa, -d * sa], [s * sa, c * sa, ca, d * ca], [0, 0, 0, 1]])
    return pose


def test_franka_kinematics() -> None:
    """frankaemika/docs, source/control_parameters.rst; Franka Hand: 0.1034 m from the flange to its own end effector, ours 0.097."""
    rows = [
        (0, 0.333, 0), (0, 0, -pi / 2), (0, 0.316, pi / 2), (0.0825, 0, pi / 2), (-0.0825, 0.384, -pi / 2), (0, 0, pi / 2),
        (0.088, 0, pi / 2), (0, 0.107, 0),
    ]  # fmt: skip
    joints = np.array([0.3, -0.4, 0.2, -2.0, 0.1, 1.9, 0.5])
    flange = _modified_dh(rows, joints)
    position, _ = Kinematics(FrankaArm(host="").description).fk(joints)
    assert position == pytest.approx(flange[:3, 3] + 0.097 * flange[:3, 2], abs=1e-9)


@pytest.mark.parametrize(
    ("model", "velocity", "lengths"),
    [
        ("ur3e", (180, 180, 180, 360, 360, 360), (0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921)),
        ("ur5e", (180, 180, 180, 180, 180, 180), (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996)),
        ("ur10e", (120, 120, 180, 180, 180, 180), (0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655)),
    ],
)
def test_ur_limits_and_kinematics(model: str, velocity: tuple[float, ...], lengths: tuple[float, ...]) -> None:
    """UniversalRobots/Universal_Robots_ROS2_Description, config/MODEL/joint_limits.yaml, degrees; Universal Robots' article "DH parameters
    for calculations of kinematics and dynamics".
    """
    limits = ur_limits(model)  # type: ignore[arg-type]
    assert limits.velocity == pytest.approx(tuple(radians(v) for v in velocity))
    assert limits.position_max == pytest.approx(tuple(radians(v) for v in (360, 360, 180, 360, 360, 360)))
    assert limits.position_min == tuple(-v for v in limits.position_max)
    assert limits.acceleration == pytest.approx((radians(180),) * 6)  # of the UR5e; the others state none
    d1, a2, a3, d4, d5, d6 = lengths
    pose, joints = np.eye(4), np.array([0.1, -1.2, 1.3, -1.4, -1.5, 0.2])
    rows = [(0, d1, pi / 2), (a2, 0, 0), (a3, 0, 0), (0, d4, pi / 2), (0, d5, -pi / 2), (0, d6, 0)]
    for (a, d, alpha), theta in zip(rows, joints, strict=True):  # the standard convention
        c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        pose = pose @ np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]])
    position, _ = Kinematics(URArm(host="", model=model).description).fk(joints)  # type: ignore[arg-type]
    assert position == pytest.approx(pose[:3, 3], abs=1e-9)


def test_widowx_ai() -> None:
    """TrossenRobotics/trossen_arm_description, urdf/macros/_wxai.urdf.xacro; joint_0 and the velocities are the controller's, narrower."""
    limits = widowx_limits()
    published = ((-pi, pi), (0, pi), (0, 3 * pi / 4), (-pi / 2, pi / 2), (-pi / 2, pi / 2), (-pi, pi))
    for low, high, (least, most) in zip(limits.position_min, limits.position_max, published, strict=False):
        assert least - 1e-5 <= low and high <= most + 1e-5
    assert limits.position_max[1:6] == pytest.approx([high for _, high in published[1:]], abs=1e-5)
    assert all(velocity <= 2 * pi for velocity in limits.velocity)
    position, _ = Kinematics(TrossenArm(host="").description).fk(np.zeros(6))
    assert position == pytest.approx([0.02 - 0.264 + 0.245 + 0.06775 + 0.02895 + 0.156, 0.0, 0.05725 + 0.04625 + 0.06], abs=1e-9)


@pytest.mark.parametrize(
    ("arm", "degrees", "zero"),
    [
        # Interbotix/interbotix_ros_manipulators, interbotix_xsarm_descriptions/urdf/vx300s.urdf.xacro
        (
            "vx300s",
            {"shoulder": (-106, 72), "elbow": (-101, 92), "wrist_angle": (-107, 128)},
            (0.05955 + 0.2 + 0.1 + 0.069744 + 0.042825 + 0.025875 + 0.0385, 0.0, 0.079 + 0.04805 + 0.3),
        ),
        # the same, wx250.urdf.xacro; the elbow's lower end there is -123, of TrossenRobotics/interbotix_xsarms_docs -108
        (
            "wx250",
            {"shoulder": (-108, 114), "elbow": (-108, 92), "wrist_angle": (-100, 123)},
            (0.04975 + 0.25 + 0.065 + 0.043 + 0.023 + 0.027575, 0.0, 0.072 + 0.03865 + 0.25),
        ),
    ],
)
def test_interbotix_arms(arm: str, degrees: dict[str, tuple[float, float]], zero: tuple[float, ...]) -> None:
    model = load_servo_arm(arm)
    joints = {joint.name: joint for joint in model.joints}
    for name, ends in degrees.items():
        assert (joints[name].range_min, joints[name].range_max) == pytest.approx([radians(end) for end in ends], abs=2e-5)
    for name in ("waist", "wrist_rotate"):
        assert (joints[name].range_min, joints[name].range_max) == pytest.approx((-pi, pi), abs=2e-5)
    assert all(joint.velocity <= pi for joint in model.joints)  # the descriptions' joint velocity
    assert model.mjcf is not None
    position, _ = Kinematics(model.mjcf).fk(np.zeros(len(model.joints) - 1))
    assert position == pytest.approx(zero, abs=1e-9)


@pytest.mark.parametrize(
    ("arm", "ranges"),
    [
        # TheRobotStudio/SO-ARM100, Simulation/SO100/so100.urdf
        ("so100", [(-2, 2), (0, 3.5), (-3.14158, 0), (-2.5, 1.2), (-3.14158, 3.14158)]),
        # the same, Simulation/SO101/so101_new_calib.urdf
        ("so101", [(-1.91986, 1.91986), (-1.74533, 1.74533), (-1.69, 1.69), (-1.65806, 1.65806), (-2.79253, 2.79253)]),
    ],
)
def test_so_arms(arm: str, ranges: list[tuple[float, float]]) -> None:
    model = load_servo_arm(arm)
    assert [(joint.range_min, joint.range_max) for joint in model.joints[:-1]] == ranges
    assert model.mjcf is not None and Kinematics(model.mjcf).joint_names == model.names[:-1]
    assert {joint.servo.name for joint in model.joints} == {"sts3215"}


def test_koch() -> None:
    """huggingface/lerobot, src/lerobot/robots/koch_follower/koch_follower.py: ids, servos, the elbow's gain, the gripper's mode."""
    model = load_servo_arm("koch_v1_1")
    assert [(joint.id, joint.servo.name) for joint in model.joints] == [
        (1, "xl430-w250"), (2, "xl430-w250"), (3, "xl330-m288"), (4, "xl330-m288"), (5, "xl330-m288"), (6, "xl330-m288"),
    ]  # fmt: skip
    assert model.joints[2].registers["Position_P_Gain"] == 1500 and model.joints[-1].registers["Operating_Mode"] == 5
