"""A sender in a process of its own, to be killed: `python -m robot_bridge.faults.sender_process NAMESPACE`.

It says `ready` when it hears the arm, and begins to sweep a joint whenever a line comes in on standard input.
"""

from __future__ import annotations

import sys
import time


def main(namespace: str) -> None:
    """Sends until it is killed or its input ends."""
    import rclpy
    from rclpy.node import Node

    from robot_bridge.faults.ros_sender import RosSender
    from robot_bridge.nodes.spin import SpinThread

    rclpy.init()
    node = Node("killed_sender", namespace=namespace)
    with SpinThread(node):
        sender = RosSender(node)
        sender.wait(60.0)
        print("ready", flush=True)
        while sys.stdin.readline():
            sender.sender.start(sender.measured(), time.time_ns())


if __name__ == "__main__":
    from robot_bridge.ros_environment import prepare_ros_environment

    prepare_ros_environment()
    main(sys.argv[1])
