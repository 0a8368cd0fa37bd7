"""Bags as our own graph leaves them, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rl_core.contract import RobotContract
from rl_core.data.formats.bag import BagWriter
from tests.rl_core.data import bag_messages as bags
from tests.rl_core.data.bag_messages import MS, START_NS, STORE, Sent


def serialised(kind: str, message: Any) -> bytes:
    return bytes(STORE.serialize_cdr(message, kind))


def graph_messages(contract: RobotContract, index: int, *, namespace: str = "") -> list[Sent]:
    """One lockstep episode of 4 steps; as in the simulated arm its first stamp is the last one of the episode before."""
    begin = index * 200 * MS
    sent = START_NS + index * 10_000 * MS
    record = {"index": index, "seed": index + 5, "phase": "running", "success": False, "stamp_ns": begin}
    over = {**record, "phase": "over", "success": index == 1, "return": 1.5}
    frame = f"{namespace}/base" if namespace else "base"
    joints = contract.channel("joint_pos").names
    rows = [("episode", "std_msgs/msg/String", bags.make("std_msgs/msg/String", data=json.dumps(record)))]
    for k in range(5):
        stamp, value = begin + 50 * MS * k, index + 0.1 * k
        if k == 4:
            rows.append(("episode", "std_msgs/msg/String", bags.make("std_msgs/msg/String", data=json.dumps(over))))
        states = {"gripper": 0.04, **dict.fromkeys(reversed(joints), value)}
        rows += [bags.pose("objects/cube/pose", stamp, (value, 0.0, 0.0), (0, 0, 0, 1), frame)[:3]]
        rows += [bags.pose("ee_pose", stamp, (0.0, value, 0.0), (0, 0, 1, 0), frame)[:3]]
        rows += [bags.joint_state("joint_states", stamp, states)[:3]]
        if k < 4:
            action = dict(zip(contract.action.names, [value / 10] * contract.action.size, strict=True))
            rows += [bags.joint_state("policy/action", stamp, action)[:3]]
    prefix = f"/{namespace}/" if namespace else "/"
    return [(prefix + topic, kind, message, sent + k * MS) for k, (topic, kind, message) in enumerate(rows)]


def write_graph_bag(folder: Path, contract: RobotContract, *, episodes: int = 2, namespace: str = "", close: bool = True) -> BagWriter:
    bag = BagWriter(folder)
    offer = {"contracts": [json.loads(contract.to_json())], "limits": {}}
    prefix = f"/{namespace}/" if namespace else "/"
    messages = [bags.text(f"{prefix}arm/contract", START_NS - MS, json.dumps(offer))]
    for index in range(episodes):
        messages += graph_messages(contract, index, namespace=namespace)
    for number, (topic, kind, message, sent_ns) in enumerate(messages):
        bag.write(topic, kind, serialised(kind, message), received_ns=sent_ns + 2 * MS, sent_ns=sent_ns, sequence=number)
        if topic.endswith("/episode") and '"over"' in message.data:
            gaps = json.dumps({"/joint_states": {"received": 5, "lost": 1, "dropped": 2}})
            record = {k: json.dumps(v) for k, v in json.loads(message.data).items()}
            bag.write_metadata("episode", {**record, "gaps": gaps})
    if close:
        bag.close()
    return bag
