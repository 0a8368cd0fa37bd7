"""Observations with pictures: which way up and around they are, and the channels that say so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sim_envs.arm import rendering
from sim_envs.arm.env import ArmEnv
from sim_envs.arm.pictured_env import PicturedEnv, pictured_for
from sim_envs.arm.rendering import RenderingUnavailable

SIZE = (64, 80)


@pytest.fixture(scope="module")
def backend() -> str:
    try:
        return rendering.working_backend()
    except RenderingUnavailable as error:
        pytest.skip(str(error))


def test_channels_are_added_to_the_worlds() -> None:
    env = ArmEnv("can_left")
    pictured = PicturedEnv(env, {"front": SIZE})
    assert pictured.contract.observation[:-1] == env.contract.observation
    channel = pictured.contract.channel("front_image")
    assert (channel.shape, channel.encoding, channel.row_order) == ((*SIZE, 3), "rgb8", "top_down")
    assert pictured.observation_space["front_image"].shape == (*SIZE, 3)


def test_a_policy_gets_the_pictures_it_needs() -> None:
    env = ArmEnv("can_left")
    assert pictured_for(env, env.contract) is env
    need = PicturedEnv(env, {"front": (32, 32), "wrist": (48, 48)}).contract
    offered = pictured_for(env, need)
    need.accepts(offered.get_wrapper_attr("contract"))
    strange = dataclasses.replace(need.channel("front_image"), name="side_image")
    assert pictured_for(env, dataclasses.replace(need, observation=(strange,))) is env  # the contracts say what is missing


def test_unknown_cameras_and_empty_pictures_are_refused() -> None:
    for shapes in ({"top": SIZE}, {"front": (0, 5)}):
        with pytest.raises(ValueError, match="front, wrist"):
            PicturedEnv(ArmEnv("can_left"), shapes)


def test_pictures_show_the_scene_the_right_way_up_and_around(backend: str) -> None:
    """From the front, the block (+y) is right of the can, and farther up, for it is nearer to the robot; the first row is the sky."""
    env = PicturedEnv(ArmEnv("open_drawer"), {"front": (96, 96), "wrist": (96, 96)})
    observation, _ = env.reset(seed=0)
    front = observation["front_image"].astype(int)
    assert front.shape == (96, 96, 3) and observation["front_image"].dtype == np.uint8
    red, green, blue = np.moveaxis(front, -1, 0)
    block = np.nonzero((red > 60) & (red > 2 * green) & (red > 2 * blue))
    can = np.nonzero((blue > 60) & (blue > 1.5 * green) & (blue > 3 * red))
    tray = np.nonzero((red > 100) & (green > 80) & (blue < 0.5 * green))
    assert len(block[0]) > 5 and len(can[0]) > 5 and len(tray[0]) > 20
    assert can[1].mean() < block[1].mean() < tray[1].mean() and tray[1].mean() > 70  # the left tray
    assert block[0].mean() < can[0].mean()
    assert blue[0].mean() > red[0].mean() + 20  # sky
    assert block[0].mean() > 40  # the table is below
    red, green, blue = np.moveaxis(observation["wrist_image"].astype(int), -1, 0)
    block = np.nonzero((red > 60) & (red > 2 * green) & (red > 2 * blue))
    can = np.nonzero((blue > 60) & (blue > 1.5 * green) & (blue > 3 * red))
    assert len(block[0]) > 5 and len(can[0]) > 5
    assert block[1].mean() < can[1].mean() and block[0].mean() > can[0].mean()  # the hand looks the robot's way: +y is left, far is up
    env.close()


def test_pictures_follow_what_moves_on_the_table(backend: str) -> None:
    inner = ArmEnv("open_drawer")
    env = PicturedEnv(inner, {"front": (64, 64)})
    first, _ = env.reset(seed=0)
    again, _ = env.reset(seed=0)
    np.testing.assert_array_equal(first["front_image"], again["front_image"])
    other, _ = env.reset(seed=1)
    assert (other["front_image"] != first["front_image"]).any()
    before = env.reset(seed=0)[0]["front_image"].astype(int)
    inner.world.data.qpos[inner.world.model.joint("drawer").qposadr[0]] = 0.12
    after = env.step(np.zeros(7))[0]["front_image"].astype(int)
    assert np.abs(after - before).max(-1).astype(bool).sum() > 30
    env.close()
