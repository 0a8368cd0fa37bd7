"""Bodies, their surfaces and motions, and recordings of them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from sim_envs.sensors.humanoid import KEYPOINTS, PELVIS_M, Build, Humanoid
from sim_envs.sensors.motions import ACTIVITIES, Area, motion
from sim_envs.sensors.radar import Wall
from sim_envs.sensors.recordings import RadarScene, Recorder
from sim_envs.sensors.surfaces import sample_surface

TIMES = 0.1 * np.arange(13)
UPRIGHT = np.array([[0.0, 0.0, PELVIS_M]]), np.array([[1.0, 0.0, 0.0, 0.0]])


def keypoint(name: str) -> int:
    return KEYPOINTS.index(name)


def test_joints_bend_the_way_people_do() -> None:
    person = Humanoid()
    straight = person.poses(*UPRIGHT, {})[0][0]
    angles = {"left_shoulder_pitch": 1.0, "right_shoulder_roll": 1.0, "left_knee": 1.0, "right_hip_pitch": 0.5}
    bent = person.poses(*UPRIGHT, {name: np.array([angle]) for name, angle in angles.items()})[0][0]
    moved = bent - straight
    assert moved[keypoint("left_wrist"), 0] > 0.3 and moved[keypoint("right_wrist"), 1] < -0.3
    assert moved[keypoint("left_ankle"), 0] < -0.2 and moved[keypoint("right_knee"), 0] > 0.1
    assert straight[keypoint("left_hip"), 1] > 0 > straight[keypoint("right_hip"), 1]
    tall = Humanoid(Build(height=1.1)).poses(1.1 * UPRIGHT[0], UPRIGHT[1], {})[0][0]
    np.testing.assert_allclose(tall, 1.1 * straight, atol=1e-9)


def test_surface_points_lie_on_their_geoms_and_stand_for_their_area() -> None:
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='capsule' size='0.1 0.3'/><geom type='sphere' size='0.2'/><geom type='box' size='0.1 0.2 0.3'/>"
        "</worldbody></mujoco>"
    )
    surface = sample_surface(model, 3000, np.random.default_rng(0))
    capsule, sphere, box = (surface.geoms == geom for geom in range(3))
    spine = surface.points[capsule] * [0, 0, 1]
    spine[:, 2] = np.clip(spine[:, 2], -0.3, 0.3)
    np.testing.assert_allclose(surface.points[capsule], spine + 0.1 * surface.normals[capsule], atol=1e-12)
    np.testing.assert_allclose(surface.points[sphere], 0.2 * surface.normals[sphere])
    assert ((np.abs(surface.points[box]) / [0.1, 0.2, 0.3]).max(axis=1) == 1).all()
    areas = [2 * np.pi * 0.1 * (0.2 + 0.6), 4 * np.pi * 0.04, 8 * (0.02 + 0.06 + 0.03)]
    np.testing.assert_allclose([surface.areas[rows].sum() for rows in (capsule, sphere, box)], areas)
    on_side = np.abs(surface.points[capsule, 2]) < 0.3
    assert on_side.mean() == pytest.approx(0.75, abs=0.05)
    flat = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom type='plane' size='1 1 1'/></worldbody></mujoco>")
    with pytest.raises(ValueError, match="mjGEOM_PLANE, valid: mjGEOM_SPHERE, mjGEOM_CAPSULE, mjGEOM_BOX"):
        sample_surface(flat, 10, np.random.default_rng(0))


@pytest.mark.parametrize("activity", ACTIVITIES)
def test_people_stay_inside_and_do_what_they_are_said_to(activity: str) -> None:
    area, person = Area(), Humanoid()
    for seed in range(8):
        found = motion(activity, TIMES, person.build, area, np.random.default_rng(seed))
        joints = person.poses(found.position, found.quaternion, found.angles)[0]
        if activity != "falling":
            low, high = np.array(area.low) - 0.05, np.array(area.high) + 0.05
            assert ((found.position[:, :2] >= low) & (found.position[:, :2] <= high)).all()
            assert (found.activity == ACTIVITIES.index(activity)).all()
            assert np.abs(joints[:, [keypoint("left_ankle"), keypoint("right_ankle")], 2].min(axis=1) - area.floor_m - 0.07).max() < 0.12
        speed = np.linalg.norm(np.diff(found.position[:, :2], axis=0), axis=1).mean() / 0.1
        assert (speed > 0.7) == (activity == "walking") or activity == "falling"
        if activity == "waving":
            wrists = joints[:, [keypoint("left_wrist"), keypoint("right_wrist")]]
            assert np.ptp(wrists, axis=0).max() > 0.15 and (wrists[:, :, 2].max(axis=1) > area.floor_m + 1.2).all()


def test_who_falls_stands_before_and_lies_after() -> None:
    person, seen = Humanoid(), set()
    for seed in range(20):
        found = motion("falling", 0.1 * np.arange(20), person.build, Area(), np.random.default_rng(seed))
        falling = found.activity == ACTIVITIES.index("falling")
        assert (
            falling[-1] and (np.diff(falling.astype(int)) >= 0).all() and found.activity[~falling].tolist() == [1] * int((~falling).sum())
        )
        head = person.poses(found.position, found.quaternion, found.angles)[0][:, keypoint("head"), 2]
        assert np.abs(head[~falling] - 0.93).max(initial=0.0) < 0.1
        if found.position[-1, 2] < -0.54:  # down
            assert head[-1] < -0.2
            seen.add("down")
        seen.add("stood" if not falling[0] else "fell")
    assert seen == {"down", "stood", "fell"}


def test_another_activity_is_refused() -> None:
    with pytest.raises(ValueError, match="'dancing', valid: walking, standing, waving, falling"):
        motion("dancing", TIMES, Build(), Area(), np.random.default_rng(0))


def test_the_background_takes_static_clutter_away_and_leaves_the_person() -> None:
    recorder = Recorder(RadarScene(), np.random.default_rng(0))
    found = recorder.record(Build(), "standing", 8, np.random.default_rng(1))
    moving = found.echoes - found.background
    assert np.abs(found.echoes).mean() > 5 * np.abs(moving).mean()  # clutter is the larger part
    profile = np.abs(np.fft.ifft(moving, axis=-1)) ** 2
    assert (profile * found.body).sum() > 0.9 * profile.sum() and found.body.mean() < 0.5
    silent = Recorder(RadarScene(snr_db=200.0, dropout=0.0), np.random.default_rng(0)).record(
        Build(), "standing", 2, np.random.default_rng(1)
    )
    clutter = np.abs(silent.background).max()
    assert np.abs((silent.echoes - silent.background)[0]).max() < 0.3 * clutter


def test_noise_is_as_loud_as_the_scene_says() -> None:
    loud, quiet = (Recorder(RadarScene(snr_db=snr, dropout=0.4), np.random.default_rng(0)) for snr in (0.0, 40.0))
    noisy, clean = (each.record(Build(), "standing", 6, np.random.default_rng(1)) for each in (loud, quiet))
    noise, body = noisy.echoes - clean.echoes, clean.echoes - clean.background
    assert 0.05 < (np.abs(body) ** 2).mean() / (np.abs(noise) ** 2).mean() < 10
    walled = quiet.record(Build(), "standing", 6, np.random.default_rng(1), wall=Wall())
    assert np.abs(walled.echoes - walled.background).mean() < 0.4 * np.abs(body).mean()
    assert np.array_equal(walled.joints, clean.joints) and np.array_equal(walled.body, clean.body)


def test_equal_seeds_give_equal_recordings() -> None:
    first, again, other = (
        Recorder(RadarScene(), np.random.default_rng(0)).record(Build(), "waving", 4, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    assert np.array_equal(first.echoes, again.echoes) and not np.array_equal(first.echoes, other.echoes)
    assert first.echoes.dtype == np.complex64 and first.echoes.shape == (4, 4, 4, 32) and first.joints.shape == (4, 14, 3)
