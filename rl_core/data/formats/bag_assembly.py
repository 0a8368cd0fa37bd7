"""From the messages of one episode to the Episode.

Every message of the action's topic is a step: its stamp is the time of the observation, to which every channel is aligned
(`bag_alignment`). The last observation is at the first stamp of the contract's first mapped channel that is a period or more after
the last action (where the recording ends sooner, the newest; where there is none, the last action is left out). The result depends
on the messages and their stamps alone, not on the order in which they came.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.derived import add_derived
from rl_core.data.episode import DatasetError, Episode
from rl_core.data.fingerprint import content_uuid
from rl_core.data.formats.bag_alignment import Aligned, align
from rl_core.data.formats.bag_applied import Targets, applied_actions, can_be_told, joints_needed
from rl_core.data.formats.bag_mapping import ActionSource, BagMapping, ChannelSource, Source, is_derived
from rl_core.data.formats.bag_parts import POLICY, as_parts, by_source
from rl_core.data.formats.bag_splitting import RawEpisode
from rl_core.data.formats.bag_stream import BagMessage, BagTypes
from rl_core.data.formats.bag_values import default_field, header_stamp_ns, numbers, picture

logger = logging.getLogger(__name__)

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Samples:
    stamps_ns: NDArray[np.int64]
    values: list[Any]
    senders: list[str] = field(default_factory=list)  # of actions: who commanded


class EpisodeAssembler:
    """Makes episodes of one contract.

    Args:
        mapping: topics resolved.
        contract: what the numbers mean.
        types: decodes the messages.

    Raises:
        DatasetError: the mapping does not fit the contract.
    """

    def __init__(self, mapping: BagMapping, contract: RobotContract, types: BagTypes) -> None:
        mapping.check(contract)
        self.mapping = mapping
        self.contract = contract
        self._types = types
        names = [channel.name for channel in contract.observation]
        self._channels = {c.name: c for c in contract.observation if c.name in mapping.observation}
        self._derived = [name for name in names if name not in self._channels and is_derived(name, names)]

    def episodes(self, raw: RawEpisode) -> list[Episode]:
        """The episode, or one for each part of it that another sender commanded (`bag_parts`); parts without a step are left out.

        Raises:
            DatasetError: a message cannot be used; names topic, stamp, what was found and what would be valid.
        """
        by_topic: dict[str, list[BagMessage]] = {}
        for message in sorted(raw.messages, key=lambda m: m.sent_ns):
            by_topic.setdefault(message.topic, []).append(message)
        decode = functools.cache(lambda topic: [(m, self._types.decode(m)) for m in by_topic.get(topic, ())])
        begin = raw.record.get("stamp_ns")
        begin_ns = begin if isinstance(begin, int) else -(2**63)  # what was measured before is of another world
        actions = self._actions(self.mapping.action, decode, begin_ns, raw.over_ns)
        samples = {name: self._channel(channel, decode, begin_ns) for name, channel in self._channels.items()}
        parts = [
            (sender, self._part(raw, _Samples(stamps_ns=actions.stamps_ns[begin:end], values=actions.values[begin:end]), samples, decode))
            for sender, begin, end in by_source(actions.senders)
        ]
        return as_parts([(sender, episode) for sender, episode in parts if episode is not None])

    def _part(self, raw: RawEpisode, actions: _Samples, samples: Mapping[str, _Samples], decode: Any) -> Episode | None:
        times = _times(actions.stamps_ns, next(iter(samples.values())).stamps_ns, self.contract.action.period_s)
        if len(times) < 2:
            return None
        aligned = {name: self._align(name, times, samples[name].stamps_ns) for name in samples}
        kept = np.flatnonzero(np.logical_and.reduce([a.usable for a in aligned.values()]))
        if len(kept) < 2:
            logger.warning("episode %s: of %d steps none has all channels: %s", dict(raw.record), len(times) - 1, _stale(aligned))
            return None
        observations = {name: self._rows(name, samples[name].values, aligned[name].index[kept]) for name in samples}
        requested = np.stack(actions.values)[kept[:-1]]
        return self._finished(raw, times[kept], observations, requested, aligned, kept, decode)

    def _finished(
        self, raw: RawEpisode, stamps: NDArray[np.int64], found: dict[str, Array], requested: Array, aligned: dict[str, Aligned],
        kept: NDArray[np.intp], decode: Any,
    ) -> Episode:  # fmt: skip
        complete = add_derived(found) if self._derived else found
        observations = {c.name: complete[c.name].astype(c.dtype, copy=False) for c in self.contract.observation}
        record = raw.record
        terminal = bool(record.get("terminal", False))
        success = record.get("success") if record.get("phase", "over") == "over" else None  # before the end nobody knows
        facts: dict[str, Any] = {k: v for k, v in record.items() if k not in ("terminal", "success")}
        facts["stale"] = _stale(aligned)
        facts["steps_dropped"] = len(next(iter(aligned.values())).usable) - len(kept)
        if bridged := int((np.diff(kept) > 1).sum()):
            facts["steps_bridging"] = bridged
            text = "episode %s: %d steps were dropped; %d of the others lead over the gap, longer than a period: %s"
            logger.warning(text, dict(record), facts["steps_dropped"], bridged, facts["stale"])
        return Episode(
            observations=observations,
            actions=requested.astype(np.float32),
            rewards=self._rewards(stamps, decode),
            terminal=terminal,
            truncated=not terminal,
            stamps_ns=stamps,
            action_applied=self._let_through(stamps, requested, found, decode)
            if self.mapping.target
            else self._applied(stamps, requested, decode),
            observation_age_ns={name: a.age_ns[kept] for name, a in aligned.items()},
            success=success if isinstance(success, bool) else None,
            uuid=content_uuid(requested.astype(np.float32), {**observations, "": np.array([raw.begin_ns])}),
            meta=facts,
        )

    def _align(self, name: str, times: NDArray[np.int64], stamps: NDArray[np.int64]) -> Aligned:
        source, channel = self.mapping.observation[name], self._channels[name]
        bound_s = source.max_age_s if source.max_age_s is not None else channel.max_age_s
        return align(times, stamps, source.align, round(bound_s * 1e9))

    def _rows(self, name: str, values: list[Any], index: NDArray[np.intp]) -> Array:
        channel = self._channels[name]
        if channel.kind == "image":
            where = f"topic {self.mapping.observation[name].topic}"
            return np.stack([picture(values[i], channel, where=where) for i in index])
        return np.stack([values[i] for i in index])

    def _channel(self, channel: Channel, decode: Any, begin_ns: int) -> _Samples:
        source = self.mapping.observation[channel.name]
        rows: dict[int, Any] = {}
        for message, decoded in decode(source.topic):
            # of pictures only those that are used are unpacked
            value = decoded if channel.kind == "image" else _checked(decoded, channel, source, message)
            if value is not None:
                rows[_stamp(message, decoded, source)] = value
        return _samples(rows, source, begin_ns)

    def _actions(self, source: ActionSource, decode: Any, begin_ns: int, over_ns: int = 2**63) -> _Samples:
        action = self.contract.action
        rows: dict[int, Array] = {}
        senders: dict[int, str] = {}
        for message, decoded in decode(source.topic):
            if message.sent_ns > over_ns:
                break
            path = source.field or default_field(message.type, "vector")
            value = numbers(decoded, path, action.names, found_as=source.names, where=_where(message))
            if value is not None:
                stamp = _stamp(message, decoded, source)
                rows[stamp] = policy_values(value, action) if source.values == "units" else value
                senders[stamp] = (decoded.header.frame_id or POLICY) if source.values == "policy" else ""
        found = _samples(rows, source, begin_ns)
        return dataclasses.replace(found, senders=[senders[stamp] for stamp in found.stamps_ns.tolist()])

    def _rewards(self, stamps: NDArray[np.int64], decode: Any) -> NDArray[np.float32]:
        """(T,) what was earned after each observation and not after the next; 0 where nothing says."""
        source, rows = self.mapping.rewards, {}
        if source is None:
            return np.zeros(len(stamps) - 1, np.float32)
        for message, decoded in decode(source.topic):
            value = numbers(decoded, source.field or "data", ("reward",), found_as=source.names, where=_where(message))
            rows[_stamp(message, decoded, source)] = 0.0 if value is None else float(value[0])
        earned = sorted(rows)
        ends = np.searchsorted(np.array(earned, np.int64), stamps, side="right")
        sums = [sum(rows[stamp] for stamp in earned[begin:end]) for begin, end in zip(ends[:-1], ends[1:], strict=True)]
        return np.array(sums, np.float32)

    def _let_through(self, stamps: NDArray[np.int64], requested: Array, found: dict[str, Array], decode: Any) -> NDArray[np.float32] | None:
        source = self.mapping.target
        if source is None or not can_be_told(self.contract, source.gripper):
            return None
        names = joints_needed(self.contract, source.gripper)
        joints = self._targets(source.joints, lambda m, where: numbers(m, "positions", names, found_as={}, where=where), decode)
        poses = self._targets(source.pose, _pose_row, decode) if self.contract.action.space == "end_effector" else joints
        if poses is None or (names and joints is None):
            return None
        return applied_actions(self.contract, requested, stamps, found, joints or poses, poses, source.gripper)

    def _targets(self, topic: str, row: Any, decode: Any) -> Targets | None:
        rows = {header_stamp_ns(decoded): row(decoded, _where(message)) for message, decoded in decode(topic)}
        stamps = sorted(stamp for stamp, values in rows.items() if stamp is not None and values is not None)
        return Targets(stamps_ns=np.array(stamps, np.int64), values=np.stack([rows[stamp] for stamp in stamps])) if stamps else None

    def _applied(self, stamps: NDArray[np.int64], requested: Array, decode: Any) -> NDArray[np.float32] | None:
        if self.mapping.action_applied is None:
            return None
        samples = self._actions(self.mapping.action_applied, decode, int(stamps[0]))
        newest = np.searchsorted(samples.stamps_ns, stamps[1:], side="left") - 1
        there = (newest >= 0) & (samples.stamps_ns[newest] >= stamps[:-1]) if len(samples.values) else np.zeros(len(requested), bool)
        rows = [samples.values[i] if ok else row for i, ok, row in zip(newest, there, requested, strict=True)]
        return np.stack(rows).astype(np.float32)


def policy_values(value: Array, action: Action) -> Array:
    """An action in its units, and the gripper's position, as policy values (`Action.scale`, `Gripper`)."""
    values = np.asarray(value, np.float64) / np.array(action.scale)
    if action.gripper is not None:
        values[-1] = 2 * (value[-1] - action.gripper.open) / (action.gripper.closed - action.gripper.open) - 1
    return values


