"""The plane in which a reward-free world's exploration can be seen from above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from sim_envs.arm.reward_free import TABLE
from sim_envs.arm.reward_free import WORLDS as ARM_WORLDS
from sim_envs.rooms.layout import HIGH, LOW


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane:
    """Two numbers of an observation that say where something is.

    Attributes:
        channel: the observation channel whose first two numbers they are.
        low: lower corner (2,), metres.
        high: upper corner (2,), metres.
        walls: (walls, 2, 2), both ends of each; None without walls.
    """

    channel: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    walls: NDArray[np.float64] | None = None


def plane_of(env: gymnasium.Env[Any, Any]) -> Plane | None:
    """The rooms' floor; the table under the hand's box, or for `push` what the cube lies on; None for the other worlds."""
    if env.has_wrapper_attr("layout"):
        corner = np.ones(2)
        return Plane(channel="position", low=LOW * corner, high=HIGH * corner, walls=env.get_wrapper_attr("layout").segments)
    columns = env.get_wrapper_attr("columns") if env.has_wrapper_attr("columns") else {}
    for channel, world in (("cube_pos", "push"), ("eef_pos", "reach")):
        if channel in columns:
            box = ARM_WORLDS[world]
            return Plane(channel=channel, low=TABLE[:2] + box.low[:2], high=TABLE[:2] + box.high[:2])
    return None
