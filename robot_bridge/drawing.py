"""A human's stroke as a motion of an arm's hand: a shape of LASA's handwriting, upright in front of the arm, from where its hand is.

The stroke lies in the base's y-z plane, as somebody sees it who faces the robot: right in the picture is +y, up is +z. It begins at the
given pose, keeps its orientation, and takes as long as asked for, with the pace of the person's hand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.fingerprint import content_uuid
from rl_core.data.formats import read_dataset
from rl_core.errors import ArmstackError
from robot_bridge.arms.registry import ArmError, make_arm, make_settings, require_library
from robot_bridge.control.any_arm import SHARE, any_arm_contract
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import ArmLimits, panda_limits
from sim_envs.arm.observation import world_contract
from sim_envs.arm.scene import HOME, kinematics_xml

Array = NDArray[np.float64]
TASK = "reach"
"""World in which the simulated arm draws: nothing is in the way."""
_GRIPS = 1.0
"""Action of the gripper, which holds the pen."""


def drawing_contract() -> RobotContract:
    """End-effector deltas in the numbers that every arm with a gripper offers alike: one drawing fits them all."""
    return any_arm_contract(world_contract(TASK))


def stroke(shape: str, start: Array, *, size: float, seconds: float, demonstration: int = 0) -> Array:
    """Way points (T, 3) m in frame base, one a policy period, of a shape's demonstration.

    Args:
        shape: name of a LASA shape.
        start: (3,) m where the hand is.
        size: largest distance from the end of the stroke, m.
        seconds: how long it takes.
        demonstration: which of the shape's seven.

    Raises:
        DatasetError: no such shape.
        ArmstackError: a size, duration or demonstration that cannot be meant.
    """
    if not 0.0 < size <= 0.5:
        raise ArmstackError(f"size {size}, valid: above 0, at most 0.5 m")
    if not 1.0 <= seconds <= 120.0:
        raise ArmstackError(f"seconds {seconds}, valid: 1 to 120")
    episodes = read_dataset(f"lasa:{shape}").episodes
    if not 0 <= demonstration < len(episodes):
        raise ArmstackError(f"demonstration {demonstration} of {shape}, valid: 0..{len(episodes) - 1}")
    drawn = episodes[demonstration]
    share = (drawn.stamps_ns - drawn.stamps_ns[0]) / (drawn.stamps_ns[-1] - drawn.stamps_ns[0])
    points = np.linspace(0.0, 1.0, round(seconds / drawing_contract().action.period_s) + 1)
    plane = np.stack([np.interp(points, share, drawn.observations["position"][:, axis]) for axis in range(2)], axis=1)
    plane *= size / np.linalg.norm(plane - plane[-1], axis=1).max()
    path: Array = np.tile(np.asarray(start, np.float64), (len(points), 1))
    path[:, 1:] += plane - plane[0]
    return path


def drawing(path: Array, quaternion: Array) -> Dataset:
    """One demonstration: the hand goes along `path` (T, 3) m, oriented as `quaternion` (4,) x, y, z, w. Actions are what a hand without
    delay would need for it."""
    contract = drawing_contract()
    steps = len(path) - 1
    actions = np.zeros((steps, contract.action.size))
    actions[:, :3] = np.diff(path, axis=0) / np.array(contract.action.scale[:3])
    actions[:, -1] = _GRIPS
    observations = {
        "eef_pos": path.astype(np.float32),
        "eef_quat": np.tile(quaternion, (len(path), 1)).astype(np.float32),
        "gripper_opening": np.full((len(path), 1), SHARE.closed, np.float32),
    }
    episode = Episode(
        observations=observations,
        actions=actions.astype(np.float32),
        rewards=np.zeros(steps, np.float32),
        terminal=True,
        truncated=False,
        stamps_ns=np.arange(len(path), dtype=np.int64) * round(contract.action.period_s * 1e9),
        uuid=content_uuid(actions, observations),
    )
    return Dataset(contract=contract, episodes=(episode,), source="drawing")


def check_reach(path: Array, limits: ArmLimits) -> None:
    """Raises ArmstackError where a path (T, 3) leaves the box in which the arm may work."""
    low, high = path.min(axis=0), path.max(axis=0)
    if (low < limits.workspace_min).any() or (high > limits.workspace_max).any():
        found, valid = f"{low.round(3).tolist()} .. {high.round(3).tolist()}", f"{limits.workspace_min} .. {limits.workspace_max}"
        raise ArmstackError(
            f"the drawing spans {found} m, valid: inside the arm's workspace, {valid} m; take a smaller size, or another shape"
        )


def hand_of(arm: str, host: str = "") -> tuple[Array, Array, ArmLimits]:
    """Where the hand of an arm is now: position (3,) m, quaternion (4,), and the arm's limits. Nothing moves.

    Of the simulated arm: where it is when an episode begins, without the noise of its joints.

    Raises:
        ArmError: no such arm, its library is missing, it cannot be reached, or its driver knows no kinematics.
    """
    if arm == "simulated":
        position, quaternion = Kinematics(kinematics_xml()).fk(np.array(HOME))
        return position, quaternion, panda_limits()
    from robot_bridge.nodes.driven_arm import DrivenArm

    require_library(arm)
    driver = make_arm(arm, make_settings(arm, {"host": host} if host else {}))
    description = getattr(driver, "description", None)
    if description is None:
        raise ArmError(f"arm {arm}: its driver knows no kinematics, so nobody knows where its hand is; valid: an arm that does")
    driver.connect()
    try:
        state = DrivenArm(driver, limits=driver.limits, description=description, robot=arm).read()
    finally:
        driver.close()
    return state.ee_pos, state.ee_quat, driver.limits
