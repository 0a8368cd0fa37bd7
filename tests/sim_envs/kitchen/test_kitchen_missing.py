"""What a user reads who has not installed the kitchen's extra."""

import sys

import gymnasium
import pytest

from rl_core.errors import ArmstackError
from sim_envs.kitchen import kitchen


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch):
    kitchen._compiled.cache_clear()
    for name in ("gymnasium_robotics", "gymnasium_robotics.envs.franka_kitchen", "gymnasium_robotics.envs.franka_kitchen.kitchen_env"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ArmstackError, match=r"pip install 'armstack\[kitchen\]'"):
        gymnasium.make("sim_envs:armstack/Kitchen-v0")
