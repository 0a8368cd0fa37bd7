"""Fixtures for tests over a real ROS graph."""

from tests.ros_graph import graph, ros

__all__ = ["graph", "ros"]
