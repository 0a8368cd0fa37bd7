"""Where the links of an arm are, and how fast joint speeds let any point of them move."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.names import order_by_name

Array = NDArray[np.float64]


class ArmShape:
    """An arm as the line segments between the origins of its links, in frame `base`. Not thread-safe.

    A point of a rigid link moves no faster than the faster of its two ends, so the ends bound the speed of everything in between.

    Args:
        mjcf: MJCF text of the arm alone, world frame = base frame (`ArmOffer.ik_model`).
        names: the joints in the order in which positions are given.
        tool: site of the end effector.

    Raises:
        ValueError: the text cannot be loaded.
        JointNameError: `names` are not the joints of the model.
        KeyError: no such site.
    """

    def __init__(self, mjcf: str, names: Sequence[str], *, tool: str = "ee") -> None:
        self._model = model = mujoco.MjModel.from_xml_string(mjcf)
        self._data = mujoco.MjData(model)
        joints = [model.joint(i).name for i in range(model.njnt)]
        self._order = order_by_name(names, joints)
        self._columns = order_by_name(joints, names)
        self._site = model.site(tool).id
        self._links = [body for body in range(1, model.nbody) if model.body_parentid[body] != 0]
        self._parents = [int(model.body_parentid[body]) for body in self._links]

    def segments(self, joints: Array) -> Array:
        """(L, 2, 3) m, both ends of each link at `joints` (J,) rad; the last leads to the tool."""
        self._place(joints)
        data = self._data
        links = np.stack([data.xpos[self._parents], data.xpos[self._links]], axis=1)
        hand = self._model.site_bodyid[self._site]
        return np.concatenate([links, np.stack([data.xpos[hand], data.site_xpos[self._site]])[None]])

    def lever_arms(self, joints: Array) -> Array:
        """(P, J): how far each point (ends of links, tool) moves for a rad (m for a sliding joint) of each joint, at `joints` (J,), m."""
        self._place(joints)
        mujoco.mj_comPos(self._model, self._data)
        jacobian = np.empty((3, self._model.nv))
        arms = []
        for body in self._links:
            mujoco.mj_jac(self._model, self._data, jacobian, None, self._data.xpos[body], body)
            arms.append(np.linalg.norm(jacobian, axis=0))
        mujoco.mj_jacSite(self._model, self._data, jacobian, None, self._site)
        arms.append(np.linalg.norm(jacobian, axis=0))
        return np.array(arms)[:, self._columns]

    def distance(self, joints: Array, axes: Array, radii: Array, *, thickness: float) -> float:
        """Between the surfaces of the arm at `joints` (J,) and of capsules, metres; 0 where they touch.

        Args:
            joints: rad.
            axes: (N, 2, 3) m, ends of the capsules' axes; equal ones are a sphere, or a point.
            radii: (N,) m.
            thickness: radius of the arm's links, m.
        """
        return max(0.0, float((between(self.segments(joints), axes) - radii).min()) - thickness)

    def _place(self, joints: Array) -> None:
        self._data.qpos[:] = np.asarray(joints)[self._order]
        mujoco.mj_kinematics(self._model, self._data)


def between(segments: Array, others: Array) -> Array:
    """(M, N) m, smallest distance between each two of line segments (M, 2, 3) and (N, 2, 3); a segment of equal ends is a point.

    Ericson, "Real-Time Collision Detection" (2004), 5.1.9, for all pairs at once.
    """
    p, q = segments[:, None, 0], others[None, :, 0]
    u, v = segments[:, None, 1] - p, others[None, :, 1] - q
    w = p - q
    a, e, f = (u * u).sum(-1), (v * v).sum(-1), (v * w).sum(-1)
    b, c = (u * v).sum(-1), (u * w).sum(-1)
    determinant = a * e - b * b
    tiny = 1e-12
    s = np.clip(np.where(determinant > tiny, (b * f - c * e) / np.maximum(determinant, tiny), 0.0), 0.0, 1.0)
    t = np.where(e > tiny, (b * s + f) / np.maximum(e, tiny), 0.0)
    t = np.clip(t, 0.0, 1.0)
    s = np.clip(np.where(a > tiny, (b * t - c) / np.maximum(a, tiny), 0.0), 0.0, 1.0)  # the nearest to a `t` that was cut
    distances: Array = np.linalg.norm(w + s[..., None] * u - t[..., None] * v, axis=-1)
    return distances
