"""Observations of robosuite's compiled models and states under this package's channel names, units and frames.

robosuite's traps, and what is read here instead:

- its `eef_pos` is the grip site's, its `eef_quat` the hand body's; the tool here is the grip site's point with the hand's axes,
  which is what both numbers mean in datasets made with robosuite;
- poses are in the frame of its world, whose origin lies under the table; here they are in the robot's base link;
- MuJoCo's quaternions are w, x, y, z; here x, y, z, w;
- after a step its poses are one physics step older than its joint positions; here kinematics are brought up to date first;
- its gripper is two finger positions of opposite sign; here it is the opening in metres.

Only MuJoCo is needed, so files that hold states and a model are read without robosuite.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np

from rl_core.data.derived import add_derived

ARM_DOF = 7


class RobosuiteObserver:
    """Reads channels out of a robosuite model with one Panda.

    Attributes:
        objects: names of the movable things of the task, as in `OBJECT_pos`.
        hinges: names of the hinges of the task's things (a door's), whose angles are the channel `object_hinges`.

    Raises:
        ValueError: the model holds no Panda, or more than one robot.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        joints = [model.joint(i).name for i in range(model.njnt)]
        arm = [name for name in joints if name.startswith("robot") and "_joint" in name]
        expected = [f"robot0_joint{i}" for i in range(1, ARM_DOF + 1)]
        if arm != expected:
            raise ValueError(f"robosuite model: robot joints {arm}, but only tasks with one Panda are supported: {expected}")
        fingers = [name for name in joints if name.startswith("gripper0_") and "finger_joint" in name]
        if len(fingers) != 2:
            raise ValueError(f"robosuite model: finger joints {fingers}, but only the two-finger Panda gripper is supported")
        self._qpos = model.jnt_qposadr[[model.joint(name).id for name in arm]]
        self._qvel = model.jnt_dofadr[[model.joint(name).id for name in arm]]
        self._fingers = model.jnt_qposadr[[model.joint(name).id for name in fingers]]
        self._site = _grip_site(model)
        self._hand = model.body("robot0_right_hand").id
        self._base = model.body("robot0_link0").id
        others = [i for i in range(model.njnt) if not joints[i].startswith(("robot", "gripper", "mobilebase"))]
        # A thing's root body is NAME_main; its joints sit on it or on its children.
        roots = dict.fromkeys(int(model.body_rootid[model.jnt_bodyid[i]]) for i in others)
        self._objects = {model.body(i).name.removesuffix("_main"): i for i in roots}
        self._hinges = {joints[i]: int(model.jnt_qposadr[i]) for i in others if model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE}
        self.objects, self.hinges = tuple(self._objects), tuple(self._hinges)

    def observe(self, data: mujoco.MjData) -> dict[str, np.ndarray]:
        """Channels of the present state, float64, in contract order. Updates the kinematics of `data`, nothing else.

        Returns:
            `joint_pos` (7,) rad, `joint_vel` (7,) rad/s, `eef_pos` (3,) m, `eef_quat` (4,) xyzw, `gripper_pos` (1,) m, for
            every object `NAME_pos`, `NAME_quat`, `object_hinges` rad where the task has some, then for every object
            `gripper_to_NAME_pos` = NAME_pos - eef_pos. Poses are in the base link's frame.
        """
        mujoco.mj_kinematics(self.model, data)
        base = data.xmat[self._base].reshape(3, 3)
        origin = data.xpos[self._base]
        values = {
            "joint_pos": data.qpos[self._qpos],
            "joint_vel": data.qvel[self._qvel],
            "eef_pos": (data.site_xpos[self._site] - origin) @ base,
            "eef_quat": self._turn(data, self._hand),
            "gripper_pos": np.abs(data.qpos[self._fingers]).sum(keepdims=True),
        }
        for name, body in self._objects.items():
            values[f"{name}_pos"] = (data.xpos[body] - origin) @ base
            values[f"{name}_quat"] = self._turn(data, body)
        if self._hinges:
            values["object_hinges"] = data.qpos[list(self._hinges.values())]
        return add_derived(values)

    def _turn(self, data: mujoco.MjData, body: int) -> np.ndarray:
        # From the bodies' own quaternions, whose sign follows the joints: out of matrices it would jump at half turns.
        base, turn = np.empty(4), np.empty(4)
        mujoco.mju_negQuat(base, data.xquat[self._base])
        mujoco.mju_mulQuat(turn, base, data.xquat[body])
        return turn[[1, 2, 3, 0]]


def states_to_observations(path: Path | str) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Observations for a file that holds states only, such as robosuite's collection scripts write.

    Args:
        path: HDF5 with `data/DEMO/states` (T, 1 + nq + nv: time, qpos, qvel) and the attribute `data/DEMO.model_file` (MJCF).

    Yields:
        For each demo in its natural order its name and its channels, each (T, size) float32.

    Raises:
        ValueError: a demo without states or model, or states of another width than the model's.
    """
    import h5py

    with h5py.File(path, "r") as file:
        if "data" not in file:
            raise ValueError(f"{path}: no group 'data'; found {list(file)}")
        for name in sorted(file["data"], key=lambda demo: (len(demo), demo)):
            demo = file["data"][name]
            if "states" not in demo or "model_file" not in demo.attrs:
                found = f"{list(demo)}, {list(demo.attrs)}"
                raise ValueError(f"{path}: {name} needs dataset 'states' and attribute 'model_file'; found {found}")
            observer = RobosuiteObserver(_kinematic_model(demo.attrs["model_file"]))
            yield name, _observe_all(observer, demo["states"][:], f"{path}: {name}")


def _observe_all(observer: RobosuiteObserver, states: np.ndarray, where: str) -> dict[str, np.ndarray]:
    model = observer.model
    width = 1 + model.nq + model.nv
    if states.ndim != 2 or states.shape[1] != width:
        raise ValueError(f"{where}: states of shape {states.shape}, but its model needs (T, {width}): time, qpos, qvel")
    data = mujoco.MjData(model)
    rows = []
    for state in states:
        data.qpos[:], data.qvel[:] = state[1 : 1 + model.nq], state[1 + model.nq :]
        rows.append(observer.observe(data))
    return {key: np.array([row[key] for row in rows], dtype=np.float32) for key in observer.observe(data)}


def _kinematic_model(xml: str | bytes) -> mujoco.MjModel:
    """The model without meshes and pictures: their files lie on the machine that recorded, and poses do not depend on them."""
    root = ElementTree.fromstring(xml)
    for section in list(root):
        if section.tag not in ("compiler", "default", "worldbody"):
            root.remove(section)
    for parent in root.iter():
        for child in [child for child in parent if "mesh" in child.attrib]:
            parent.remove(child)
        parent.attrib.pop("material", None)
    compiler = root.find("compiler")
    compiler = ElementTree.SubElement(root, "compiler") if compiler is None else compiler
    # Bodies whose mass came from a mesh still need some to compile.
    compiler.set("boundmass", "0.001")
    compiler.set("boundinertia", "0.000001")
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))


def _grip_site(model: mujoco.MjModel) -> int:
    # robosuite 1.5 puts the arm's name into it: gripper0_right_grip_site.
    names = [model.site(i).name for i in range(model.nsite)]
    found = [i for i, name in enumerate(names) if name.startswith("gripper0_") and name.endswith("grip_site")]
    if len(found) != 1:
        raise ValueError(f"robosuite model: {len(found)} grip sites, exactly 1 needed; sites: {names}")
    return found[0]
