"""Tests in real time, over a ROS graph or against a simulated bus, are run again once where they fail.

Other work on the machine may starve a process for seconds, which no test of such a graph can rule out. What fails twice is a failure;
what failed once is counted as `rerun` in pytest's last line, and should be looked at.
"""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def graphics() -> None:
    """For tests that draw: skips them, with the reason, where no graphics library does."""
    from sim_envs.arm.rendering import RenderingUnavailable, working_backend

    try:
        working_backend()
    except RenderingUnavailable as error:
        pytest.skip(str(error).splitlines()[0])


_FIXTURES = {"graph", "ros"}
_FOLDERS = ({"end_to_end"}, {"robot_bridge", "arms"}, {"robot_bridge", "cameras"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks them."""
    for item in items:
        in_real_time = _FIXTURES & set(getattr(item, "fixturenames", ())) or any(names <= set(item.path.parts) for names in _FOLDERS)
        if in_real_time:
            item.add_marker(pytest.mark.flaky(reruns=1))