def _times(actions: NDArray[np.int64], clock: NDArray[np.int64], period_s: float) -> NDArray[np.int64]:
    """Stamps of the observations: those of the actions and one after the last."""
    if not len(actions):
        return actions
    after = clock[clock > actions[-1]]
    due = after[after >= actions[-1] + round(period_s * 1e9)]
    last = due[:1] if len(due) else after[-1:]
    return np.concatenate([actions, last])


def _pose_row(message: Any, where: str) -> Array:
    """(7,) position and quaternion x, y, z, w."""
    axes = (("pose.position", ("x", "y", "z")), ("pose.orientation", ("x", "y", "z", "w")))
    parts = [numbers(message, field, names, found_as={}, where=where) for field, names in axes]
    return np.concatenate([part for part in parts if part is not None])


def _where(message: BagMessage) -> str:
    return f"topic {message.topic}, message sent at {message.sent_ns} ns"


def _stamp(message: BagMessage, decoded: Any, source: Source) -> int:
    stamp = header_stamp_ns(decoded) if source.stamp == "header" else None
    return message.sent_ns if stamp is None else stamp


def _checked(decoded: Any, channel: Channel, source: ChannelSource, message: BagMessage) -> Array | None:
    where = _where(message)
    frame = decoded.header.frame_id if hasattr(decoded, "header") else ""
    if hasattr(decoded, "pose") and channel.frame and frame != channel.frame and not frame.endswith(f"/{channel.frame}"):
        raise DatasetError(f"{where}: frame {frame!r}, valid for {channel.name}: {channel.frame!r}")
    field = source.field or default_field(message.type, channel.kind)
    value = numbers(decoded, field, channel.names, found_as=source.names, where=where)
    if value is not None and channel.kind == "quaternion" and not abs(float(np.linalg.norm(value)) - 1) <= 1e-3:
        raise DatasetError(f"{where}: quaternion (x, y, z, w) {value.tolist()} for {channel.name}, valid: norm 1")
    return value


def _samples(rows: dict[int, Any], source: Source, begin_ns: int) -> _Samples:
    if set(rows) == {0} and source.stamp == "header" and begin_ns != 0:
        raise DatasetError(f"topic {source.topic}: its headers have no stamp; valid: one that is set, or `stamp: sent` in the mapping")
    stamps = sorted(stamp for stamp in rows if stamp >= begin_ns)
    return _Samples(stamps_ns=np.array(stamps, np.int64), values=[rows[stamp] for stamp in stamps])


def _stale(aligned: dict[str, Aligned]) -> dict[str, int]:
    return {name: count for name, a in aligned.items() if (count := int(np.sum(a.stale)))}
