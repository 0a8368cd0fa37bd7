"""What pushes the simulated hand."""

from __future__ import annotations

import numpy as np
import pytest

from sim_envs.arm.push import DAMPING, MAX_FORCE, STIFFNESS, Push
from sim_envs.arm.world import ArmWorld


def test_a_force_is_that_force() -> None:
    push = Push(force=np.array([1.0, 2.0, 3.0]), duration_s=1.0)
    assert push.at(0.0, np.zeros(3)).tolist() == push.at(0.9, np.ones(3)).tolist() == [1.0, 2.0, 3.0]


def test_a_spring_pulls_from_where_the_hand_was_along_the_displacement_and_is_damped() -> None:
    push, start = Push(displacement=np.array([0.0, 0.01, 0.0]), duration_s=1.0), np.array([0.5, 0.1, 0.2])
    assert push.at(0.0, start).tolist() == [0.0, 0.0, 0.0]
    assert push.at(0.35, start) == pytest.approx([0.0, 0.005 * STIFFNESS, 0.0])  # half of the way
    moved = start + [0.0, 0.005, 0.0]
    assert push.at(0.85, moved) == pytest.approx([0.0, 0.005 * STIFFNESS - 0.01 * DAMPING, 0.0])


def test_no_spring_is_stronger_than_the_limit() -> None:
    push = Push(displacement=np.array([0.15, 0.0, 0.0]), duration_s=0.5)
    push.at(0.0, np.zeros(3))
    assert np.linalg.norm(push.at(0.4, np.zeros(3))) == pytest.approx(MAX_FORCE)


def test_a_push_is_a_force_on_the_body_that_the_servos_answer_and_a_reset_ends() -> None:
    world = ArmWorld("reach")
    world.reset(0)
    start = world.state().eef_pos
    world.push(np.array([0.0, 60.0, 0.0]))
    world.advance(150)
    moved = world.state().eef_pos - start
    assert 0.002 < moved[1] < 0.1 and moved[1] > 3 * np.abs(moved[[0, 2]]).max()
    world.push(np.zeros(3))
    world.advance(500)
    assert np.linalg.norm(world.state().eef_pos - start) < 2e-3
    world.push(np.array([0.0, 60.0, 0.0]))
    world.reset(0)
    world.advance(150)
    assert np.linalg.norm(world.state().eef_pos - start) < 2e-3
