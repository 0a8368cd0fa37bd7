import gymnasium
import pytest

WORLD = "dvfb_tests/Point-v0"


@pytest.fixture(autouse=True, scope="session")
def point_world():
    if WORLD not in gymnasium.registry:
        gymnasium.register(WORLD, entry_point="tests.rl_core.dvfb.small:PointWorld", disable_env_checker=True)
