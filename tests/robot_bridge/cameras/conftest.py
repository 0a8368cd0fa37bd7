"""Fixtures for tests over a real ROS graph, and the command line called in this process."""

from tests.robot_bridge.conftest import cli
from tests.ros_graph import graph, ros

__all__ = ["cli", "graph", "ros"]
