"""RobotContract: the one description of what every number in an observation, a condition and an action means.

Matching is by name, never by index. Quaternions are x, y, z, w. Lengths are metres, angles radians, times seconds.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rl_core.camera_calibration import CameraCalibration
from rl_core.contract_fit import cautions, differences
from rl_core.errors import ContractError, ContractMismatch

logger = logging.getLogger(__name__)

CONTRACT_VERSION = 1

ChannelKind = Literal["vector", "quaternion", "image", "text", "latent"]
ActionMeaning = Literal["absolute", "delta", "velocity"]
ActionSpace = Literal["joint", "end_effector"]

QUATERNION_NAMES = ("x", "y", "z", "w")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ContractError(message)


@dataclass(frozen=True, kw_only=True)
class Channel:
    """One named group of numbers (or an image, or a text).

    Attributes:
        name: key in observations, datasets and messages.
        kind: `vector`, `quaternion` (x, y, z, w), `image` (height, width, channels), `text` or `latent`.
        names: dimension names in order; joint names for joint channels. Empty for images and text.
        shape: array shape of one sample; for everything but images it is `(len(names),)`.
        dtype: NumPy dtype name of one sample.
        unit: unit of every number, e.g. `rad`, `m`, `rad/s`, `1`.
        frame: frame the numbers are expressed in, e.g. `base`; empty where none applies.
        rate_hz: nominal rate of the source; 0 where it is not periodic.
        max_age_s: an older sample may not be acted on.
        history: number of past samples a policy needs (1 = the newest only).
        encoding: images: `rgb8` or `mono8`.
        row_order: images: `top_down` (first row is the top of the picture) or `bottom_up`.
        wraps: dimension names that are angles which jump between -pi and pi.
        calibration: images: where the camera looks from and its lens, where known. `RobotContract.accepts` warns of a moved camera.
    """

    name: str
    kind: ChannelKind = "vector"
    names: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    unit: str = "1"
    frame: str = ""
    rate_hz: float = 0.0
    max_age_s: float = 0.2
    history: int = 1
    encoding: str = ""
    row_order: str = ""
    wraps: tuple[str, ...] = ()
    calibration: CameraCalibration | None = None

    def __post_init__(self) -> None:
        for field in ("names", "shape", "wraps"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        where = f"channel {self.name!r}"
        _require(bool(self.name), "a channel needs a name")
        _require(self.kind in get_args(ChannelKind), f"{where}: kind {self.kind!r}, valid: {get_args(ChannelKind)}")
        _require(len(set(self.names)) == len(self.names), f"{where}: dimension names repeat in {self.names}")
        _require(self.history >= 1, f"{where}: history {self.history}, valid: 1 or more")
        _require(self.max_age_s > 0, f"{where}: max_age_s {self.max_age_s}, valid: more than 0")
        _require(self.calibration is None or self.kind == "image", f"{where}: a calibration belongs to an image, not to a {self.kind}")
        unknown = set(self.wraps) - set(self.names)
        _require(not unknown, f"{where}: wraps names {sorted(unknown)}, valid: {self.names}")
        if self.kind == "quaternion":
            _require(self.names in ((), QUATERNION_NAMES), f"{where}: a quaternion's names are {QUATERNION_NAMES}, found {self.names}")
            object.__setattr__(self, "names", QUATERNION_NAMES)
        if self.kind == "image":
            _require(len(self.shape) == 3, f"{where}: an image's shape is (height, width, channels), found {self.shape}")
            _require(self.encoding in ("rgb8", "mono8"), f"{where}: encoding {self.encoding!r}, valid: rgb8, mono8")
            _require(self.row_order in ("top_down", "bottom_up"), f"{where}: row_order {self.row_order!r}, valid: top_down, bottom_up")
            object.__setattr__(self, "dtype", "uint8")
        elif self.kind == "text":
            object.__setattr__(self, "dtype", "str")
        else:
            _require(bool(self.names), f"{where}: dimension names are missing")
            _require(self.shape in ((), (len(self.names),)), f"{where}: shape {self.shape} for {len(self.names)} names")
            object.__setattr__(self, "shape", (len(self.names),))

    @property
    def size(self) -> int:
        """Number of values in one sample (0 for text)."""
        return math.prod(self.shape) if self.kind != "text" else 0


@dataclass(frozen=True, kw_only=True)
class Gripper:
    """The gripper as a named joint: `position = closed` when shut, `open` when open (metres of finger opening or rad)."""

    name: str
    open: float
    closed: float
    unit: str = "m"

    def __post_init__(self) -> None:
        _require(self.open != self.closed, f"gripper {self.name!r}: open and closed are both {self.open}")


@dataclass(frozen=True, kw_only=True)
class Action:
    """What the numbers of an action mean. Policy values lie in [-1, 1]; `value * scale` is in `units`.

    Attributes:
        names: dimension names in order; for `joint` the joint names, for `end_effector` `x y z rx ry rz`; the gripper's
            name, where there is one, is the last.
        meaning: `absolute`, `delta` (added to the measured state) or `velocity`.
        space: `joint` or `end_effector`.
        scale: value of a policy output of 1, per dimension, in `units`. The gripper's entry is 1: -1 = open, +1 = closed.
        units: unit per dimension.
        frame: frame of end-effector deltas and poses, e.g. `base`.
        period_s: the policy's period; 1 / period_s is 10..500 Hz.
        horizon: actions in a chunk; `execute` of them are executed before the next inference.
        gripper: open and closed values; None for an arm without one.
        controller: what follows the targets, where that is known: `osc_pose`, `joint_position`. Equal actions end elsewhere under
            another one, so `RobotContract.accepts` warns of it.
    """

    names: tuple[str, ...]
    meaning: ActionMeaning
    space: ActionSpace
    scale: tuple[float, ...]
    units: tuple[str, ...]
    frame: str = "base"
    period_s: float = 0.05
    horizon: int = 1
    execute: int = 1
    gripper: Gripper | None = None
    controller: str = ""

    def __post_init__(self) -> None:
        for field in ("names", "scale", "units"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        _require(len(self.names) > 0, "action: dimension names are missing")
        _require(len(set(self.names)) == len(self.names), f"action: dimension names repeat in {self.names}")
        _require(self.meaning in get_args(ActionMeaning), f"action: meaning {self.meaning!r}, valid: {get_args(ActionMeaning)}")
        _require(self.space in get_args(ActionSpace), f"action: space {self.space!r}, valid: {get_args(ActionSpace)}")
        for field in ("scale", "units"):
            found = len(getattr(self, field))
            _require(found == len(self.names), f"action: {found} entries in {field} for {len(self.names)} names")
        _require(all(math.isfinite(s) and s > 0 for s in self.scale), f"action: scale {self.scale}, valid: finite, above 0")
        _require(0.002 <= self.period_s <= 0.1, f"action: period_s {self.period_s}, valid: 0.002..0.1 (10-500 Hz)")
        _require(1 <= self.execute <= self.horizon, f"action: execute {self.execute}, valid: 1..horizon ({self.horizon})")
        if self.gripper is not None:
            last, gripper = self.names[-1], self.gripper.name
            _require(last == gripper, f"action: the last name must be the gripper {gripper!r}, found {last!r}")

    @property
    def size(self) -> int:
        """Dimensions of one action."""
        return len(self.names)


@dataclass(frozen=True, kw_only=True)
class RobotContract:
    """Observation, condition and action of one robot or one policy; stored in every dataset and bundle.

    As an *offer* (robot, world, dataset) it lists all that is there; as a *need* (policy) only what is used.
    """

    robot: str
    observation: tuple[Channel, ...]
    action: Action
    condition: tuple[Channel, ...] = ()
    version: int = CONTRACT_VERSION

    def __post_init__(self) -> None:
        for group in ("observation", "condition"):
            object.__setattr__(self, group, tuple(getattr(self, group)))
            names = [channel.name for channel in getattr(self, group)]
            _require(len(set(names)) == len(names), f"{group}: channel names repeat in {names}")

    def channel(self, name: str) -> Channel:
        """The observation channel `name`; raises KeyError that lists the channels."""
        for channel in self.observation:
            if channel.name == name:
                return channel
        raise KeyError(f"no observation channel {name!r}; channels: {[c.name for c in self.observation]}")

    @property
    def low_dimensional(self) -> tuple[Channel, ...]:
        """Observation channels that make up the flat observation vector, in contract order."""
        return tuple(c for c in self.observation if c.kind in ("vector", "quaternion", "latent"))

    @property
    def observation_size(self) -> int:
        """Size of the flat observation: all low-dimensional channels with their history, in contract order."""
        return sum(c.size * c.history for c in self.low_dimensional)

    @property
    def observation_names(self) -> tuple[str, ...]:
        """`channel.dimension` for every entry of the flat observation."""
        return tuple(f"{c.name}.{n}" for c in self.low_dimensional for _ in range(c.history) for n in c.names)

    def select(self, names: Iterable[str]) -> RobotContract:
        """The same contract with only the named observation channels, in the order given.

        Raises:
            ContractError: no such channel; lists those there are.
        """
        try:
            return dataclasses.replace(self, observation=tuple(self.channel(name) for name in names))
        except KeyError as error:
            raise ContractError(error.args[0]) from error

    def accepts(self, offered: RobotContract, *, needed_by: str = "policy", offered_by: str = "robot") -> None:
        """Checks that `offered` gives all that this contract needs.

        Every observation and condition channel needed must be offered with equal kind, names, unit and frame (images:
        shape, encoding and row order too) and with no older data than allowed; the action must be understood with the
        same names, units, space, frame and gripper values. More may be offered. Another known controller is a warning.

        Raises:
            ContractMismatch: lists each difference with both sides.
        """
        if found := differences(self, offered):
            raise ContractMismatch(needed_by, offered_by, found)
        for caution in cautions(self, offered):
            logger.warning("%s does not quite fit %s: %s; expect less success", needed_by, offered_by, caution)

    def to_json(self) -> str:
        """JSON text; `from_json` gives an equal contract."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RobotContract:
        """Reads `to_json`'s text.

        Raises:
            ContractError: not JSON, an unknown or missing field, or a version this code does not know.
        """
        try:
            data: Any = json.loads(text)
        except json.JSONDecodeError as error:
            raise ContractError(f"contract is not JSON: {error}") from error
        _require(isinstance(data, dict), f"contract is not a JSON object but {type(data).__name__}")
        _require(
            data.get("version") == CONTRACT_VERSION,
            f"contract version {data.get('version')!r}; this Armstack reads version {CONTRACT_VERSION}",
        )
        try:
            action = dict(data["action"])
            if action.get("gripper") is not None:
                action["gripper"] = Gripper(**action["gripper"])
            observation, condition = (tuple(map(_channel, data.get(group, ()))) for group in ("observation", "condition"))
            return cls(robot=data["robot"], observation=observation, condition=condition, action=Action(**action))
        except (KeyError, TypeError) as error:
            raise ContractError(f"contract has a wrong or missing field: {error}") from error


def _channel(data: Mapping[str, Any]) -> Channel:
    calibration = data.get("calibration")
    return Channel(**{**data, "calibration": None if calibration is None else CameraCalibration(**calibration)})
