"""Settings of the sources, as their YAML files have them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rl_core.training.config import Config, ConfigError


@dataclass(frozen=True, kw_only=True)
class JointMap(Config):
    """A joint of the arm goes to scale * (the leader's joint) + offset."""

    joint: str
    """Joint of the leader."""
    scale: float = 1.0
    """-1 where it turns the other way."""
    offset: float = 0.0
    """rad."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and math.isfinite(self.offset)):
            raise ConfigError(f"joint {self.joint}: scale {self.scale}, offset {self.offset}, valid: finite numbers")


@dataclass(frozen=True, kw_only=True)
class KeyboardSettings(Config):
    """The keyboard has none."""


@dataclass(frozen=True, kw_only=True)
class SpaceMouseSettings(Config):
    """See `robot_bridge.teleop.spacemouse.SpaceMouse`."""

    device: str = ""
    """Its name, as pyspacemouse lists it; empty: the first one found."""


@dataclass(frozen=True, kw_only=True)
class LeaderSettings(Config):
    """See `robot_bridge.teleop.leader.Leader`."""

    arm: Literal["feetech", "dynamixel"]
    """Driver of the leader."""
    model: str
    """so101, koch_v1_1, ... or a YAML file like theirs."""
    port: str
    """Serial port of the leader."""
    calibration: str
    """File that `armstack calibrate` wrote for the leader."""
    joints: Mapping[str, JointMap] = dataclasses.field(default_factory=dict)
    """The arm's joint -> the leader's; empty: joints of the same names."""


@dataclass(frozen=True, kw_only=True)
class ScriptSettings(Config):
    """See `robot_bridge.teleop.script.Script`."""

    script: str
    """YAML or JSON file with the list of what is done."""
