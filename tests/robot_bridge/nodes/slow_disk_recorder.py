"""The recorder node with a disk that takes half a megabyte a second."""

from __future__ import annotations

import time
from typing import Any

from rl_core.data.formats.bag import McapFile
from robot_bridge.nodes.recorder_node import main

BYTES_PER_S = 5e5

_write = McapFile.write


def _write_slowly(self: McapFile, topic: str, message_type: str, data: bytes, **times: Any) -> None:
    time.sleep(len(data) / BYTES_PER_S)
    _write(self, topic, message_type, data, **times)


if __name__ == "__main__":
    McapFile.write = _write_slowly  # type: ignore[method-assign]
    raise SystemExit(main())
