"""Geometry of a serial arm as MJCF."""

from __future__ import annotations

import numpy as np
import pytest

from robot_bridge.arms.chain import Link, chain_mjcf
from robot_bridge.control.kinematics import Kinematics


def test_roll_pitch_yaw_turn_about_fixed_axes_as_in_a_urdf() -> None:
    roll, pitch, yaw = 0.3, -0.4, 0.5
    text = chain_mjcf([Link(name="a", xyz=(0.0, 0.0, 1.0), rpy=(roll, pitch, yaw))], tool_xyz=(1.0, 0.0, 0.0))
    kinematics = Kinematics(text)
    x_axis = [np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), -np.sin(pitch)]  # first column of Rz(yaw) Ry(pitch) Rx(roll)
    assert kinematics.fk(np.zeros(1))[0] == pytest.approx(np.array([0.0, 0.0, 1.0]) + x_axis)


def test_joints_turn_about_their_own_axis_within_their_range() -> None:
    links = [Link(name="shoulder", xyz=(0.0, 0.0, 0.2), axis=(0.0, 1.0, 0.0)), Link(name="el&bow", xyz=(0.4, 0.0, 0.0), low=-1.0, high=2.0)]
    kinematics = Kinematics(chain_mjcf(links, tool_xyz=(0.3, 0.0, 0.0)))
    assert kinematics.joint_names == ("shoulder", "el&bow")
    assert kinematics.fk(np.array([-np.pi / 2, 0.0]))[0] == pytest.approx([0.0, 0.0, 0.9])
    assert kinematics.fk(np.array([0.0, np.pi / 2]))[0] == pytest.approx([0.4, 0.3, 0.2])
    target = kinematics.fk(np.array([0.3, 0.4]))
    assert kinematics.ik(*target, np.array([0.1, 0.1])) == pytest.approx([0.3, 0.4], abs=1e-3)
