"""Observation channels that follow from others, computed in one place for worlds, datasets and the ROS side alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOT_OBJECTS = ("eef_pos", "joint_pos", "gripper_pos")
"""Channels ending in `_pos` that are no object: they get no `gripper_to_..._pos`."""


def add_derived(observation: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Adds `gripper_to_X_pos = X_pos - eef_pos` for every object position `X_pos`.

    The sign is robosuite's (`ManipulationEnv._get_obj_eef_sensor`). Any leading shape works, so one sample and a whole episode
    give equal numbers. A derived channel already there is computed anew: it can never disagree with its sources.

    Args:
        observation: channel name -> (..., 3) metres, all in one frame, and any other channels.

    Returns:
        The channels given, in their order, then the derived ones in the order of their objects.
    """
    derived = {name: value for name, value in observation.items() if not _is_derived(name, observation)}
    if "eef_pos" not in observation:
        return dict(observation)
    eef_pos = np.asarray(observation["eef_pos"])
    for name, value in tuple(derived.items()):
        if is_object_position(name):
            derived[f"gripper_to_{name}"] = np.asarray(value) - eef_pos
    return derived


def is_object_position(name: str) -> bool:
    """Whether channel `name` holds the position of an object or a goal."""
    return name.endswith("_pos") and name not in NOT_OBJECTS and not name.startswith("gripper_to_")


def _is_derived(name: str, observation: Mapping[str, NDArray[Any]]) -> bool:
    return name.startswith("gripper_to_") and name.removeprefix("gripper_to_") in observation
