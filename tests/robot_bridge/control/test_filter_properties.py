"""Every refusal and limit of the command filter."""

import pytest

from tests.robot_bridge.control.properties import PROPERTIES


@pytest.mark.parametrize("name", PROPERTIES)
def test_filter(name: str) -> None:
    PROPERTIES[name]()
