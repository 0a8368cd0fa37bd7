"""The station's camera and what is fed there."""

import numpy as np
import pytest

from sim_envs.arm.env import ArmEnv
from sim_envs.arm.world import ArmWorld
from sim_envs.parts.catalogue import NAMES
from sim_envs.parts.factors import PartsError
from sim_envs.parts.station import CRATES, SORTED, Station, fed

pytest.importorskip("robosuite", reason="its meshes are used")


pytestmark = pytest.mark.usefixtures("graphics")


def test_what_is_fed_follows_from_the_seed_and_the_bin() -> None:
    for seed in range(20):
        known = fed("known", seed, "left")
        assert NAMES[known.label] in SORTED["left"] and known == fed("known", seed, "left")
        assert known.factors.arm and not known.factors.damaged and not known.factors.others
        assert fed("damaged", seed, "left").factors.damaged
        assert fed("damaged", seed, "left").label == known.label
    assert {fed("known", seed, "right").crate for seed in range(20)} == set(range(CRATES))


def test_a_feed_that_there_is_none_of() -> None:
    with pytest.raises(PartsError, match="known, light, damaged, foreign"):
        fed("juggled", 0, "left")  # type: ignore[arg-type]


def test_the_picture_shows_the_part_until_it_is_carried_away_and_the_hand_when_it_is_there() -> None:
    station, world = Station("known", 48), ArmWorld("sort")
    world.reset(3)
    station.reset(3)
    start = world.qpos()
    picture = station.render(start)
    assert picture.shape == (48, 48, 3) and picture.dtype == np.uint8
    np.testing.assert_array_equal(station.render(start), picture)
    carried, reached = start.copy(), start.copy()
    carried[9] += 0.5
    reached[1] += 0.55  # the hand comes down
    gone, hand = station.render(carried).astype(int), station.render(reached).astype(int)
    middle = np.s_[18:30, 18:30]
    assert np.abs(gone - picture)[middle].mean() > 15, "the part is not there any more"
    assert np.abs(hand - picture).mean() > 5, "the hand is in view"
    station.close()
    station.close()


def test_done_when_the_part_lies_in_its_bin_and_not_in_the_other() -> None:
    env = ArmEnv("sort")
    env.reset(seed=0)
    world = env.world
    x, y, z = world.object_pos("bin")
    for side, done in ((1, True), (-1, False)):
        world.place("part", (x, side * y, z + 0.02))
        world.advance(1)
        assert world.success() is done
    world.place("part", (x, y, z + 0.2))
    world.advance(1)
    assert not world.success() and 0 < world.reward() < 1 and world.reward(shaped=False) == 0
