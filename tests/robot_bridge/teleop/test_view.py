"""What the page says of the recording."""

from __future__ import annotations

import io
import json

from rich.console import Console

from robot_bridge.nodes.teleop_node import TeleopStatus
from robot_bridge.teleop.view import status_shown


def shown(**recorder: str) -> str:
    status = TeleopStatus(
        state="moving", reason="", authority="teleop", speed_scale=1.0, yours=True, following=True, speed=0.3,
        episode={"index": 1, "phase": "over"}, marked={"success": 2}, recorder=recorder, said="",
    )  # fmt: skip
    console = Console(file=io.StringIO(), width=120)
    console.print(status_shown(status))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_what_was_lost_is_named_beside_what_was_recorded() -> None:
    assert "no recorder heard" in shown()
    assert "2 in data/demos" in (fine := shown(episodes="2", folder="data/demos", losses="[]")) and "LOST" not in fine
    text = shown(episodes="1", folder="data/demos", losses=json.dumps(["episode 1: no space left on device"]))
    assert "1 in data/demos, LOST 1: episode 1: no space left on device" in text
