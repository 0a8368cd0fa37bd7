"""Where launch files, configurations and executables are: in the source tree, after `pip install`, after `colcon build`."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Iterator
from pathlib import Path

from rl_core.errors import ArmstackError

PACKAGE = "armstack"
# Before the first import, so that Ctrl-C ends a node that still starts without a traceback (`robot_bridge.nodes.__main__`).
_START = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); from robot_bridge.nodes.__main__ import start; "
_START += "sys.exit(start(sys.argv.pop(1)))"
_SOURCE = Path(__file__).resolve().parent.parent
NODES = frozenset(file.stem for file in Path(__file__).parent.joinpath("nodes").glob("*_node.py"))
"""Executables of this package."""


class PlaceError(ArmstackError):
    """A launch file, package or executable that is not there; lists where was looked and what is there."""


def _prefixes() -> Iterator[Path]:
    yield from (Path(part) for part in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if part)
    # colcon installs into PREFIX/lib/pythonX.Y/site-packages, so the prefix is a parent of this file even where nothing was sourced
    yield from _SOURCE.parents
    yield Path(sys.prefix)
    yield Path(site.getuserbase())


def package_share(package: str) -> Path:
    """The share folder of a ROS package; for this one the source tree where it is run from there.

    Raises:
        PlaceError: no such package.
    """
    if package == PACKAGE and (_SOURCE / "package.xml").is_file():
        return _SOURCE
    tried = [prefix / "share" / package for prefix in _prefixes()]
    for folder in tried:
        if folder.is_dir():
            return folder
    raise PlaceError(f"package {package!r} not found; looked for {', '.join(dict.fromkeys(map(str, tried)))}")


def executable(package: str, name: str) -> tuple[str, ...]:
    """The command that starts executable `name` of `package`; this package's nodes run in this Python.

    Raises:
        PlaceError: no such executable.
    """
    if package == PACKAGE:
        if name not in NODES:
            raise PlaceError(f"executable {name!r} of package {PACKAGE} not found; there are {sorted(NODES)}")
        return (sys.executable, "-c", _START, name)
    for prefix in _prefixes():
        file = prefix / "lib" / package / name
        if os.access(file, os.X_OK) and file.is_file():
            return (str(file),)
    found = shutil.which(name)
    if found is None:
        raise PlaceError(f"executable {name!r} of package {package!r} not found in lib/{package} of the sourced workspaces nor on PATH")
    return (found,)


def find_launch_file(name: str) -> Path:
    """The launch file `name`: a path, or `sim_policy` for `launch/sim_policy.launch.yaml` of this package.

    Raises:
        PlaceError: no such file; lists the ones there are.
    """
    if Path(name).is_file():
        return Path(name)
    folder = package_share(PACKAGE) / "launch"
    for candidate in (folder / name, folder / f"{name}.launch.yaml"):
        if candidate.is_file():
            return candidate
    raise PlaceError(f"launch file {name!r} not found; give a path or one of {launch_files()} (in {folder})")


def launch_files() -> list[str]:
    """Names of this package's launch files, sorted."""
    return sorted(file.name.removesuffix(".launch.yaml") for file in (package_share(PACKAGE) / "launch").glob("*.launch.yaml"))
