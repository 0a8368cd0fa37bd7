"""`python -m robot_bridge.nodes arm_node ...`: starts a node, whose heavy imports come last.

Ctrl-C while they run ends the process at once: a KeyboardInterrupt out of the middle of an import would bury what another node said.
"""

from __future__ import annotations

import ast
import importlib.util
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rl_core.errors import ArmstackError
from robot_bridge.ros_environment import prepare_ros_environment


def start(name: str) -> int:
    """Runs the node of module `name` (`arm_node`) with the command line's arguments; returns its exit code, 2 where ROS cannot be used."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(_help(name))
        return 0
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the node takes the signals itself
    try:
        prepare_ros_environment()
    except ArmstackError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return 2
    return int(importlib.import_module(f"robot_bridge.nodes.{name}").main())


def _help(name: str) -> str:
    """What the node's own module says of itself, read without importing it, which may need ROS."""
    spec = importlib.util.find_spec(f"robot_bridge.nodes.{name}")
    assert spec is not None and spec.origin is not None
    about = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    return (
        f"usage: {name} [--ros-args -p NAME:=VALUE ... -r OLD:=NEW ... -r __ns:=/NAMESPACE]\n\n{about}\n\n"
        f"Parameters and topics: docs/reference/ros-interface.md"
    )


def __getattr__(name: str) -> Callable[[], int]:
    """Entry point of each node, by its module's name (`setup.py` lists them)."""
    if not (Path(__file__).parent / f"{name}.py").is_file():
        raise AttributeError(name)
    return partial(start, name)


if __name__ == "__main__":
    raise SystemExit(start(sys.argv.pop(1)))
