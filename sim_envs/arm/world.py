"""ArmWorld: a Panda on a table in MuJoCo. No Gymnasium, no episodes, no policies; time passes only in `advance`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import mujoco
import numpy as np

from sim_envs.arm import scene
from sim_envs.arm.scene import ARM_JOINTS, FINGER_JOINTS, GRIPPER_OPEN, Controller
from sim_envs.arm.tasks import find_task

if TYPE_CHECKING:
    from sim_envs.arm.osc import OscPose

NOISE = 0.02
"""Standard deviation of the joint angles at a reset, rad (robosuite's `initialization_noise`)."""
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class FaultyAction(ValueError):
    """A command that is not finite numbers of the right shape. Nothing was moved."""


class SimulationFault(RuntimeError):
    """The physics diverged; the world must be reset."""


@dataclass(frozen=True, kw_only=True)
class ArmReading:
    """The world at one instant: copies, float64, frame base.

    Attributes:
        joint_pos: (7,) rad.
        joint_vel: (7,) rad/s.
        gripper_pos: finger opening, metres; 0.08 open, 0 closed.
        gripper_vel: m/s.
        eef_pos: (3,) metres.
        eef_quat: (4,) x, y, z, w. Its sign follows the joint angles and never jumps.
        objects: name -> (position (3,) metres, quaternion (4,) x, y, z, w); goals too, unturned.
    """

    joint_pos: np.ndarray
    joint_vel: np.ndarray
    gripper_pos: float
    gripper_vel: float
    eef_pos: np.ndarray
    eef_quat: np.ndarray
    objects: dict[str, tuple[np.ndarray, np.ndarray]]


class ArmWorld:
    """One arm, one task.

    Args:
        task: a name of `sim_envs.arm.tasks.TASKS`.
        controller: `joint_position`: servos follow `set_joint_target`; `osc_pose`: robosuite's operational space control follows
            `set_pose_delta`.
        visual: compile cameras and light into `model`, for MuJoCo's own viewer; `rendering.Renderer` needs neither.

    Raises:
        ValueError: unknown task or controller; names the valid ones.
    """

    joint_names: tuple[str, ...] = ARM_JOINTS
    gripper_name: str = "gripper"

    def __init__(self, task: str = "lift", *, controller: Controller = "joint_position", visual: bool = False) -> None:
        if controller not in get_args(Controller):
            raise ValueError(f"no controller {controller!r}; controllers: {', '.join(get_args(Controller))}")
        self.task = find_task(task)
        self.controller = controller
        self.model = scene.build(self.task, controller, visual)
        self.data = mujoco.MjData(self.model)
        self._scratch = mujoco.MjData(self.model)  # mj_setConst moves the data it is given
        self._bind()
        self._osc: OscPose | None = None
        if controller == "osc_pose":
            from sim_envs.arm.osc import OscPose  # brings numba, which the servo world does without

            self._osc = OscPose(self.model, self.data, joints=ARM_JOINTS, fingers=FINGER_JOINTS)
        self.reset(0)

    def _bind(self) -> None:
        model, data = self.model, self.data
        self._arm = slice(0, len(ARM_JOINTS))
        self._fingers = slice(len(ARM_JOINTS), len(ARM_JOINTS) + 2)
        assert [model.joint(i).name for i in range(9)] == [*ARM_JOINTS, *FINGER_JOINTS]  # qpos, qvel and ctrl begin alike
        self._low, self._high = model.jnt_range[self._arm].T.copy()
        self._eef_pos = data.site_xpos[model.site("ee").id]
        hand = model.body("right_hand").id
        self._eef_xquat, self._hand_force = data.xquat[hand], data.xfrc_applied[hand, :3]
        names = (*self.task.objects, *self.task.goals)
        self._bodies = {name: model.body(name).id for name in names}
        self._geoms = {name: model.geom(name).id for name in self.task.objects}
        self._pads = [model.geom(name).id for name in ("finger1_pad", "finger2_pad")]
        self._states = mujoco.mj_stateSize(model, _STATE)
        self._stale = True

    def reset(self, seed: int) -> None:
        """Starts an episode: joint noise, object sizes and places follow from `seed` alone, in every process."""
        rng = np.random.default_rng(seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self._arm] = scene.HOME + NOISE * rng.standard_normal(len(ARM_JOINTS))
        self.data.qpos[self._fingers] = scene.HOME_FINGER, -scene.HOME_FINGER
        self.task.reset(self, rng)
        mujoco.mj_setConst(self.model, self._scratch)
        if self._osc is not None:
            self._osc.reset()
        else:
            self.set_joint_target(self.data.qpos[self._arm], 2 * scene.HOME_FINGER)
        mujoco.mj_forward(self.model, self.data)
        self._stale = False

    def set_joint_target(self, positions: np.ndarray, gripper: float) -> None:
        """Sets what the servos go to until the next call.

        Args:
            positions: (7,) rad, in the order of `joint_names`; clipped to the joints' ranges.
            gripper: finger opening, metres; clipped to 0 .. 0.08.

        Raises:
            FaultyAction: not finite, or not seven joints.
        """
        self._require("joint_position")
        positions = np.asarray(positions, dtype=np.float64)
        if positions.shape != self._low.shape or not (np.isfinite(positions).all() and np.isfinite(gripper)):
            raise FaultyAction(f"joint target: 7 finite angles and a finite opening needed, found {positions} and {gripper}")
        half = min(max(float(gripper), 0.0), GRIPPER_OPEN) / 2
        self.data.ctrl[self._arm] = np.clip(positions, self._low, self._high)
        self.data.ctrl[self._fingers] = half, -half

    def set_pose_delta(self, action: np.ndarray) -> None:
        """Sets operational space control's next goal, once a policy step.

        Args:
            action: (7,) in [-1, 1], contract `ee_delta`.

        Raises:
            FaultyAction: not finite, or not seven numbers.
        """
        self._require("osc_pose")
        assert self._osc is not None
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (7,) or not np.isfinite(action).all():
            raise FaultyAction(f"ee_delta action: 7 finite numbers needed, found {action}")
        self._osc.set_goal(action)

    def push(self, force: np.ndarray) -> None:
        """Lets `force` (3,), N in frame base, act on the hand until the next call or reset. It is no command: the servos push back."""
        self._hand_force[:] = force

    def advance(self, substeps: int) -> None:
        """Lets `substeps` of 2 ms pass.

        Raises:
            SimulationFault: the physics diverged.
        """
        before = self.data.time
        if self._osc is not None:
            self._osc.advance(substeps)
        else:
            mujoco.mj_step(self.model, self.data, nstep=substeps)
        self._stale = True
        # MuJoCo answers a state that is not finite by silently starting anew at time 0.
        if self.data.time < before + (substeps - 0.5) * self.model.opt.timestep:
            raise SimulationFault(f"physics diverged at {before:.3f} s of simulated time; reset the world")

    @property
    def time_s(self) -> float:
        """Simulated seconds since the reset."""
        return self.data.time

    def state(self) -> ArmReading:
        """What a perfect set of sensors reads now."""
        self._refresh()
        data, goals = self.data, self.task.goals
        finger, other = data.qpos[self._fingers]
        finger_vel, other_vel = data.qvel[self._fingers]
        return ArmReading(
            joint_pos=data.qpos[self._arm].copy(),
            joint_vel=data.qvel[self._arm].copy(),
            gripper_pos=float(finger - other),
            gripper_vel=float(finger_vel - other_vel),
            eef_pos=self._eef_pos.copy(),
            eef_quat=_xyzw(self._eef_xquat),
            objects={name: (data.xpos[body].copy(), _xyzw(data.xquat[body])) for name, body in self._bodies.items() if name not in goals}
            | {name: (data.xpos[self._bodies[name]].copy(), np.array([0.0, 0.0, 0.0, 1.0])) for name in goals},
        )

    def success(self) -> bool:
        """Whether the task is done now."""
        self._refresh()
        return self.task.success(self)

    def reward(self, shaped: bool = True) -> float:
        """The task's reward now, in [0, 1]; `shaped=False` gives 1 at success and 0 else."""
        self._refresh()
        return self.task.reward(self, shaped)

    def snapshot(self) -> np.ndarray:
        """All that the future depends on, as one float64 vector for `restore` of a world with the same task and controller."""
        state = np.empty(self._states)
        mujoco.mj_getState(self.model, self.data, state, _STATE)
        sizes = self.model.geom_size[list(self._geoms.values())].ravel()
        controller = self._osc.state() if self._osc is not None else np.empty(0)
        return np.concatenate([state, sizes, controller])

    def restore(self, snapshot: np.ndarray) -> None:
        """Puts the world back to a `snapshot`; what follows is equal to the bit.

        Raises:
            ValueError: the snapshot is of another task or controller.
        """
        expected = self.snapshot().shape
        if np.shape(snapshot) != expected:
            raise ValueError(f"snapshot of shape {np.shape(snapshot)}; a {self.task.name} world with {self.controller} needs {expected}")
        state, sizes, controller = np.split(snapshot, [self._states, self._states + 3 * len(self._geoms)])
        for name, size in zip(self._geoms, sizes.reshape(-1, 3), strict=True):
            self._set_size(name, size)
        mujoco.mj_setConst(self.model, self._scratch)
        mujoco.mj_setState(self.model, self.data, state, _STATE)
        if self._osc is not None:
            self._osc.restore(controller)
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, state, _STATE)  # mj_forward has moved the solver's warm start
        self._stale = True

    def qpos(self) -> np.ndarray:
        """MuJoCo's generalised positions, a copy, for `rendering`."""
        return self.data.qpos.copy()

    @staticmethod
    def kinematics_xml() -> str:
        """The arm alone as MJCF text; see `scene.kinematics_xml`."""
        return scene.kinematics_xml()

    def eef_pos(self) -> np.ndarray:
        """End-effector position (3,), metres; a view, for tasks."""
        return self._eef_pos

    def object_pos(self, name: str) -> np.ndarray:
        """Position (3,) of an object or goal, metres; a view, for tasks."""
        return self.data.xpos[self._bodies[name]]

    def grasps(self, name: str) -> bool:
        """Whether both finger pads touch the object (robosuite's `_check_grasp`)."""
        if self.data.ncon == 0:
            return False
        pairs = self.data.contact.geom
        touching = set(pairs[pairs[:, 0] == self._geoms[name], 1]) | set(pairs[pairs[:, 1] == self._geoms[name], 0])
        return touching.issuperset(self._pads)

    def travel(self, joint: str) -> float:
        """How far a sliding joint of the scene is from where it starts, metres."""
        return float(self.data.qpos[self.model.jnt_qposadr[self.model.joint(joint).id]])

    def place(self, name: str, position: Sequence[float] | np.ndarray, yaw: float = 0.0) -> None:
        """Puts an object or goal somewhere at rest, what slides with what it slides on; takes effect on the next forward pass."""
        body = self._bodies[name]
        if name in self.task.goals:
            self.data.mocap_pos[self.model.body_mocapid[self.model.body_rootid[body]]] = position
            return
        adr = self.model.jnt_qposadr[self.model.body_jntadr[body]]
        self.data.qpos[adr : adr + 3] = position
        self.data.qpos[adr + 3 : adr + 7] = np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)

    def resize(self, name: str, half_size: np.ndarray) -> None:
        """Gives a box new half sizes (3,), metres, at its density; no larger than it was built."""
        self._set_size(name, half_size)

    def _set_size(self, name: str, half_size: np.ndarray) -> None:
        # Bounding volumes stay those of the built, largest size: only the broad phase reads them.
        model, geom, body = self.model, self._geoms[name], self._bodies[name]
        if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_BOX or np.array_equal(model.geom_size[geom], half_size):
            return
        old = model.geom_size[geom]
        mass = model.body_mass[body] * np.prod(half_size) / np.prod(old)
        model.geom_size[geom] = half_size
        model.body_mass[body] = mass
        squares = np.square(half_size)
        model.body_inertia[body] = mass / 3 * (squares.sum() - squares)

    def _require(self, controller: Controller) -> None:
        if self.controller != controller:
            raise ValueError(f"this world was made with controller={self.controller!r}; {controller!r} is needed for this command")

    def _refresh(self) -> None:
        # After mj_step poses are those of the last substep's start; bring them to the present.
        if self._stale:
            mujoco.mj_kinematics(self.model, self.data)
            self._stale = False


def _xyzw(wxyz: np.ndarray) -> np.ndarray:
    return wxyz[[1, 2, 3, 0]]
