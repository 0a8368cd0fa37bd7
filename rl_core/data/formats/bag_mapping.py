"""BagMapping: which topic of a bag holds which channel of a contract.

As YAML, for bags of other robots (`docs/how-to/record-and-read-bags.md`):

    contract: {robot: ..., observation: [...], action: {...}}     # RobotContract; without it, `arm/contract` of the bag says it
    observation:
      CHANNEL: {topic: ..., field: ..., names: {...}, stamp: ..., align: ..., max_age_s: ...}
    action: {topic: ..., field: ..., names: {...}, stamp: ..., values: ...}
    action_applied: {...}                                         # like `action`; may be left out
    rewards: {topic: ..., field: ..., stamp: ...}                 # may be left out
    episodes: TOPIC                                               # without it, the bag is one episode

Our own graph needs none: `graph_mapping` says where its channels are.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from rl_core.contract import CONTRACT_VERSION, ContractError, RobotContract
from rl_core.data.episode import DatasetError
from rl_core.data.formats.bag_alignment import Alignment
from rl_core.data.formats.bag_applied import TargetSource

StampSource = Literal["header", "sent"]
Values = Literal["units", "policy"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where numbers are found.

    Attributes:
        topic: its name; a relative one is in the namespace of the reader.
        field: dotted path in the message; empty takes the one its type is known for (`position`, `pose.orientation`, `data`, ...).
        names: the contract's name of a dimension -> its name in the message, where they differ.
        stamp: `header`, the message's own stamp (when it was sent, for a message without header), or `sent`.
    """

    topic: str
    field: str = ""
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stamp: StampSource = "header"


@dataclass(frozen=True, kw_only=True)
class ChannelSource(Source):
    """Source of an observation channel.

    Attributes:
        align: see `rl_core.data.formats.bag_alignment`.
        max_age_s: age bound; None takes the channel's.
    """

    align: Alignment = "hold"
    max_age_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class ActionSource(Source):
    """Source of actions; every message of it is a step.

    Attributes:
        values: `units`, numbers in the action's units (the gripper's position), or `policy`, policy values as they are.
    """

    values: Values = "units"


@dataclass(frozen=True, kw_only=True)
class BagMapping:
    """See the module.

    Attributes:
        observation: channel -> where it is found.
        action: the requested actions.
        action_applied: the newest from an action's stamp to the next counts as what was applied; None where not recorded.
        target: of our own graph instead: what the arm says it follows; None where not recorded.
        rewards: numbers that are summed from one observation to the next; None where not recorded.
        episodes: topic with a JSON record {index, stamp_ns, phase, success, ...} where an episode begins and ends; empty: none.
        contract: None where the graph says it.
    """

    observation: Mapping[str, ChannelSource]
    action: ActionSource
    action_applied: ActionSource | None = None
    target: TargetSource | None = None
    rewards: Source | None = None
    episodes: str = ""
    contract: RobotContract | None = None

    @property
    def topics(self) -> set[str]:
        """All topics that are named."""
        sources = [*self.observation.values(), self.action, *filter(None, (self.action_applied, self.rewards))]
        targets = {self.target.joints, self.target.pose} if self.target else set()
        return {source.topic for source in sources} | targets | ({self.episodes} - {""})

    def resolved(self, resolve: Callable[[str], str]) -> BagMapping:
        """The same with every topic's full name."""

        def full(source: Any) -> Any:
            return dataclasses.replace(source, topic=resolve(source.topic))

        return dataclasses.replace(
            self,
            observation={name: full(source) for name, source in self.observation.items()},
            action=full(self.action),
            action_applied=full(self.action_applied) if self.action_applied else None,
            target=dataclasses.replace(self.target, joints=resolve(self.target.joints), pose=resolve(self.target.pose))
            if self.target
            else None,
            rewards=full(self.rewards) if self.rewards else None,
            episodes=resolve(self.episodes) if self.episodes else "",
        )

    def check(self, contract: RobotContract) -> None:
        """Checks that the mapping gives every channel of `contract` and no other.

        Raises:
            DatasetError: a channel is not in the contract, one is not given, or a name that is mapped is none of the channel's.
        """
        channels = {channel.name: channel for channel in contract.observation}
        unknown = sorted(set(self.observation) - set(channels))
        if unknown:
            raise DatasetError(f"mapping: observation names {unknown}; channels of the contract: {sorted(channels)}")
        missing = sorted(set(channels) - set(self.observation) - {name for name in channels if is_derived(name, channels)})
        if missing:
            raise DatasetError(f"mapping: observation lacks {missing}; given: {sorted(self.observation)}")
        named: dict[str, tuple[Source, tuple[str, ...]]] = {
            f"observation.{name}": (source, channels[name].names) for name, source in self.observation.items()
        }
        named |= {"action": (self.action, contract.action.names)}
        for where, (source, names) in named.items():
            strange = sorted(set(source.names) - set(names))
            if strange:
                raise DatasetError(f"mapping: {where}.names maps {strange}; dimensions of the contract: {list(names)}")


