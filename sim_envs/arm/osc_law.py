"""Operational space control in compiled code: robosuite 1.5.2's `OSC_POSE` law, evaluated at every physics step.

Khatib, "A unified approach for motion and force control of robot manipulators: the operational space formulation"
(1987), as robosuite's default Panda configuration uses it: fixed impedance, position and orientation decoupled, goals
relative to the achieved pose, axes of the arm's base link, no interpolation. With the tool's pose (p, R), Jacobian rows
(J_p, J_r), the arm's block M of the mass matrix, bias forces c and the posture q_0 at reset:

    goal     p* = p + d_p,   R* = exp(d_r) R                      once a policy step; d = clip(action, -1, 1) * scale
    e_r      = 1/2 sum_i R_i x R*_i                               over the columns i
    f        = (J_p M^-1 J_p^T)^-1 (kp (p* - p) - kd J_p qd)
    m        = (J_r M^-1 J_r^T)^-1 (kp e_r      - kd J_r qd)      kd = 2 sqrt(kp)
    a        = kn (q_0 - q) - 2 sqrt(kn) qd                       posture, acts in the null space of J = (J_p, J_r)
    tau      = J^T (f, m) + c + M a - J^T (J M^-1 J^T)^-1 J a

The last two terms are robosuite's N^T M a with N = I - M^-1 J^T (J M^-1 J^T)^-1 J, multiplied out.

All compiled functions stay in this one file: Numba's cache on disk notices changes of a function's own file only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

POSITION_SCALE = 0.05
"""Metres of goal displacement at an action of 1."""
ROTATION_SCALE = 0.5
"""Radians of goal rotation at an action of 1."""
STIFFNESS = 150.0
DAMPING = 2.0 * STIFFNESS**0.5
POSTURE_STIFFNESS = 10.0
POSTURE_DAMPING = 2.0 * POSTURE_STIFFNESS**0.5
SINGULAR = 1e-15
"""Relative pivot below which a direction counts as singular; NumPy's default for the pseudo-inverse that robosuite takes."""


@njit(cache=True, nogil=True)
def factorise(matrix: np.ndarray) -> None:
    """Cholesky factor L of a symmetric positive semi-definite matrix (n, n), in place of its lower triangle.

    A singular direction gets a zero column, so that `solve` gives it no component, as a pseudo-inverse does.
    """
    n = matrix.shape[0]
    floor = 0.0
    for i in range(n):
        floor = max(floor, SINGULAR * matrix[i, i])
    for j in range(n):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if pivot <= floor:
            for i in range(j, n):
                matrix[i, j] = 0.0
            continue
        root = np.sqrt(pivot)
        matrix[j, j] = root
        for i in range(j + 1, n):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = total / root


@njit(cache=True, nogil=True)
def solve(factor: np.ndarray, vector: np.ndarray, half: bool) -> None:
    """Solves L L^T x = vector in place of `vector` (n,); with `half`, only L x = vector."""
    n = factor.shape[0]
    for i in range(n):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i] if factor[i, i] > 0.0 else 0.0
    if half:
        return
    for i in range(n - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, n):
            total -= factor[k, i] * vector[k]
        vector[i] = total / factor[i, i] if factor[i, i] > 0.0 else 0.0


