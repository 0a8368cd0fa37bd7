"""From robosuite's world, whose origin lies under the table, to the frame of the robot's base."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class BasePose:
    """Where the robot's base stands in the world: `position` (3,) metres, `quaternion` (4,) x, y, z, w."""

    position: NDArray[np.float64]
    quaternion: NDArray[np.float64]

    @classmethod
    def from_model(cls, model_file: Any) -> BasePose | None:
        """The pose that the MJCF text of a demo gives to `robot0_base`; None where there is no such text or body."""
        if not isinstance(model_file, (str, bytes)):
            return None
        try:
            bodies = ElementTree.fromstring(model_file).iterfind("./worldbody/body")
            attributes = next(dict(body.attrib) for body in bodies if body.get("name") == "robot0_base")
            position = np.array(attributes.pop("pos", "0 0 0").split(), np.float64)
            quaternion = np.roll(np.array(attributes.pop("quat", "1 0 0 0").split(), np.float64), -1)
        except (ElementTree.ParseError, StopIteration, ValueError):
            return None
        # another way to give an orientation (euler, axisangle) depends on compiler options: not guessed
        if set(attributes) != {"name"} or position.shape != (3,) or quaternion.shape != (4,) or not np.linalg.norm(quaternion) > 0:
            return None
        return cls(position=position, quaternion=quaternion / np.linalg.norm(quaternion))

    def points(self, values: NDArray[Any]) -> NDArray[Any]:
        """Points (N, 3) of the world, in the base's frame."""
        return self.vectors(values - self.position)

    def vectors(self, values: NDArray[Any]) -> NDArray[Any]:
        """Directions (N, 3) of the world, in the base's frame: q* v q = v + 2 u x (u x v - w v) for q = (u, w)."""
        u, w = self.quaternion[:3], self.quaternion[3]
        return values + 2 * np.cross(u, np.cross(u, values) - w * values)

    def turns(self, values: NDArray[Any]) -> NDArray[Any]:
        """Orientations (N, 4) x, y, z, w in the world, in the base's frame: the product of the conjugate with each."""
        u, w = -self.quaternion[:3], self.quaternion[3]
        v, s = values[:, :3], values[:, 3:]
        return np.concatenate([w * v + s * u + np.cross(u, v), w * s - (v @ u)[:, None]], axis=1)
