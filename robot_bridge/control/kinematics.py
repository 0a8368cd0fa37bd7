"""Kinematics of the arm alone: forward by MuJoCo, inverse by mink."""

from __future__ import annotations

import mink
import mujoco
import numpy as np
from numpy.typing import NDArray

_ITERATIONS = 20
_CONVERGED = (1e-5, 1e-4)  # m, rad: no further iteration is worth its time
_REACHED = (1e-3, 1e-2)  # m, rad: a solution further off is no solution
_DAMPING = 1e-8


class IKError(RuntimeError):
    """No joint positions reach the pose; the arm must hold."""


class Kinematics:
    """Forward and inverse kinematics in frame `base`; the same inputs always give the same result.

    Args:
        mjcf: MJCF text of the arm alone (its joints and nothing else that moves), world frame = base frame.
        site: name of the site that is the end effector.

    Raises:
        ValueError: the text cannot be loaded, or has no such site.
    """

    def __init__(self, mjcf: str, *, site: str = "ee") -> None:
        self._model = mujoco.MjModel.from_xml_string(mjcf)
        sites = [self._model.site(i).name for i in range(self._model.nsite)]
        if site not in sites:
            raise ValueError(f"no site {site!r} in the kinematic model; sites: {sites}")
        self._site = self._model.site(site).id
        self.joint_names = tuple(self._model.joint(i).name for i in range(self._model.njnt))
        self._low, self._high = self._model.jnt_range.T.copy()
        self._data = mujoco.MjData(self._model)
        self._configuration = mink.Configuration(self._model)
        self._task = mink.FrameTask(frame_name=site, frame_type="site", position_cost=1.0, orientation_cost=0.3)
        self._limit = mink.ConfigurationLimit(self._model, gain=1.0)

    def fk(self, joints: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """End-effector position (3,), metres, and orientation (4,) x y z w at `joints` (J,), rad."""
        data = self._data
        data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, data)
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, data.site_xmat[self._site])
        return data.site_xpos[self._site].copy(), quaternion[[1, 2, 3, 0]]

    def ik(self, position: NDArray[np.float64], quaternion: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Joint positions (J,) that reach a pose, found from `start` (J,) by repeated quadratic programs.

        Each step minimises |J dq - e|^2 + damping |dq|^2 within the joint range (mink.solve_ik), e the pose error as a body twist.

        Args:
            position: (3,) metres.
            quaternion: (4,) x y z w, norm 1.
            start: where to begin, the measured joints.

        Raises:
            IKError: not finite, norm not 1, the program is infeasible, or the pose is out of reach (off by more than 1 mm or 10 mrad).
        """
        if not (np.isfinite(position).all() and abs(float(np.linalg.norm(quaternion)) - 1) < 1e-3):
            raise IKError(f"pose {position.tolist()}, {quaternion.tolist()}: finite numbers and a quaternion of norm 1 needed")
        configuration, task = self._configuration, self._task
        wxyz = quaternion[[3, 0, 1, 2]] / np.linalg.norm(quaternion)
        task.set_target(mink.SE3.from_rotation_and_translation(mink.SO3(wxyz), position))
        configuration.update(np.clip(start, self._low, self._high))
        for _ in range(_ITERATIONS):
            error = task.compute_error(configuration)
            off, turned = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
            if off <= _CONVERGED[0] and turned <= _CONVERGED[1]:
                return configuration.q
            try:
                velocity = mink.solve_ik(configuration, [task], 1.0, "quadprog", damping=_DAMPING, limits=[self._limit])
            except AssertionError as failure:  # mink 0.0.5's only sign of an infeasible program
                raise IKError(f"inverse kinematics is infeasible from joints {start.tolist()}") from failure
            configuration.update(np.clip(configuration.integrate(velocity, 1.0), self._low, self._high))
        error = task.compute_error(configuration)
        off, turned = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
        if off <= _REACHED[0] and turned <= _REACHED[1]:
            return configuration.q
        raise IKError(f"pose out of reach by {off * 1000:.1f} mm, {turned * 1000:.0f} mrad: position {position.round(4).tolist()}")
