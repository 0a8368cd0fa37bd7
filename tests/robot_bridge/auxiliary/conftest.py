"""Fixtures for tests over a real ROS graph, and the fake recogniser's bundle."""

from pathlib import Path

import pytest

from tests.robot_bridge.auxiliary.fakes import small_bundle
from tests.ros_graph import graph, ros

__all__ = ["graph", "ros"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Folder of a bundle of the fake recogniser."""
    return small_bundle(tmp_path / "bundle")
