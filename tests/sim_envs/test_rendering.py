"""Cameras without a screen; and none of it where nobody asked for pictures."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sim_envs.arm import rendering
from sim_envs.arm.rendering import Renderer, RenderingUnavailable
from sim_envs.arm.world import ArmWorld


def test_state_only_work_loads_no_graphics():
    code = """
import sys, os
import gymnasium
env = gymnasium.make("sim_envs:armstack/Lift-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
from sim_envs.experts import make_expert
make_expert("lift")
graphics = ("OpenGL", "glfw", "mujoco.egl", "mujoco.osmesa", "mujoco.glfw")
loaded = [name for name in sys.modules if name.startswith(graphics)]
assert not loaded, loaded
maps = open("/proc/self/maps").read()
assert not any(name in maps for name in ("libEGL", "libOSMesa", "libGLX", "libglfw")), "a graphics library is mapped"
assert "MUJOCO_GL" not in os.environ, "the user's environment was changed"
print("clean")
"""
    environment = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY", "PYOPENGL_PLATFORM")}
    child = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert child.stdout.strip() == "clean", child.stderr


@pytest.mark.parametrize("wanted", ["egl", "osmesa"])
def test_state_only_work_does_not_care_for_the_users_library(wanted):
    """MUJOCO_GL may name a library that is missing here: that is no reason to fail before anybody wants a picture."""
    code = (
        "import sys, os; from sim_envs.arm.world import ArmWorld; ArmWorld('reach').advance(5)\n"
        "print('OpenGL' in sys.modules, os.environ['MUJOCO_GL'])"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "MUJOCO_GL": wanted}, capture_output=True, text=True, timeout=120
    )
    assert child.stdout.split() == ["False", wanted], child.stderr


def test_no_working_library_says_what_to_set_and_install(monkeypatch):
    monkeypatch.setattr(rendering, "_probe", lambda backend: f"lib{backend} is not there")
    rendering.working_backend.cache_clear()
    with pytest.raises(RenderingUnavailable, match="libegl is not there") as error:
        rendering.working_backend()
    rendering.working_backend.cache_clear()
    for text in ("libosmesa is not there", "MUJOCO_GL", "apt install libegl1", "apt install libosmesa6"):
        assert text in str(error.value)


def test_a_wanted_library_that_is_not_there_is_reported_not_replaced():
    rendering.working_backend.cache_clear()
    with pytest.raises(RenderingUnavailable, match="nonsense"):
        rendering.working_backend("nonsense")


def test_the_second_library_is_taken_where_the_first_fails(monkeypatch):
    monkeypatch.setattr(rendering, "_probe", lambda backend: "broken" if backend == "egl" else None)
    rendering.working_backend.cache_clear()
    assert rendering.working_backend() == "osmesa"
    rendering.working_backend.cache_clear()


@pytest.fixture(scope="module")
def backend() -> str:
    try:
        return rendering.working_backend()
    except RenderingUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("camera", rendering.CAMERAS)
def test_cameras_see_the_cube_where_it_is(backend, camera):
    world = ArmWorld("lift")
    renderer = Renderer(world, width=96, height=64, camera=camera)
    world.reset(0)
    world.place("cube", (0.60, 0.06, -0.09))
    picture = renderer.render(world.qpos())
    assert picture.shape == (64, 96, 3) and picture.dtype == np.uint8
    np.testing.assert_array_equal(picture, renderer.render(world.qpos()))
    world.place("cube", (0.60, -0.06, -0.09))
    moved = renderer.render(world.qpos())
    columns = [np.nonzero(_red(image))[1].mean() for image in (picture, moved)]
    # Seen from the front, the robot's left (+y) is at the right of the picture; from the hand, which looks the robot's way, at its left.
    assert (columns[0] > columns[1]) == (camera == "front")
    renderer.close()
    renderer.close()


def test_first_row_is_the_top_of_the_picture(backend):
    renderer = Renderer("lift", width=64, height=64)
    picture = renderer.render(ArmWorld("lift").qpos()).astype(int)
    assert picture[0, :, 2].mean() - picture[0, :, 0].mean() > 20  # the sky is blue, the table is not
    assert picture[-1, :, 2].mean() - picture[-1, :, 0].mean() < 0
    renderer.close()


def test_a_forgotten_renderer_leaves_quietly(backend):
    code = "from sim_envs.arm.rendering import Renderer; r = Renderer('reach', 32, 32); del r; kept = Renderer('reach', 32, 32)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (child.returncode, child.stderr) == (0, "")


def test_environment_renders_rgb(backend):
    import gymnasium

    env = gymnasium.make("sim_envs:armstack/Reach-v0", action="joint_delta", render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    assert env.render().shape == (48, 64, 3)
    env.close()


def test_unknown_camera_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="front, wrist"):
        Renderer("lift", camera="top")


def test_positions_of_another_task_are_refused(backend):
    renderer = Renderer("lift", width=32, height=32)
    with pytest.raises(ValueError, match="another|this renderer's task"):
        renderer.render(ArmWorld("reach").qpos())
    renderer.close()


def _red(image: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(image.astype(int), -1, 0)
    return (red > 60) & (red > 2 * green) & (red > 2 * blue)
