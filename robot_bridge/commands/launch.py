"""`armstack launch FILE [name:=value ...]`: runs a ROS 2 launch file, with or without a ROS installation."""

from __future__ import annotations

import sys

HELP = """usage: armstack launch FILE [name:=value ...] [--show-args]

Runs a ROS 2 YAML launch file. FILE is a path or the name of one of Armstack's own:
  {files}
Where a ROS installation is sourced, `ros2 launch armstack FILE` runs the same file.

  armstack launch sim_policy bundle:=runs/demo/dac/bundle task:=lift
  armstack launch sim_policy --show-args
"""


def main(argv: list[str]) -> int:
    """Runs the command line; the exit status is that of the first node that failed."""
    if not argv or argv[0] in ("-h", "--help"):
        from robot_bridge.launch_places import launch_files

        sys.stdout.write(HELP.format(files=", ".join(launch_files())))
        return 0 if argv else 2
    from robot_bridge.launch_runner import main as run

    return run(["--show-args" if word in ("-h", "--help") else word for word in argv])