def is_derived(name: str, channels: Any) -> bool:
    """Whether channel `name` follows from two others of `channels` (`rl_core.data.derived`)."""
    return name.startswith("gripper_to_") and {"eef_pos", name.removeprefix("gripper_to_")} <= set(channels)


def read_mapping(path: str | Path) -> BagMapping:
    """Reads a mapping from a YAML file.

    Raises:
        DatasetError: not readable, an unknown or missing key, or a value that is not valid; names file and key.
    """
    from ruamel.yaml import YAML  # unlike PyYAML it refuses a key that is there twice
    from ruamel.yaml.error import YAMLError

    path = Path(path)
    try:
        data = YAML(typ="safe", pure=True).load(path.read_text())
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise DatasetError(f"{path}: not readable as YAML: {error}") from error
    try:
        return _mapping(data)
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from error


def _mapping(data: Any) -> BagMapping:
    values = _keys(data, "mapping", required=("observation", "action"), optional=("contract", "action_applied", "rewards", "episodes"))
    channels = _object(values["observation"], "observation")
    mapping = BagMapping(
        observation={str(name): _source(source, ChannelSource, f"observation.{name}") for name, source in channels.items()},
        action=_source(values["action"], ActionSource, "action"),
        action_applied=_source(values["action_applied"], ActionSource, "action_applied") if "action_applied" in values else None,
        rewards=_source(values["rewards"], Source, "rewards") if "rewards" in values else None,
        episodes=_text(values.get("episodes", ""), "episodes"),
        contract=_contract(values["contract"]) if "contract" in values else None,
    )
    if mapping.contract is not None:
        mapping.check(mapping.contract)
    return mapping


def _contract(data: Any) -> RobotContract:
    try:
        return RobotContract.from_json(json.dumps({"version": CONTRACT_VERSION, **_object(data, "contract")}))
    except (ContractError, TypeError, ValueError) as error:
        raise DatasetError(f"contract: {error}") from error


def _source(data: Any, kind: type[Any], where: str) -> Any:
    fields = [f.name for f in dataclasses.fields(kind)]
    values = _keys(data, where, required=("topic",), optional=tuple(name for name in fields if name != "topic"))
    for key in ("topic", "field"):
        _text(values.get(key, ""), f"{where}.{key}")
    if not values["topic"]:
        raise DatasetError(f"{where}.topic is empty, valid: a topic's name")
    if "names" in values:
        values["names"] = {str(k): _text(v, f"{where}.names.{k}") for k, v in _object(values["names"], f"{where}.names").items()}
    for key, choices in (("stamp", StampSource), ("align", Alignment), ("values", Values)):
        if key in values and values[key] not in get_args(choices):
            raise DatasetError(f"{where}.{key}: {values[key]!r}, valid: {', '.join(get_args(choices))}")
    age = values.get("max_age_s")
    if age is not None and (isinstance(age, bool) or not isinstance(age, int | float) or not (math.isfinite(age) and age > 0)):
        raise DatasetError(f"{where}.max_age_s: {age!r}, valid: a number of seconds above 0")
    return kind(**values)


def _keys(data: Any, where: str, *, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    values = _object(data, where)
    valid = [*required, *optional]
    unknown = sorted(str(key) for key in values if key not in valid)
    missing = [key for key in required if key not in values]
    if unknown or missing:
        problem = f"unknown key {', '.join(unknown)}" if unknown else f"key {', '.join(missing)} is missing"
        raise DatasetError(f"{where}: {problem}; valid: {', '.join(valid)}")
    return dict(values)


def _object(data: Any, where: str) -> dict[Any, Any]:
    if not isinstance(data, dict):
        raise DatasetError(f"{where}: {type(data).__name__}, valid: keys and values")
    return data


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DatasetError(f"{where}: {value!r}, valid: a text")
    return value
