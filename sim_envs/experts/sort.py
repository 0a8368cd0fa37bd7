"""The demonstrator of Sort: the part goes over the walls into its bin."""

from __future__ import annotations

import numpy as np

from sim_envs.arm.scene import TABLE_TOP
from sim_envs.experts.hand import Hand, Motion, Obs, point
from sim_envs.experts.motion import nearest_turn, yaw_of

TRAVEL, RELEASE = TABLE_TOP + 0.13, TABLE_TOP + 0.045
"""Height of the hand on the way, and where the part is let go, metres."""


def play_sort(hand: Hand, obs: Obs) -> Motion:
    """All motions of an episode."""
    tags = ("reach_part", "grasp_part", "lift", "place")
    yaw = nearest_turn(yaw_of(obs["part_quat"]), np.pi / 2)
    return (yield from hand.place(obs, "part", tags, point(obs, "bin")[:2], (TRAVEL, RELEASE), yaw))
