"""Picture of an arm beside a person: distance, speed and holds over time, of a bag of `launch/separation` or of an experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.highlevel.anyreader import AnyReaderError
from rosbags.typesys import Stores, get_typestore

from rl_core.data.formats.bag import BagError
from robot_bridge.separation.trace import STANDS_RADPS, Array, SeparationTrace

_TOPICS = {
    "applied": "/arm/applied",
    "measured": "/joint_states",
    "status": "/arm/status",
    "true": "/sim/human_distance",
    "heard": "/human/distance",
    "scale": "/safety/speed_scale",
}
_GUARD = "separation"


def messages_of(bag: str | Path, topics: Mapping[str, str], *, needed: Sequence[str]) -> dict[str, list[tuple[int, Any]]]:
    """Stamps, ns, and messages of a bag of `launch/separation`, each list in the order they came.

    Args:
        bag: its folder.
        topics: name -> the topic's end.
        needed: names without which it is no such bag.

    Raises:
        BagError: no bag there, or one without what is needed.
    """
    if not Path(bag).exists():
        raise BagError(f"{bag}: not there, valid: the folder of a bag")
    found: dict[str, list[tuple[int, Any]]] = {name: [] for name in topics}
    try:
        with AnyReader([Path(bag)], default_typestore=get_typestore(Stores.ROS2_KILTED)) as reader:
            names = {c.id: name for c in reader.connections for name, topic in topics.items() if c.topic.endswith(topic)}
            # of no connection is of all, for the reader
            for connection, logged_ns, raw in reader.messages([c for c in reader.connections if c.id in names]) if names else ():
                message: Any = reader.deserialize(raw, connection.msgtype)
                header = getattr(message, "header", None)
                stamp_ns = logged_ns if header is None else header.stamp.sec * 10**9 + header.stamp.nanosec
                found[names[connection.id]].append((int(stamp_ns), message))
    except (AnyReaderError, OSError) as error:
        raise BagError(f"{bag}: {error}") from error
    if missing := [topics[name] for name in needed if not found[name]]:
        raise BagError(f"{bag}: nothing on {', '.join(missing)}, valid: a recording of launch/separation")
    return found


def read_separation(bag: str | Path) -> SeparationTrace:
    """What a bag of one arm and one simulated person holds; its control periods are those of `arm/applied`.

    Raises:
        BagError: no bag there, or one without an arm or a simulated person.
    """
    found = messages_of(bag, _TOPICS, needed=("applied", "measured", "true"))
    if len(found["applied"]) < 2:
        raise BagError(f"{bag}: 1 message on {_TOPICS['applied']}, valid: a recording in which time passes")
    stamps = np.array([stamp for stamp, _ in found["applied"]])
    positions = np.array([message.points[0].positions for _, message in found["applied"]])
    period = found["applied"][0][1].points[0].time_from_start
    speed = np.abs(np.diff(positions, axis=0)).max(axis=1) / (period.sec + period.nanosec * 1e-9)
    speed[speed < STANDS_RADPS] = 0.0
    names = found["applied"][0][1].joint_names[:-1]  # the gripper, the last, is not slowed
    measured = [(stamp, _fastest(message, names)) for stamp, message in found["measured"]]
    true = np.array([(stamp, message.position[0]) for stamp, message in found["true"]])
    held = [(stamp, float(_GUARD in json.loads(_value(message, "holds")))) for stamp, message in found["status"]]
    return SeparationTrace(
        seconds=(stamps[1:] - stamps[0]) * 1e-9,
        begin_ns=int(stamps[0]),
        distance_m=np.interp(stamps[1:], true[:, 0], true[:, 1]),
        heard_m=_newest(stamps[1:], [(stamp, message.data) for stamp, message in found["heard"]]),
        speed=speed,
        measured_speed=np.nan_to_num(_newest(stamps[1:], measured)),
        scale=_newest(stamps[1:], [(stamp, message.data) for stamp, message in found["scale"]]),
        held=_newest(stamps[1:], held) > 0,
    )


def _newest(stamps: Any, rows: list[tuple[int, float]]) -> Array:
    """At each of `stamps` the value that was said last; NaN before the first."""
    if not rows:
        return np.full(len(stamps), np.nan)
    index = np.searchsorted([stamp for stamp, _ in rows], stamps, side="right") - 1
    return np.where(index >= 0, np.array([value for _, value in rows])[index], np.nan)


def _fastest(message: Any, names: Sequence[str]) -> float:
    return max(abs(velocity) for name, velocity in zip(message.name, message.velocity, strict=True) if name in names)


def _value(message: Any, key: str) -> str:
    return next(str(pair.value) for pair in message.status[0].values if pair.key == key)


def lasting_speed(trace: SeparationTrace) -> float:
    """The highest that lasts for more than a period, rad/s: a start at the measured pose is a jump that nothing moves by."""
    return float(np.minimum(trace.speed[1:], trace.speed[:-1]).max(initial=0.0))


def draw_separation(file: Path, trace: SeparationTrace, *, limit_m: float) -> Path:
    """Writes a PNG: distances with the limit, and the arm's speed with what the guard allowed; holds are grey."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(11, 6), sharex=True, layout="constrained")
    for axes in (upper, lower):
        for index, (begin, end) in enumerate(trace.holds):
            last = trace.seconds[min(end, len(trace.seconds) - 1)]
            axes.axvspan(trace.seconds[begin], last, color="0.85", label="hold" if index == 0 and axes is upper else None)
        axes.grid(alpha=0.3)
    upper.plot(trace.seconds, trace.heard_m, color="C1", linewidth=0.8, drawstyle="steps-post", label="heard by the guard")
    upper.plot(trace.seconds, trace.distance_m, color="C0", linewidth=1.5, label="true")
    upper.axhline(limit_m, color="C3", linestyle="--", label="limit")
    upper.set(ylabel="distance of person and arm [m]", ylim=(0, None))
    lower.plot(trace.seconds, trace.speed, color="C2", linewidth=1.2, label="fastest joint")
    lower.set(ylabel="speed [rad/s]", xlabel="s", ylim=(0, 1.1 * max(lasting_speed(trace), 0.1)))
    share = lower.twinx()
    share.plot(trace.seconds, trace.scale, color="C4", linewidth=0.8, drawstyle="steps-post", label="allowed")
    share.set(ylim=(0, 1.05))
    share.set_ylabel("allowed share of the velocity limits", color="C4")
    figure.legend(loc="outside upper center", ncols=6, fontsize=8, frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
    return file
