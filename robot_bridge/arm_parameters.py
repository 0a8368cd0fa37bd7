"""Parameters of an arm node, and the YAML file that holds them: what is misspelt in it is refused, as it would be ignored in silence."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from rl_core.errors import ArmstackError
from rl_core.training.config import Config, ConfigError
from rl_core.yaml_text import load_yaml
from robot_bridge.arms.registry import ARMS, SIMULATED, find_arm
from robot_bridge.driver_settings import not_known

NODE = "arm"
"""Name of the arm node in every launch file."""
_PARAMETERS = "ros__parameters"
_OF_ROS = ("use_sim_time", "start_type_description_service")
_SHAPE = f"/**: {_PARAMETERS}: ..."


class ArmFileError(ArmstackError):
    """A parameter file of an arm node that cannot be meant; names file and parameter, what was found and what would be valid."""


@dataclass(frozen=True, kw_only=True)
class ArmParameters(Config):
    """What every arm node takes; an arm's settings are parameters of their names besides."""

    arm: str = SIMULATED
    """`simulated`, an arm of the registry, or module:class."""
    sim_mode: Literal["realtime", "lockstep"] = "realtime"
    """Of the simulated arm."""
    task: str = ""
    """Kept in recordings; of the simulated arm its world."""
    horizon: int = 0
    """Policy steps of an episode; 0: the task's own."""
    realtime_factor: float = 1.0
    """Of the simulated arm's clock."""
    seed: int = 0
    """Of the first episode."""
    episodes: Literal["forever", "on_request"] = "forever"
    """Whether an episode begins by itself."""
    required_guards: tuple[str, ...] = ()
    """Names of guards that must be heard."""
    required_estops: tuple[str, ...] = ()
    """Full names of nodes with an e-stop that must be heard."""
    separation_required: bool = False
    """Whether a distance to people must be heard."""
    kinematics: str = ""
    """MJCF file of the arm, with a site `ee`."""
    speed: float = 1.0
    """Share of the velocity limits."""
    workspace_min: tuple[float, ...] = ()
    """(3,) corner of a box within the arm's own, metres."""
    workspace_max: tuple[float, ...] = ()
    """(3,) the other corner."""


OWN = tuple(field.name for field in dataclasses.fields(ArmParameters))


def settings_of(arm: str) -> tuple[str, ...]:
    """Names of the settings of `arm`, which are parameters too.

    Raises:
        ArmError: there is no such arm.
    """
    return () if arm == SIMULATED else tuple(field.name for field in dataclasses.fields(find_arm(arm).settings))


def unknown_parameters(arm: str, given: Mapping[str, Any]) -> str:
    """Which of the parameters `given` no arm node with `arm` reads, and what would be valid; empty where there is none.

    An empty text is not given: a launch file passes `host` on to every arm.

    Raises:
        ArmError: there is no such arm.
    """
    own = settings_of(arm)
    names = {name for name, value in given.items() if value not in ("", None) and not name.startswith("qos_overrides.")}
    unknown = sorted(names - {*OWN, *own, *_OF_ROS})
    if not unknown:
        return ""
    others = {field.name for entry in ARMS.values() for field in dataclasses.fields(entry.settings)}
    foreign = [name for name in unknown if name in others]
    if foreign:
        return f"arm {arm}: no setting {', '.join(foreign)}; settings: {', '.join(sorted(own)) or 'none'}"
    return f"arm {arm}: {not_known(unknown, (*own, *OWN))}"


def sections(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Which nodes a parameter file is for, as they are written there, and the parameters of each.

    Raises:
        ArmFileError: not readable, not YAML, or no parameter file.
    """
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArmFileError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ArmFileError(f"{path}: not readable as YAML: {error}") from error
    if not isinstance(content, Mapping):
        raise ArmFileError(f"{path}: {content!r}, valid: {_SHAPE}")
    yield from _walk(content, "", path)


def _walk(content: Mapping[Any, Any], place: str, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in content.items():
        if key == _PARAMETERS and isinstance(value, Mapping | None):
            yield place or "no node", {str(name): parameter for name, parameter in (value or {}).items()}
        elif not isinstance(value, Mapping):
            raise ArmFileError(f"{path}: {place}/{key}: {value!r}, valid: under {_PARAMETERS} of a node ({_SHAPE})")
        else:
            yield from _walk(value, f"{place}/{str(key).strip('/')}", path)


def is_for(section: str, node: str) -> bool:
    """Whether ROS gives the parameters of a section, e.g. `/**` or `/left/arm`, to the node of that full name."""
    tokens = {"**": r"(/\w+)*", "*": r"/\w+"}
    pattern = "".join(tokens.get(token, "/" + re.escape(token)) for token in section.split("/")[1:])
    return re.fullmatch(pattern, node) is not None


def not_for_it(found: Collection[str], node: str) -> str:
    """What is said of files with sections `found`, none of which is for `node`."""
    return f"no parameters for the arm node: they are for {', '.join(found) or 'no node'}, valid: /** or {node}"


def read_arm_file(path: Path, arm: str) -> dict[str, Any]:
    """The parameters that the file gives to an arm node called `arm`, in whatever namespace, which drives `arm`.

    Raises:
        ArmFileError: the file cannot be used, a parameter is unknown or of another type.
        ArmError: there is no such arm.
    """
    found = dict(sections(path))
    meant = {name: values for name, values in found.items() if name.rsplit("/", 1)[-1] in ("*", "**", NODE)}
    if not meant:
        raise ArmFileError(f"{path}: {not_for_it(found, '/' + NODE)}")
    merged = {key: value for values in meant.values() for key, value in values.items()}
    if unknown := unknown_parameters(arm, merged):
        raise ArmFileError(f"{path}: {unknown}")
    try:
        ArmParameters.from_dict({key: value for key, value in merged.items() if key in OWN})
    except ConfigError as error:
        raise ArmFileError(f"{path}: {error}") from error
    return merged
