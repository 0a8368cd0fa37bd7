"""ArmWorld: repeatability, commands, snapshots, and its agreement with the published arm."""

import hashlib
import subprocess
import sys
import time

import mujoco
import numpy as np
import pytest

from sim_envs.arm import scene
from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks import TASKS
from sim_envs.arm.world import ArmWorld, FaultyAction, SimulationFault

TASK_NAMES = sorted(TASKS)


def drive(world: ArmWorld, steps: int, seed: int = 0) -> np.ndarray:
    """Random joint targets around the pose; the snapshots after each step."""
    rng = np.random.default_rng(seed)
    home = world.state().joint_pos
    states = []
    for _ in range(steps):
        world.set_joint_target(home + rng.uniform(-0.1, 0.1, 7), rng.uniform(0, 0.08))
        world.advance(25)
        states.append(world.snapshot())
    return np.array(states)


@pytest.fixture(scope="module")
def lift() -> ArmWorld:
    return ArmWorld("lift")


@pytest.mark.parametrize("task", TASK_NAMES)
def test_reset_repeats_to_the_bit_whatever_came_before(task):
    world = ArmWorld(task)
    world.reset(7)
    first, path = world.snapshot(), drive(world, 5)
    world.reset(8)
    assert not np.array_equal(world.snapshot(), first)
    drive(world, 3, seed=1)
    world.reset(7)
    np.testing.assert_array_equal(world.snapshot(), first)
    np.testing.assert_array_equal(drive(world, 5), path)


def test_reset_repeats_across_processes():
    code = (
        "import hashlib, numpy as np; from sim_envs.arm.world import ArmWorld; w = ArmWorld('pick_place'); h = hashlib.sha256()\n"
        "for seed in range(3):\n"
        "    w.reset(seed); w.advance(50); h.update(w.snapshot().tobytes())\n"
        "print(h.hexdigest())"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    world, here = ArmWorld("pick_place"), hashlib.sha256()
    for seed in range(3):
        world.reset(seed)
        world.advance(50)
        here.update(world.snapshot().tobytes())
    assert child.stdout.strip() == here.hexdigest()


def test_reset_is_soft(lift):
    start = time.process_time()
    for seed in range(50):
        lift.reset(seed)
    assert (time.process_time() - start) / 50 < 0.005


@pytest.mark.parametrize("task", TASK_NAMES)
def test_restore_continues_to_the_bit(task):
    world = ArmWorld(task)
    world.reset(3)
    drive(world, 4)
    middle = world.snapshot()
    after = drive(world, 4, seed=5)
    world.reset(11)
    world.restore(middle)
    np.testing.assert_array_equal(world.snapshot(), middle)
    np.testing.assert_array_equal(drive(world, 4, seed=5), after)


def test_restore_refuses_another_tasks_snapshot(lift):
    with pytest.raises(ValueError, match="lift world with joint_position needs"):
        lift.restore(ArmWorld("reach").snapshot())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_faulty_target_moves_nothing(lift, bad):
    lift.reset(0)
    before = lift.snapshot()
    target = lift.state().joint_pos
    target[3] = bad
    with pytest.raises(FaultyAction, match="finite"):
        lift.set_joint_target(target, 0.0)
    with pytest.raises(FaultyAction, match="finite"):
        lift.set_joint_target(lift.state().joint_pos, bad)
    with pytest.raises(FaultyAction, match="7"):
        lift.set_joint_target(np.zeros(6), 0.0)
    np.testing.assert_array_equal(lift.snapshot(), before)


def test_diverged_physics_is_no_silent_reset(lift):
    lift.reset(0)
    lift.advance(25)
    lift.data.qvel[0] = 1e12
    with pytest.raises(SimulationFault, match="diverged"):
        lift.advance(25)
    lift.reset(0)
    lift.advance(25)
    assert lift.time_s == pytest.approx(0.05)


def test_servos_hold_still_and_follow_targets(lift):
    lift.reset(0)
    start = lift.state().joint_pos
    lift.advance(500)
    assert np.abs(lift.state().joint_pos - start).max() < 1e-4
    lift.set_joint_target(start + 0.2, 0.0)
    lift.advance(250)
    assert np.abs(lift.state().joint_pos - (start + 0.2)).max() < 3e-3


def test_servos_calm_down_everywhere_in_the_workspace():
    """The servos' explicit integration is damped at every pose, not only where their gains were chosen."""
    world = ArmWorld("reach")
    world.model.geom_conaffinity[:] = 0  # the table is in the way of some poses
    rng = np.random.default_rng(0)
    low, high = world.model.jnt_range[:7].T
    for _ in range(30):
        pose = rng.uniform(low + 0.1, high - 0.1)
        world.reset(0)
        world.data.qpos[:7] = pose
        world.data.qvel[:7] = rng.uniform(-0.5, 0.5, 7)
        world.set_joint_target(pose, 0.04)
        world.advance(350)
        reading = world.state()
        assert np.abs(reading.joint_vel).max() < 5e-3 and np.abs(reading.joint_pos - pose).max() < 1e-3


def test_gripper_opens_and_closes_fully(lift):
    """Both ends of the declared range are reached: 0.08 m open, 0 closed."""
    lift.reset(0)
    for opening in (0.08, 0.0):
        lift.set_joint_target(lift.state().joint_pos, opening)
        lift.advance(600)
        # Dry friction of 1 N against a servo of 1000 N/m leaves up to 1 mm a finger.
        assert lift.state().gripper_pos == pytest.approx(opening, abs=0.0021)


def test_cube_sizes_and_places_are_robosuites(lift):
    readings = []
    for seed in range(200):
        lift.reset(seed)
        position, quat = lift.state().objects["cube"]
        half = lift.model.geom_size[lift.model.geom("cube").id]
        mass = lift.model.body_mass[lift.model.body("cube").id]
        assert mass == pytest.approx(8000 * np.prod(half), rel=1e-9)
        assert position[2] == pytest.approx(TABLE_TOP + 0.01 + half[2])
        readings.append(np.concatenate([half, position[:2] - scene.TABLE_CENTRE, quat]))
    sizes, places, quats = np.split(np.array(readings), [3, 5], axis=1)
    assert 0.020 <= sizes.min() < 0.0201 and 0.0219 < sizes.max() <= 0.022
    assert -0.03 <= places.min() < -0.029 and 0.029 < places.max() <= 0.03
    np.testing.assert_allclose(np.linalg.norm(quats, axis=1), 1.0)
    np.testing.assert_array_equal(quats[:, :2], 0.0)


def test_kinematics_model_has_the_end_effector_of_the_world(lift):
    model = mujoco.MjModel.from_xml_string(lift.kinematics_xml())
    data = mujoco.MjData(model)
    assert [model.joint(i).name for i in range(model.njnt)] == list(lift.joint_names)
    assert model.nmesh == 0
    for seed in range(5):
        lift.reset(seed)
        reading = lift.state()
        data.qpos[:] = reading.joint_pos
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(data.site("ee").xpos, reading.eef_pos, atol=1e-12)
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, data.site("ee").xmat)
        assert abs(quat[[1, 2, 3, 0]] @ reading.eef_quat) == pytest.approx(1.0, abs=1e-12)


