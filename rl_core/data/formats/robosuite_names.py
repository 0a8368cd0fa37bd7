"""robosuite's names, frames and controllers in terms of a contract."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, Gripper
from rl_core.data.derived import add_derived
from rl_core.data.formats.base_frame import BasePose
from rl_core.data.hdf5 import to_float32

logger = logging.getLogger(__name__)

ROBOT_NAMES = {
    "robot0_joint_pos": "joint_pos",
    "robot0_joint_vel": "joint_vel",
    "robot0_eef_pos": "eef_pos",
    "robot0_eef_quat": "eef_quat",
    "robot0_gripper_qpos": "gripper_pos",
}
OBJECT_PARTS = {"Lift": (("cube_pos", 3), ("cube_quat", 4), ("gripper_to_cube_pos", 3))}
"""What robosuite concatenates under `object`, where the parts are known."""

PANDA_GRIPPER = Gripper(name="gripper", open=0.08, closed=0.0)
UNITS = {"joint_pos": "rad", "joint_vel": "rad/s", "gripper_pos": "m"}


@dataclass(frozen=True, kw_only=True)
class RobosuiteSettings:
    """What a file says about the world it was made in.

    Attributes:
        task: robosuite's environment name, e.g. `Lift`; empty where unknown.
        robot: `panda` or robosuite's name in lower case; `unknown` where unknown.
        is_robosuite: rewards are robosuite's, at most 1 and 1 on success.
        period_s: control period.
        controller: the arm's controller configuration; empty where unknown.
    """

    task: str
    robot: str
    is_robosuite: bool
    period_s: float
    controller: Mapping[str, Any]

    @classmethod
    def from_attributes(cls, env_args: Mapping[str, Any], env: Any, env_info: Mapping[str, Any]) -> RobosuiteSettings:
        """Reads robomimic's `env_args`, or robosuite's `env` and `env_info`."""
        kwargs = env_args.get("env_kwargs") or env_info
        robots = kwargs.get("robots") or "unknown"
        robot = (robots if isinstance(robots, str) else robots[0]).lower()
        controller = kwargs.get("controller_configs") or {}
        if isinstance(controller, list):
            controller = controller[0]
        # since robosuite 1.5 an arm's controller is one of several body parts
        parts = controller.get("body_parts", {})
        controller = parts.get("right", parts.get("arms", {}).get("right", controller))
        return cls(
            task=str(env_args.get("env_name") or env or ""),
            robot=robot,
            is_robosuite=env_args.get("type") == 1 or env is not None,
            period_s=1.0 / float(kwargs.get("control_freq", 20)),
            controller=controller,
        )

    def stamps_ns(self, steps: int) -> NDArray[np.int64]:
        """(steps + 1,) stamps counted at the control period."""
        return np.arange(steps + 1, dtype=np.int64) * round(self.period_s * 1e9)

    def success(self, rewards: NDArray[np.float32]) -> bool | None:
        """Whether a step's reward was robosuite's 1 for success; None for other worlds, or where no reward was written."""
        return bool((rewards >= 1.0 - 1e-6).any()) if self.is_robosuite and rewards.any() else None

    def joint_names(self, count: int) -> tuple[str, ...]:
        """Names of the arm's joints."""
        return tuple(f"{self.robot}_joint{i}" for i in range(1, count + 1))

    def action(self, size: int, source: str) -> Action:
        """The meaning of `size` action numbers; what the file doesn't say is said in a warning."""
        kind = self.controller.get("type")
        delta = self.controller.get("input_type", "delta" if self.controller.get("control_delta", True) else "absolute") == "delta"
        gripper = PANDA_GRIPPER if self.robot == "panda" else Gripper(name="gripper", open=-1.0, closed=1.0, unit="1")
        if kind == "OSC_POSE" and size == 7:
            scale = _scale(self.controller, 6) if delta else (1.0,) * 6
            return Action(
                names=("x", "y", "z", "rx", "ry", "rz", "gripper"), meaning="delta" if delta else "absolute", space="end_effector",
                scale=(*scale, 1.0), units=("m",) * 3 + ("rad",) * 3 + (gripper.unit,), period_s=self.period_s, gripper=gripper,
                controller="osc_pose",
            )  # fmt: skip
        if kind == "JOINT_POSITION" and size == 8:
            return Action(
                names=(*self.joint_names(7), "gripper"), meaning="delta" if delta else "absolute", space="joint",
                scale=(*(_scale(self.controller, 7) if delta else (1.0,) * 7), 1.0), units=("rad",) * 7 + (gripper.unit,), frame="",
                period_s=self.period_s, gripper=gripper, controller="joint_position",
            )  # fmt: skip
        logger.warning("%s: controller %s with %d actions isn't known; actions get neutral names and no unit", source, kind, size)
        names = tuple(f"action_{i}" for i in range(size))
        return Action(
            names=names, meaning="absolute", space="joint", scale=(1.0,) * size, units=("1",) * size, frame="",
            period_s=self.period_s, gripper=None,
        )  # fmt: skip


