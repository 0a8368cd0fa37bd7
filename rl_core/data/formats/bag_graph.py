"""The topics of our own ROS 2 graph, by which its bags need no mapping (`docs/reference/ros-interface.md`)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from typing import Any

from rl_core.camera_channel import channel_from_json
from rl_core.contract import Channel, ContractError, Gripper, RobotContract
from rl_core.data.damage import describe
from rl_core.data.derived import is_object_position
from rl_core.data.episode import DatasetError
from rl_core.data.formats.bag_applied import TargetSource
from rl_core.data.formats.bag_mapping import ActionSource, BagMapping, ChannelSource, Source, is_derived

ARM_CONTRACT = "arm/contract"
ARM_STATUS = "arm/status"
EPISODES = "episode"
ACTION = "policy/action"
TARGET, TARGET_POSE = "arm/target", "arm/target_pose"
REWARD = "sim/reward"
_JOINTS = {"joint_pos": "position", "joint_vel": "velocity", "gripper_pos": "position"}
_CAMERA_CONTRACT = re.compile(r"camera/[^/]+/contract")
_NEEDED = re.compile(
    r"joint_states|ee_pose|objects/[^/]+/pose|camera/[^/]+/(image_raw|contract)|episode|policy/action|sim/reward"
    r"|arm/(contract|status|target|target_pose)"
)


class Graph:
    """What a graph says about itself, heard topic by topic.

    Args:
        namespace: of the arm, without slashes at its ends; empty for none.
    """

    def __init__(self, namespace: str = "") -> None:
        self._prefix = f"/{namespace}/" if namespace else "/"
        self._offer = ""
        self._contracts: tuple[RobotContract, ...] = ()
        self._gripper: Gripper | None = None
        self._cameras: dict[str, Channel] = {}

    def resolve(self, topic: str) -> str:
        """The full name of a topic."""
        return topic if topic.startswith("/") else self._prefix + topic

    def relative(self, topic: str) -> str:
        """The name within the namespace; empty for a topic elsewhere."""
        return topic.removeprefix(self._prefix) if topic.startswith(self._prefix) else ""

    def needs(self, topic: str) -> bool:
        """Whether episodes of this graph are made from this topic among others."""
        return _NEEDED.fullmatch(self.relative(topic)) is not None

    def describes(self, topic: str) -> bool:
        """Whether `hear` wants the messages of this topic."""
        name = self.relative(topic)
        return name == ARM_CONTRACT or _CAMERA_CONTRACT.fullmatch(name) is not None

    def hear(self, topic: str, text: str) -> None:
        """Takes a contract.

        Raises:
            DatasetError: it cannot be read, or the arm's changed: another arm or task has taken its place.
        """
        try:
            if self.relative(topic) != ARM_CONTRACT:
                channel = channel_from_json(text)
                self._cameras[channel.name] = channel
            elif not self._offer:
                values, self._offer = json.loads(text), text
                self._contracts = tuple(RobotContract.from_json(json.dumps(contract)) for contract in values["contracts"])
                gripper = values.get("limits", {}).get("gripper")
                self._gripper = Gripper(**gripper) if gripper else None
            elif text != self._offer:
                raise DatasetError("another arm or task has taken the place of the first; valid: one a dataset")
        except (ValueError, KeyError, TypeError, ContractError) as error:
            said = str(error) if isinstance(error, DatasetError) else f"not a contract: {describe(error)}"
            raise DatasetError(f"topic {topic}: {said}") from error

    @property
    def contracts(self) -> tuple[RobotContract, ...]:
        """What the arm understands, one a kind of action, with the cameras' channels; empty before it said so."""
        cameras = self._cameras.values()
        return tuple(dataclasses.replace(contract, observation=(*contract.observation, *cameras)) for contract in self._contracts)

    def contract(self, action_names: list[str]) -> RobotContract:
        """The arm's contract for actions of these names, with the cameras' channels.

        Raises:
            DatasetError: none heard, or the arm understands no such actions.
        """
        if not self._contracts:
            raise DatasetError(f"no message on {self.resolve(ARM_CONTRACT)} says what the numbers mean; valid: a mapping with a contract")
        for contract in self.contracts:
            if sorted(contract.action.names) == sorted(action_names):
                return contract
        raise DatasetError(f"actions of {action_names}; the arm understands {[list(c.action.names) for c in self._contracts]}")

    def mapping(self, contract: RobotContract) -> BagMapping:
        """Where the channels of `contract` are found in this graph."""
        names = [channel.name for channel in contract.observation]
        observation = {channel.name: self._source(channel) for channel in contract.observation if not is_derived(channel.name, names)}
        mapping = BagMapping(
            observation=observation,
            action=ActionSource(topic=ACTION, values="policy"),
            target=TargetSource(joints=TARGET, pose=TARGET_POSE, gripper=self._gripper),
            rewards=Source(topic=REWARD, field="position"),
            episodes=EPISODES,
        )
        return mapping.resolved(self.resolve)

    def mappings(self) -> list[BagMapping]:
        """Those of all contracts whose channels are all found; empty before the arm said what it understands."""
        found = []
        for contract in self.contracts:
            with contextlib.suppress(DatasetError):
                found.append(self.mapping(contract))
        return found

    @staticmethod
    def _source(channel: Channel) -> ChannelSource:
        name = channel.name
        if name in _JOINTS:
            return ChannelSource(topic="joint_states", field=_JOINTS[name])
        if name in ("eef_pos", "eef_quat"):
            return ChannelSource(topic="ee_pose")
        if channel.kind == "image":
            return ChannelSource(topic=f"camera/{name.removesuffix('_image')}/image_raw")
        if channel.kind == "quaternion" or is_object_position(name):
            return ChannelSource(topic=f"objects/{name.rsplit('_', 1)[0]}/pose")
        raise DatasetError(f"channel {name!r} is on no topic of the graph; valid: a mapping that says where it is")


def refusals(statuses: list[Any]) -> dict[str, int]:
    """What the command filter counted between the first and the last of decoded `arm/status` messages (refusals, limits)."""
    if not statuses:
        return {}
    counts = [json.loads(next((pair.value for pair in message.status[0].values if pair.key == "counts"), "{}")) for message in statuses]
    return {name: n - counts[0].get(name, 0) for name, n in counts[-1].items() if n != counts[0].get(name, 0)}
