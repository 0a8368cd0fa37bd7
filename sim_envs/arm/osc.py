"""OscPose: drives an arm and its two-finger gripper as robosuite's `OSC_POSE` and `PandaGripper` do, at the speed of C.

One call of `advance` runs the physics steps and the law of `osc_law.py` in one compiled loop. Each step is MuJoCo's
`mj_step1`, the torques, `mj_step2`: the order of robosuite's `MujocoEnv.step` with `lite_physics`. The first construction on a
machine compiles for some seconds; the result is kept on disk.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np
from numba import types
from numba.core.typing import Signature
from numba.experimental import function_type  # noqa: F401  makes a WrapperAddressProtocol an argument

from sim_envs.arm import osc_law

ACTION_SIZE = 7
GRIPPER_SPEED = 0.2
"""Share of the half range by which a policy step moves the fingers' target (robosuite's `PandaGripper.speed`)."""


class _Step(types.WrapperAddressProtocol):
    """MuJoCo's `void name(const mjModel*, mjData*)`, out of the shared library that its Python bindings have loaded.

    Given to compiled code as an argument: code that holds a C address itself could not be cached on disk.
    """

    def __init__(self, name: str) -> None:
        folder = Path(mujoco.__file__).parent
        found = [path for path in folder.rglob("*") if path.name.startswith(("libmujoco.", "mujoco.dll"))]
        if not found:
            raise FileNotFoundError(f"no libmujoco in {folder}; reinstall the mujoco package")
        self._function = getattr(ctypes.CDLL(str(found[0])), name)
        self._function.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        self._function.restype = None

    def __call__(self, model: int, data: int) -> None:
        """For Python; compiled code calls the address."""
        self._function(model, data)

    def __wrapper_address__(self) -> int:
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def signature(self) -> Signature:
        return types.void(types.intp, types.intp)


_STEP1 = _Step("mj_step1")
_STEP2 = _Step("mj_step2")


class OscPose:
    """robosuite's default Panda controller and gripper on a compiled MuJoCo model.

    Args:
        model: compiled model; its arm actuators are plain motors, its finger actuators position servos.
        data: the world's state. Reset it in place; the controller keeps views of its arrays.
        joints: the arm's hinge joints from base to tool.
        fingers: the two finger slide joints.
        site: the tool: its pose is what the goals are about.

    Raises:
        ValueError: a joint without an actuator, not a hinge, or not in one chain.
        KeyError: a name that the model lacks (MuJoCo's message lists the valid ones).
    """

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData, *, joints: Sequence[str], fingers: Sequence[str], site: str = "ee"
    ) -> None:
        ids = [model.joint(name).id for name in joints]
        wrong = [name for name, i in zip(joints, ids, strict=True) if model.jnt_type[i] != mujoco.mjtJoint.mjJNT_HINGE]
        if wrong:
            raise ValueError(f"operational space control needs hinge joints; not hinges: {wrong}")
        dofs = model.jnt_dofadr[ids].astype(np.int64)
        base = model.body_parentid[model.jnt_bodyid[ids[0]]]
        mujoco.mj_kinematics(model, data)
        motors = np.array([_actuator(model, name) for name in joints])
        self.model, self.data = model, data
        self._arm = osc_law.Arm(
            joints=np.array(ids, dtype=np.int64), qpos_index=model.jnt_qposadr[ids].astype(np.int64), dofs=dofs, motors=motors,
            inertia_index=_inertia_index(model, dofs), site=int(model.site(site).id), base=data.xmat[base].reshape(3, 3).copy(),
            limits=model.actuator_ctrlrange[motors].copy(), qpos=data.qpos, qvel=data.qvel, anchors=data.xanchor, axes=data.xaxis,
            site_position=data.site_xpos, site_matrix=data.site_xmat, mass=data.qM, bias=data.qfrc_bias, ctrl=data.ctrl,
        )  # fmt: skip
        self._finger_motors = np.array([_actuator(model, name) for name in fingers])
        low, high = model.actuator_ctrlrange[self._finger_motors].T
        self._finger_middle, self._finger_half = (high + low) / 2, (high - low) / 2
        # A finger's servo range runs from closed, at 0, to open: closing means moving its target towards 0.
        self._closing = -np.sign(self._finger_middle)
        self._scale = np.repeat((osc_law.POSITION_SCALE, osc_law.ROTATION_SCALE), 3)
        sizes = {"posture": len(ids), "goal": 12, "delta": 6, "pending": 1, "gripper": len(fingers)}
        self._state = np.zeros(sum(sizes.values()))
        self._memory = osc_law.Memory(*np.split(self._state, np.cumsum(list(sizes.values()))[:-1]))
        self.reset()
        self.advance(0)  # compiles now, not in the middle of the first episode

    def reset(self) -> None:
        """Starts an episode at the present joint positions: they are the posture that the null space keeps; the pose is held."""
        self._state[:] = 0.0
        self._memory.posture[:] = self.data.qpos[self._arm.qpos_index]
        self._memory.pending[0] = 1.0
        self._command_fingers()

    def set_goal(self, action: np.ndarray) -> None:
        """Takes a new goal; call once a policy step.

        Args:
            action: (7,) in [-1, 1]: displacement (x, y, z), rotation vector (rx, ry, rz), both in axes of the base link and
                relative to the pose at the next physics step; gripper -1 = open, +1 = close. Values beyond are clipped.

        Raises:
            ValueError: wrong shape, or a value that is not finite.
        """
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (ACTION_SIZE,) or not np.isfinite(action).all():
            raise ValueError(f"osc_pose action: {ACTION_SIZE} finite values needed, found shape {action.shape}: {action}")
        memory = self._memory
        memory.delta[:] = np.clip(action[:6], -1.0, 1.0) * self._scale
        memory.pending[0] = 1.0
        memory.gripper[:] = np.clip(memory.gripper + self._closing * GRIPPER_SPEED * np.sign(action[6]), -1.0, 1.0)
        self._command_fingers()

    def advance(self, substeps: int) -> None:
        """Runs `substeps` physics steps. As after `mj_step`, `qpos` and `qvel` are new and poses are those of the last step."""
        osc_law.advance(_STEP1, _STEP2, self.model._address, self.data._address, substeps, self._memory, self._arm)

    def state(self) -> np.ndarray:
        """All that the controller remembers, to be kept beside MuJoCo's own state."""
        return self._state.copy()

    def restore(self, state: np.ndarray) -> None:
        """Puts back what `state` returned; raises ValueError where the size differs."""
        if np.shape(state) != self._state.shape:
            raise ValueError(f"osc_pose state: shape {self._state.shape} needed, found {np.shape(state)}")
        self._state[:] = state
        self._command_fingers()

    def _command_fingers(self) -> None:
        self.data.ctrl[self._finger_motors] = self._finger_middle + self._finger_half * self._memory.gripper


def _actuator(model: mujoco.MjModel, joint: str) -> int:
    drives = (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT) & (model.actuator_trnid[:, 0] == model.joint(joint).id)
    if drives.sum() != 1:
        raise ValueError(f"joint {joint!r}: {int(drives.sum())} actuators drive it, exactly 1 needed")
    return int(np.flatnonzero(drives)[0])


def _inertia_index(model: mujoco.MjModel, dofs: np.ndarray) -> np.ndarray:
    """Where entry (i, j), j <= i, of the arm's mass matrix lies in MuJoCo's `qM`, which lists each dof's ancestors in turn."""
    index = np.zeros((len(dofs), len(dofs)), dtype=np.int64)
    for i, dof in enumerate(dofs):
        ancestors = [int(dof)]
        while model.dof_parentid[ancestors[-1]] >= 0:
            ancestors.append(int(model.dof_parentid[ancestors[-1]]))
        for j in range(i + 1):
            if dofs[j] not in ancestors:
                raise ValueError(f"the joints of dofs {dofs.tolist()} are not one chain from base to tool")
            index[i, j] = model.dof_Madr[dof] + ancestors.index(int(dofs[j]))
    return index