def rename(observations: Mapping[str, NDArray[Any]], settings: RobosuiteSettings, pose: BasePose | None) -> dict[str, NDArray[Any]]:
    """robosuite's channels under our names and, with `pose`, in the base's frame; unknown ones keep name and numbers.

    robosuite's quaternions are x, y, z, w already; the two finger positions become the opening in metres; differences between
    gripper and object are computed anew (their sign changed with robosuite 1.5).
    """
    result: dict[str, NDArray[Any]] = {}
    for key, values in observations.items():
        if key == "object" and _fits(settings.task, values):
            start = 0
            for name, width in OBJECT_PARTS[settings.task]:
                result[name] = values[:, start : start + width]
                start += width
        elif key == "robot0_gripper_qpos" and values.ndim == 2 and values.shape[1] == 2:
            result["gripper_pos"] = np.abs(values).sum(axis=1, keepdims=True)
        elif key != "robot0_gripper_qpos":
            result[ROBOT_NAMES.get(key, key)] = values
        else:
            result[key] = values
    if pose is not None:
        result = {name: _to_base(name, values, pose) for name, values in result.items()}
    result = add_derived(result)
    # pictures stay as they are; everything else is one row of numbers a step
    return {name: v if v.dtype == np.uint8 else to_float32(v.reshape(len(v), -1), f"channel {name!r}") for name, v in result.items()}


def channel_for(name: str, values: NDArray[Any], settings: RobosuiteSettings, frame: str) -> Channel:
    """The contract's description of a channel read by `rename`."""
    rate = 1.0 / settings.period_s
    if values.dtype == np.uint8 and values.ndim == 4:
        # robomimic flips robosuite's pictures, so that their first row is the top
        encoding = "rgb8" if values.shape[-1] == 3 else "mono8"
        return Channel(name=name, kind="image", shape=values.shape[1:], encoding=encoding, row_order="top_down", rate_hz=rate)
    width = int(np.prod(values.shape[1:]))
    if name.endswith("_quat") and width == 4:
        return Channel(name=name, kind="quaternion", frame=frame, rate_hz=rate)
    if name in ("joint_pos", "joint_vel"):
        return Channel(name=name, names=settings.joint_names(width), unit=UNITS[name], rate_hz=rate)
    if name == "gripper_pos":
        return Channel(name=name, names=("gripper",), unit=UNITS[name], rate_hz=rate)
    if name.endswith("_pos") and width == 3:
        return Channel(name=name, names=("x", "y", "z"), unit="m", frame=frame, rate_hz=rate)
    return Channel(name=name, names=tuple(f"{name}_{i}" for i in range(width)), rate_hz=rate)


def _fits(task: str, values: NDArray[Any]) -> bool:
    return task in OBJECT_PARTS and values.ndim == 2 and values.shape[1] == sum(width for _, width in OBJECT_PARTS[task])


def _scale(controller: Mapping[str, Any], size: int) -> tuple[float, ...]:
    limit = controller.get("output_max", 1.0)
    return tuple(float(x) for x in np.broadcast_to(np.asarray(limit, np.float64), (size,)))


def _to_base(name: str, values: NDArray[Any], pose: BasePose) -> NDArray[Any]:
    if name.endswith("_quat") and values.shape[1:] == (4,):
        return pose.turns(values)
    if name.endswith("_pos") and values.shape[1:] == (3,):
        return pose.vectors(values) if name.startswith("gripper_to_") else pose.points(values)
    return values
