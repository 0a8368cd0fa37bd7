"""The arms there are drivers for: name -> driver, its settings, and what it needs. A driver of one's own is named as `module:class`."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_type_hints

from rl_core.errors import ArmstackError
from rl_core.training.config import Config
from robot_bridge import driver_settings
from robot_bridge.arms.base import Arm
from robot_bridge.control.limits import ArmLimits

SIMULATED = "simulated"
"""The arm of the simulated world; it has no driver here, as the arm node owns its world."""


class ArmError(ArmstackError):
    """An arm or a setting of one that does not exist or cannot be used; says what would be valid."""


@dataclass(frozen=True, kw_only=True)
class FrankaSettings(Config):
    """See `robot_bridge.arms.franka.FrankaArm`."""

    host: str
    hardware: Literal["panda", "fr3"] = "panda"
    realtime: bool = False
    hand: bool = True


@dataclass(frozen=True, kw_only=True)
class TrossenSettings(Config):
    """See `robot_bridge.arms.trossen.TrossenArm`."""

    host: str


@dataclass(frozen=True, kw_only=True)
class URSettings(Config):
    """See `robot_bridge.arms.ur.URArm`."""

    host: str
    model: Literal["ur3e", "ur5e", "ur10e"] = "ur5e"
    lookahead_s: float = 0.05
    gain: float = 300.0


@dataclass(frozen=True, kw_only=True)
class Ros2ControlSettings(Config):
    """See `robot_bridge.arms.ros2_control.Ros2ControlArm`."""

    limits: str
    controller: str = "/joint_trajectory_controller"
    interface: Literal["trajectory", "forward"] = "trajectory"
    joint_states: str = "/joint_states"
    controller_joints: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServoSettings(Config):
    """See `robot_bridge.arms.servo_arm.ServoArm`."""

    model: str
    port: str
    calibration: str


@dataclass(frozen=True, kw_only=True)
class ArmEntry:
    """A driver.

    Attributes:
        driver: `module:class`; its constructor takes the fields of `settings` as keywords.
        settings: its configuration; a field without default has to be given.
        library: module the driver imports when it connects.
        extra: of the distribution, that installs it; empty where it comes with ROS.
        when_process_dies: what the arm does then.
        watchdog_s: after which silence the vendor's watchdog stops the arm; None where there is none: it keeps its last target.
        vendor: the publication that limits are taken from.
        vendor_limits: the fields of `ArmLimits` it states; the others are this project's choice.
    """

    driver: str
    settings: type[Config]
    library: str
    extra: str
    when_process_dies: str
    vendor: str
    vendor_limits: tuple[str, ...]
    watchdog_s: float | None = None


_METHODS = ("connect", "read", "command", "stop", "close")
_RANGES = ("position_min", "position_max", "velocity")

ARMS: Mapping[str, ArmEntry] = {
    "franka": ArmEntry(
        driver="robot_bridge.arms.franka:FrankaArm",
        settings=FrankaSettings,
        library="franky",
        extra="franka",
        when_process_dies="the robot's controller misses 20 of its 1 kHz packets and brakes (communication_constraints_violation)",
        watchdog_s=0.02,
        vendor="Franka, robot and interface specifications",
        vendor_limits=(*_RANGES, "acceleration", "jerk", "stop_acceleration", "stop_jerk"),
    ),
    "trossen": ArmEntry(
        driver="robot_bridge.arms.trossen:TrossenArm",
        settings=TrossenSettings,
        library="trossen_arm",
        extra="trossen",
        when_process_dies="keeps its last target, at most one control period away: no vendor watchdog",
        vendor="Trossen, robot description and controller",
        vendor_limits=_RANGES,
    ),
    "ur": ArmEntry(
        driver="robot_bridge.arms.ur:URArm",
        settings=URSettings,
        library="rtde_control",
        extra="ur",
        when_process_dies="ur_rtde's watchdog (10 Hz) ends the program on the controller, which stops the arm",
        watchdog_s=0.1,
        vendor="Universal Robots, data sheet",
        vendor_limits=_RANGES,
    ),
    "dynamixel": ArmEntry(
        driver="robot_bridge.arms.dynamixel:DynamixelArm",
        settings=ServoSettings,
        library="dynamixel_sdk",
        extra="dynamixel",
        when_process_dies="the servos' Bus_Watchdog stops and holds them after half a second of silence",
        watchdog_s=0.5,
        vendor="the arm's model file and its calibration",
        vendor_limits=_RANGES,
    ),
    "feetech": ArmEntry(
        driver="robot_bridge.arms.feetech:FeetechArm",
        settings=ServoSettings,
        library="scservo_sdk",
        extra="feetech",
        when_process_dies="keeps its last target, at most one control period away: the servos have no watchdog",
        vendor="the arm's model file and its calibration",
        vendor_limits=_RANGES,
    ),
    "ros2_control": ArmEntry(
        driver="robot_bridge.arms.ros2_control:Ros2ControlArm",
        settings=Ros2ControlSettings,
        library="rclpy",
        extra="ros",
        when_process_dies="keeps its last target, at most one control period away: the controller has no watchdog on commands",
        vendor="the file `limits`",
        vendor_limits=tuple(field.name for field in dataclasses.fields(ArmLimits)),
    ),
}


def find_arm(name: str) -> ArmEntry:
    """The entry of `name`: one of `ARMS`, or a driver of the user's own, `module:class`.

    Raises:
        ArmError: there is none; lists the names, or says why that class is none.
    """
    if ":" in name:
        return _own_arm(name)
    if name not in ARMS:
        raise ArmError(f"no arm {name!r}; arms: {SIMULATED}, {', '.join(ARMS)}, or module:class of your own")
    return ARMS[name]


def _own_arm(name: str) -> ArmEntry:
    """Its settings are the keyword arguments of its constructor; all limits are its own."""
    module, _, class_name = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ArmError(
            f"arm {name}: module {module!r} cannot be imported ({error}); valid: one that is installed or on PYTHONPATH"
        ) from error
    driver = getattr(found, class_name, None)
    if not inspect.isclass(driver):
        classes = [key for key, value in vars(found).items() if inspect.isclass(value) and value.__module__ == found.__name__]
        raise ArmError(f"arm {name}: {module} has no class {class_name!r}; classes: {', '.join(classes) or 'none'}")
    if missing := [method for method in _METHODS if not callable(getattr(driver, method, None))]:
        raise ArmError(
            f"arm {name}: {', '.join(missing)} missing; an arm has the methods {', '.join(_METHODS)} (robot_bridge.arms.base.Arm)"
        )
    hints, fields = get_type_hints(driver.__init__), []
    for key, parameter in list(inspect.signature(driver.__init__).parameters.items())[1:]:
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY or key not in hints:
            raise ArmError(f"arm {name}: constructor argument {key}, valid: keyword-only arguments with a type, after `*`")
        default = () if parameter.default is inspect.Parameter.empty else (dataclasses.field(default=parameter.default),)
        fields.append((key, hints[key], *default))
    return ArmEntry(
        driver=name,
        settings=dataclasses.make_dataclass(f"{class_name}Settings", fields, bases=(Config,), frozen=True, kw_only=True),
        library=module,
        extra="",
        when_process_dies=getattr(driver, "when_process_dies", "its driver does not say"),
        vendor=f"its driver, {name}",
        vendor_limits=tuple(field.name for field in dataclasses.fields(ArmLimits)),
    )


def make_settings(name: str, values: Mapping[str, Any]) -> Any:
    """The settings of arm `name`.

    Raises:
        ArmError: a setting is unknown, missing or of another type; lists the valid ones.
    """
    return driver_settings.make_settings(f"arm {name}", find_arm(name).settings, values, ArmError)


def require_library(name: str) -> None:
    """Checks that arm `name` can be connected to here.

    Raises:
        ArmError: its library is not installed; says which extra brings it.
    """
    entry = find_arm(name)
    driver_settings.require_library(f"arm {name}", entry.library, entry.extra, ArmError)


def make_arm(name: str, settings: Any) -> Arm:
    """The driver of arm `name`, not yet connected; its library is imported when it connects.

    Raises:
        ArmError: a setting cannot be meant.
    """
    module, _, driver = find_arm(name).driver.partition(":")
    try:
        arm = getattr(importlib.import_module(module), driver)(**vars(settings))
    except ValueError as error:
        raise ArmError(f"arm {name}: {error}") from error
    if missing := [key for key in ("limits", "joint_names") if not hasattr(arm, key)]:
        raise ArmError(f"arm {name}: attribute {', '.join(missing)} missing after its construction (robot_bridge.arms.base.Arm)")
    return cast(Arm, arm)