@njit(cache=True, nogil=True)
def rotation(vector: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a rotation vector (3,) in rad (Rodrigues' formula)."""
    angle = np.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    matrix = np.zeros((3, 3))
    if angle == 0.0:
        matrix[0, 0] = matrix[1, 1] = matrix[2, 2] = 1.0
        return matrix
    cosine, sine = np.cos(angle), np.sin(angle)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for column in range(3):
            matrix[i, column] = (1.0 - cosine) * vector[i] * vector[column] / angle**2
        matrix[i, i] += cosine
        matrix[i, j] -= sine * vector[k] / angle
        matrix[i, k] += sine * vector[j] / angle
    return matrix


@njit(cache=True, nogil=True)
def goal_pose(delta: np.ndarray, base: np.ndarray, position: np.ndarray, matrix: np.ndarray, goal: np.ndarray) -> None:
    """Writes p* (3) and R* (9, row by row) in world axes into `goal` (12,).

    Args:
        delta: (6,) displacement in m and rotation vector in rad, in axes of the base link.
        base: (3, 3) base link's axes in the world.
        position: (3,) the tool's present position; matrix: (3, 3) its axes; both in the world.
        goal: (12,) result.
    """
    # Written out: NumPy's matrix product would double the time to compile.
    turn = np.zeros(3)
    for i in range(3):
        goal[i] = position[i]
        for k in range(3):
            goal[i] += base[i, k] * delta[k]
            turn[i] += base[i, k] * delta[3 + k]
    turned = rotation(turn)
    for i in range(3):
        for j in range(3):
            goal[3 + 3 * i + j] = turned[i, 0] * matrix[0, j] + turned[i, 1] * matrix[1, j] + turned[i, 2] * matrix[2, j]


@njit(cache=True, nogil=True)
def torques(
    q: np.ndarray, qd: np.ndarray, posture: np.ndarray, goal: np.ndarray, position: np.ndarray, matrix: np.ndarray,
    anchors: np.ndarray, axes: np.ndarray, inertia: np.ndarray, bias: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The unclipped motor torques of the law above.

    Args:
        q, qd, posture: (n,) joint positions, velocities and q_0 in rad, rad/s, rad.
        goal: (12,) goal pose as `goal_pose` writes it.
        position, matrix: (3,), (3, 3) the tool's pose in the world.
        anchors, axes: (n, 3) the hinges' points and unit axes in the world.
        inertia: (n, n) the arm's block of the mass matrix, lower triangle; kg m^2.
        bias: (n,) Coriolis, centrifugal and gravity torques in N m.

    Returns:
        (n,) torques in N m.
    """
    n = q.shape[0]
    # A hinge with axis z through b moves the tool with J_p = z x (p - b), J_r = z.
    jacobian = np.empty((n, 6))
    posture_acceleration = np.empty(n)
    task_velocity = np.zeros(6)
    task_posture = np.zeros(6)
    for j in range(n):
        x, y, z = axes[j, 0], axes[j, 1], axes[j, 2]
        rx, ry, rz = position[0] - anchors[j, 0], position[1] - anchors[j, 1], position[2] - anchors[j, 2]
        jacobian[j, 0] = y * rz - z * ry
        jacobian[j, 1] = z * rx - x * rz
        jacobian[j, 2] = x * ry - y * rx
        jacobian[j, 3], jacobian[j, 4], jacobian[j, 5] = x, y, z
        posture_acceleration[j] = POSTURE_STIFFNESS * (posture[j] - q[j]) - POSTURE_DAMPING * qd[j]
        for i in range(6):
            task_velocity[i] += jacobian[j, i] * qd[j]
            task_posture[i] += jacobian[j, i] * posture_acceleration[j]

    # M a before M is overwritten by its factor L; W = L^-1 J^T, so J M^-1 J^T = W^T W.
    torque = bias.copy()
    for i in range(n):
        for j in range(n):
            torque[i] += (inertia[i, j] if j <= i else inertia[j, i]) * posture_acceleration[j]
    factor = inertia.copy()
    factorise(factor)
    whitened = np.empty((6, n))
    for i in range(6):
        for j in range(n):
            whitened[i, j] = jacobian[j, i]
        solve(factor, whitened[i], True)
    task = np.empty((6, 6))
    for i in range(6):
        for k in range(i + 1):
            total = 0.0
            for j in range(n):
                total += whitened[i, j] * whitened[k, j]
            task[i, k] = total
    task_position = task[:3, :3].copy()
    task_rotation = task[3:, 3:].copy()

    wrench = np.empty(6)
    for i in range(3):
        wrench[i] = STIFFNESS * (goal[i] - position[i]) - DAMPING * task_velocity[i]
        error = 0.0
        a, b = (i + 1) % 3, (i + 2) % 3
        for column in range(3):
            error += matrix[a, column] * goal[3 + 3 * b + column] - matrix[b, column] * goal[3 + 3 * a + column]
        wrench[3 + i] = STIFFNESS * 0.5 * error - DAMPING * task_velocity[3 + i]
    factorise(task_position)
    factorise(task_rotation)
    factorise(task)
    solve(task_position, wrench[:3], False)
    solve(task_rotation, wrench[3:], False)
    solve(task, task_posture, False)
    for j in range(n):
        for i in range(6):
            torque[j] += jacobian[j, i] * (wrench[i] - task_posture[i])
    return torque


class Memory(NamedTuple):
    """What the law remembers between steps; all float64.

    Attributes:
        posture: (n,) q_0, rad.
        goal: (12,) goal pose in the world, as `goal_pose` writes it.
        delta: (6,) the scaled action that makes the next goal, m and rad, axes of the base link.
        pending: (1,) 1 where the next physics step must make a goal of `delta`, else 0.
        gripper: (fingers,) targets in -1 .. 1 of each finger's servo range.
    """

    posture: np.ndarray
    goal: np.ndarray
    delta: np.ndarray
    pending: np.ndarray
    gripper: np.ndarray


class Arm(NamedTuple):
    """The arm's places in the model, the base link's axes, the motors' limits (n, 2), and views of MuJoCo's own arrays."""

    joints: np.ndarray
    qpos_index: np.ndarray
    dofs: np.ndarray
    motors: np.ndarray
    inertia_index: np.ndarray
    site: int
    base: np.ndarray
    limits: np.ndarray
    qpos: np.ndarray
    qvel: np.ndarray
    anchors: np.ndarray
    axes: np.ndarray
    site_position: np.ndarray
    site_matrix: np.ndarray
    mass: np.ndarray
    bias: np.ndarray
    ctrl: np.ndarray


@njit(cache=True, nogil=True)
def advance(
    step1: Callable[[int, int], None], step2: Callable[[int, int], None], model: int, data: int, substeps: int, memory: Memory, arm: Arm
) -> None:
    """Runs physics steps of `step1`, the law's torques, `step2`.

    Args:
        step1, step2: MuJoCo's `mj_step1` and `mj_step2`.
        model, data: addresses of its mjModel and mjData.
        substeps: physics steps to run.
        memory: read, and its goal renewed where one is pending.
        arm: where the numbers are.
    """
    n = arm.dofs.shape[0]
    inertia = np.empty((n, n))
    for _ in range(substeps):
        step1(model, data)
        position, matrix = arm.site_position[arm.site], arm.site_matrix[arm.site].reshape(3, 3)
        if memory.pending[0] > 0.0:
            goal_pose(memory.delta, arm.base, position, matrix, memory.goal)
            memory.pending[0] = 0.0
        for i in range(n):
            for j in range(i + 1):
                inertia[i, j] = arm.mass[arm.inertia_index[i, j]]
        torque = torques(
            arm.qpos[arm.qpos_index], arm.qvel[arm.dofs], memory.posture, memory.goal, position, matrix,
            arm.anchors[arm.joints], arm.axes[arm.joints], inertia, arm.bias[arm.dofs],
        )  # fmt: skip
        for i in range(n):
            arm.ctrl[arm.motors[i]] = min(max(torque[i], arm.limits[i, 0]), arm.limits[i, 1])
        step2(model, data)