def test_end_effector_follows_published_dh_parameters(lift):
    """Franka's table of modified DH parameters, flange at 0.107 m, then hand and finger pads (robosuite: 0.1065 + 0.097 m)."""
    rows = [(0, 0.333, 0), (0, 0, -np.pi / 2), (0, 0.316, np.pi / 2), (0.0825, 0, np.pi / 2), (-0.0825, 0.384, -np.pi / 2)]
    rows += [(0, 0, np.pi / 2), (0.088, 0, np.pi / 2)]
    lift.reset(4)
    pose = np.eye(4)
    for (a, d, alpha), theta in zip(rows, lift.state().joint_pos, strict=True):
        (ct, st), (ca, sa) = (np.cos(theta), np.sin(theta)), (np.cos(alpha), np.sin(alpha))
        pose = pose @ np.array([[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]])
    np.testing.assert_allclose((pose @ [0, 0, 0.1065 + 0.097, 1])[:3], lift.state().eef_pos, atol=1e-6)


def test_success_and_reward_of_lift(lift):
    lift.reset(0)
    assert not lift.success() and lift.reward(shaped=False) == 0.0 and 0 < lift.reward() < 0.45
    lift.place("cube", lift.state().eef_pos, yaw=0.0)
    mujoco.mj_forward(lift.model, lift.data)
    assert lift.success() and lift.reward() == 1.0 and lift.reward(shaped=False) == 1.0


def test_grasp_needs_both_pads(lift):
    lift.reset(0)
    lift.place("cube", lift.state().eef_pos)
    lift.data.qpos[7:9] = 0.04, -0.04
    mujoco.mj_forward(lift.model, lift.data)
    assert not lift.grasps("cube")  # between open fingers
    lift.data.qpos[7:9] = 0.015, -0.04
    mujoco.mj_forward(lift.model, lift.data)
    assert not lift.grasps("cube")
    lift.data.qpos[7:9] = 0.019, -0.019
    mujoco.mj_forward(lift.model, lift.data)
    assert lift.grasps("cube")


def test_parts_are_placed_apart_inside_the_left_bin():
    world = ArmWorld("pick_place")
    for seed in range(20):
        world.reset(seed)
        places = np.array([world.state().objects[name][0] for name in world.task.objects])
        gaps = np.linalg.norm(places[:, None, :2] - places[None, :, :2], axis=-1)[np.triu_indices(3, 1)]
        assert gaps.min() >= 0.085
        assert (places[:, 1] > 0.07).all() and not world.success()


def test_all_parts_in_the_right_bin_are_success():
    world = ArmWorld("pick_place")
    world.reset(0)
    rewards = [world.reward()]
    for name, x in zip(world.task.objects, (0.44, 0.5, 0.56), strict=True):
        world.place(name, (x, -0.15, TABLE_TOP + 0.03))
        mujoco.mj_forward(world.model, world.data)
        rewards.append(world.reward())
    assert world.success()
    np.testing.assert_allclose(np.floor(3 * np.array(rewards) + 1e-9), [0, 1, 2, 3])


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="lift, .*pick_place, .*reach"):
        ArmWorld("stack")
    with pytest.raises(ValueError, match="joint_position, osc_pose"):
        ArmWorld("lift", controller="torque")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="osc_pose"):
        ArmWorld("lift").set_pose_delta(np.zeros(7))
