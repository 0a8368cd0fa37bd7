"""What a bag holds of each episode's motion: where the hand was, what pushed it, and the policy's certificate over time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.highlevel import AnyReader
from rosbags.highlevel.anyreader import AnyReaderError
from rosbags.typesys import Stores, get_typestore

from rl_core.data.formats.bag import BagError

Array = NDArray[np.float64]
_TOPICS = {"episode": "/episode", "pose": "/ee_pose", "force": "/sim/disturbance", "certificate": "/policy/certificate"}


@dataclass(frozen=True, kw_only=True)
class Certified:
    """One inference under a certificate, as `policy/certificate` tells it. `v` and `bound` are NaN where they are not finite."""

    seconds: float
    v: float
    bound: float
    verdict: str
    reason: str
    disturbances: int
    margin: float


@dataclass(frozen=True, kw_only=True)
class Motion:
    """One episode. Times are seconds since it began.

    Attributes:
        index: of the episode.
        seed: of the episode.
        success: what was said of it last.
        seconds: (T,) of the positions.
        hand: (T, 3) m, frame base.
        force_seconds: (K,) of the forces.
        forces: (K, 3) N that pushed the hand; empty where nothing did.
        certified: in the order of time; empty for a policy without a certificate.
    """

    index: int
    seed: int
    success: bool
    seconds: Array
    hand: Array
    force_seconds: Array
    forces: Array
    certified: tuple[Certified, ...]

    @property
    def pushed(self) -> tuple[float, float] | None:
        """When something began and ended to push; None where nothing did."""
        acting = np.flatnonzero(np.linalg.norm(self.forces, axis=1) > 0)
        if not len(acting):
            return None
        return float(self.force_seconds[acting[0]]), float(self.force_seconds[min(acting[-1] + 1, len(self.forces) - 1)])


def read_motions(bag: str | Path) -> list[Motion]:
    """The episodes that a bag of one arm holds, in their order.

    Raises:
        BagError: no bag there, or one without episodes or poses of the hand.
    """
    found: dict[str, list[Any]] = {name: [] for name in _TOPICS}
    try:
        with AnyReader([Path(bag)], default_typestore=get_typestore(Stores.ROS2_KILTED)) as reader:
            names = {c.id: name for c in reader.connections for name, topic in _TOPICS.items() if c.topic.endswith(topic)}
            for connection, _, raw in reader.messages([c for c in reader.connections if c.id in names]):
                found[names[connection.id]].append(reader.deserialize(raw, connection.msgtype))
    except (AnyReaderError, OSError) as error:
        raise BagError(f"{bag}: {error}") from error
    for name in ("episode", "pose"):
        if not found[name]:
            raise BagError(f"{bag}: nothing on {_TOPICS[name]}, valid: a recording of an arm node's episodes")
    told: dict[int, dict[str, Any]] = {}
    for message in found["episode"]:
        episode = json.loads(message.data)
        if "stamp_ns" in episode:
            told[episode["index"]] = episode
    begins = sorted((episode["stamp_ns"], index) for index, episode in told.items())
    ends = [begin for begin, _ in begins[1:]] + [np.iinfo(np.int64).max]
    poses = [(_ns(m), (m.pose.position.x, m.pose.position.y, m.pose.position.z)) for m in found["pose"]]
    forces = [(_ns(m), (m.wrench.force.x, m.wrench.force.y, m.wrench.force.z)) for m in found["force"]]
    figures = [(values["stamp_ns"], values) for values in (json.loads(m.data) for m in found["certificate"])]
    return [_motion(told[index], begin, end, poses, forces, figures) for (begin, index), end in zip(begins, ends, strict=True)]


def _motion(episode: dict[str, Any], begin: int, end: int, poses: list[Any], forces: list[Any], figures: list[Any]) -> Motion:
    def inside(rows: list[Any]) -> tuple[Array, list[Any]]:
        # In lockstep an episode begins at the stamp with which the one before ended: what was told last with a stamp counts.
        kept = {stamp: value for stamp, value in rows if begin <= stamp < end}
        return np.array([(stamp - begin) * 1e-9 for stamp in kept]), list(kept.values())

    (seconds, hand), (force_seconds, force), (stamps, values) = inside(poses), inside(forces), inside(figures)
    certified = (
        Certified(
            seconds=float(at),
            verdict=value["verdict"],
            reason=value["reason"],
            disturbances=value["disturbances"],
            **{name: np.nan if value[name] is None else value[name] for name in ("v", "bound", "margin")},
        )
        for at, value in zip(stamps, values, strict=True)
    )
    return Motion(
        index=episode["index"],
        seed=episode["seed"],
        success=bool(episode["success"]),
        seconds=seconds,
        hand=np.array(hand).reshape(-1, 3),
        force_seconds=force_seconds,
        forces=np.array(force).reshape(-1, 3),
        certified=tuple(certified),
    )


def _ns(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec * 10**9 + stamp.nanosec)
