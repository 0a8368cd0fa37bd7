"""Operational space control: the law against its equations, the compiled loop, and rollouts beside robosuite's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mujoco
import numpy as np
import pytest

from sim_envs.arm import osc_law
from sim_envs.arm.osc import OscPose
from sim_envs.arm.scene import ARM_JOINTS, FINGER_JOINTS, ROBOSUITE_BASE
from sim_envs.arm.world import ArmWorld
from sim_envs.robosuite_tasks import RobosuiteEnv

SUBSTEPS = 25
Observation = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def world() -> ArmWorld:
    return ArmWorld("lift", controller="osc_pose")


@pytest.fixture(scope="module")
def robosuite_lift() -> Iterator[RobosuiteEnv]:
    env = RobosuiteEnv("Lift")
    yield env
    env.close()


def controller(world: ArmWorld) -> OscPose:
    return OscPose(world.model, world.data, joints=ARM_JOINTS, fingers=FINGER_JOINTS)


def reference_torques(q, qd, posture, goal, position, matrix, jacobian, mass, bias):  # noqa: PLR0913
    """The law as it is written in robosuite's `run_controller` and `opspace_matrices`, in NumPy."""
    jp, jr = jacobian[:3], jacobian[3:]
    inverse = np.linalg.inv(mass)
    lambda_full, lambda_pos, lambda_ori = (np.linalg.pinv(j @ inverse @ j.T) for j in (jacobian, jp, jr))
    nullspace = np.eye(7) - inverse @ jacobian.T @ lambda_full @ jacobian
    error = 0.5 * np.cross(matrix.T, goal[3:].reshape(3, 3).T).sum(0)
    force = 150 * (goal[:3] - position) - 2 * np.sqrt(150) * (jp @ qd)
    torque = 150 * error - 2 * np.sqrt(150) * (jr @ qd)
    pose = mass @ (10 * (posture - q) - 2 * np.sqrt(10) * qd)
    return jacobian.T @ np.concatenate([lambda_pos @ force, lambda_ori @ torque]) + bias + nullspace.T @ pose


def test_torques_are_those_of_the_written_law(world: ArmWorld) -> None:
    model, data = world.model, mujoco.MjData(world.model)
    rng = np.random.default_rng(0)
    site = model.site("ee").id
    for _ in range(20):
        data.qpos[:7] = rng.uniform(*model.jnt_range[:7].T)
        data.qvel[:7] = rng.normal(size=7)
        mujoco.mj_forward(model, data)
        jp, jr, mass = np.zeros((3, model.nv)), np.zeros((3, model.nv)), np.zeros((model.nv, model.nv))
        mujoco.mj_jacSite(model, data, jp, jr, site)
        mujoco.mj_fullM(model, mass, data.qM)
        posture, goal = rng.normal(size=7), np.empty(12)
        position, matrix = data.site_xpos[site], data.site_xmat[site].reshape(3, 3)
        osc_law.goal_pose(rng.uniform(-0.5, 0.5, 6), np.eye(3), position, matrix, goal)
        q, qd, bias, mass = data.qpos[:7].copy(), data.qvel[:7].copy(), data.qfrc_bias[:7].copy(), mass[:7, :7].copy()
        ours = osc_law.torques(q, qd, posture, goal, position, matrix, data.xanchor[:7], data.xaxis[:7], mass, bias)
        theirs = reference_torques(q, qd, posture, goal, position, matrix, np.vstack([jp, jr])[:, :7], mass, bias)
        np.testing.assert_allclose(ours, theirs, atol=1e-8 * max(1.0, np.abs(theirs).max()))


def test_goal_turns_about_the_base_axes() -> None:
    base = osc_law.rotation(np.array([0.0, 0.0, np.pi / 2]))
    goal = np.empty(12)
    osc_law.goal_pose(np.array([0.1, 0.0, 0.0, 0.3, 0.0, 0.0]), base, np.zeros(3), np.eye(3), goal)
    np.testing.assert_allclose(goal[:3], [0.0, 0.1, 0.0], atol=1e-15)  # the base's x is the world's y
    np.testing.assert_allclose(goal[3:].reshape(3, 3), osc_law.rotation(np.array([0.0, 0.3, 0.0])), atol=1e-15)


def test_singular_direction_gets_no_force() -> None:
    matrix = np.diag([4.0, 0.0, 9.0])
    osc_law.factorise(matrix)
    vector = np.array([8.0, 5.0, 27.0])
    osc_law.solve(matrix, vector, False)
    np.testing.assert_array_equal(vector, [2.0, 0.0, 3.0])


def test_stretched_arm_stays_finite(world: ArmWorld) -> None:
    world.reset(0)
    world.data.qpos[:7] = [0.0, 0.0, 0.0, -0.07, 0.0, 0.0, 0.0]
    osc = controller(world)
    for _ in range(20):
        osc.set_goal(np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
        osc.advance(SUBSTEPS)
    assert np.isfinite(world.data.qpos).all()
    assert np.abs(world.data.qvel[:7]).max() < 5.0


def test_torques_keep_to_the_motors_limits(world: ArmWorld) -> None:
    world.reset(0)
    world.data.qvel[:7] = 30.0
    osc = controller(world)
    osc.advance(1)
    limits = world.model.actuator_ctrlrange[:7]
    assert (world.data.ctrl[:7] >= limits[:, 0]).all() and (world.data.ctrl[:7] <= limits[:, 1]).all()
    assert (world.data.ctrl[:7] == limits[:, 0]).any()


def test_a_policy_step_may_be_cut_into_pieces(world: ArmWorld) -> None:
    ends = []
    for pieces in ((25,), (5,) * 5, (1,) * 25):
        world.reset(4)
        world.set_pose_delta(np.array([0.5, -0.5, 0.5, 0.2, -0.3, 0.4, 1.0]))
        for piece in pieces:
            world.advance(piece)
        ends.append(world.data.qpos.copy())
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


def test_restored_state_continues_to_the_bit(world: ArmWorld) -> None:
    rng = np.random.default_rng(0)
    world.reset(1)
    for action in rng.uniform(-0.5, 0.5, (5, 7)):
        world.set_pose_delta(action)
        world.advance(SUBSTEPS)
    world.set_pose_delta(np.full(7, 0.3))
    world.advance(10)  # in the middle of a policy step: the goal must come back too
    middle = world.snapshot()
    world.advance(60)
    end = world.snapshot()
    world.reset(2)
    world.restore(middle)
    world.advance(60)
    np.testing.assert_array_equal(world.snapshot(), end)


def test_without_a_goal_the_pose_is_held(world: ArmWorld) -> None:
    world.reset(5)
    start = world.state().eef_pos
    world.advance(500)
    assert np.linalg.norm(world.state().eef_pos - start) < 1e-3


def test_gripper_polarity_and_speed(world: ArmWorld) -> None:
    """-1 opens and +1 closes, a fifth of the half range a policy step, from the middle: robosuite's PandaGripper."""
    world.reset(0)
    targets = []
    for value in (-1, -0.01, 1, 1, 1, 1, 1, 1, 1, 1):
        world.set_pose_delta(np.array([0, 0, 0, 0, 0, 0, value]))
        targets.append(world.data.ctrl[7] - world.data.ctrl[8])
    np.testing.assert_allclose(targets[:3], [0.048, 0.056, 0.048], atol=1e-12)
    assert targets[-1] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("action", [np.full(7, np.nan), np.array([0, 0, 0, 0, 0, 0, np.inf]), np.zeros(6)])
def test_nan_or_misshapen_action_raises_and_moves_nothing(world: ArmWorld, action: np.ndarray) -> None:
    world.reset(0)
    before = world.snapshot()
    with pytest.raises(ValueError, match="7 finite"):
        world.set_pose_delta(action)
    with pytest.raises(ValueError, match="7 finite"):
        controller(world).set_goal(action)
    np.testing.assert_array_equal(world.snapshot(), before)


def test_constructor_names_what_does_not_fit(world: ArmWorld) -> None:
    with pytest.raises(KeyError, match="panda_joint1"):
        OscPose(world.model, world.data, joints=("elbow", *ARM_JOINTS[1:]), fingers=FINGER_JOINTS)
    with pytest.raises(ValueError, match="finger_joint1"):
        OscPose(world.model, world.data, joints=(*ARM_JOINTS[:6], "finger_joint1"), fingers=FINGER_JOINTS)
    with pytest.raises(ValueError, match="chain"):
        OscPose(world.model, world.data, joints=ARM_JOINTS[::-1], fingers=FINGER_JOINTS)
    with pytest.raises(ValueError, match="shape"):
        controller(world).restore(np.zeros(3))


def start_alike(world: ArmWorld, env: RobosuiteEnv, seed: int) -> Observation:
    """Resets robosuite's Lift with `seed` and puts the same state, and a cube of the same size, into our world."""
    observation, _ = env.reset(seed=seed)
    sim = env._world.sim
    world.reset(0)
    world.resize("cube", sim.model._model.geom("cube_g0").size)
    mujoco.mj_setConst(world.model, mujoco.MjData(world.model))
    world.data.qpos[:] = sim.data.qpos
    world.data.qpos[9:12] -= ROBOSUITE_BASE
    assert world._osc is not None
    world._osc.reset()
    mujoco.mj_forward(world.model, world.data)
    return observation


def rollout(
    world: ArmWorld, env: RobosuiteEnv, seed: int, steps: int, act: Callable[[int, Observation], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, bool]:
    """From one state the same actions, chosen by what robosuite shows, in both worlds.

    Returns:
        distance of the end effectors and of the cubes after each step, (T,) metres each; whether robosuite's arm touched anything.
    """
    observation = start_alike(world, env, seed)
    tool, cube, touched = [], [], False
    sim = env._world.sim
    cube_geom = sim.model._model.geom("cube_g0").id
    for step in range(steps):
        action = act(step, observation)
        observation, *_ = env.step(action)
        world.set_pose_delta(action)
        world.advance(SUBSTEPS)
        theirs, ours = env._observer.observe(sim.data._data), world.state()
        tool.append(np.linalg.norm(ours.eef_pos - theirs["eef_pos"]))
        cube.append(np.linalg.norm(ours.objects["cube"][0] - theirs["cube_pos"]))
        touched |= bool((sim.data._data.contact.geom != cube_geom).all(axis=1).any())
    return np.array(tool), np.array(cube), touched


@pytest.mark.parametrize(("seed", "held_for"), [(1, 1), (7, 1), (0, 10), (5, 10)])
def test_100_random_actions_in_free_space_stay_within_2_mm_of_robosuite(
    world: ArmWorld, robosuite_lift: RobosuiteEnv, seed: int, held_for: int, record_testsuite_property: Callable[[str, object], None]
) -> None:
    rng = np.random.default_rng(seed)
    actions = np.repeat(rng.uniform(-1, 1, (100 // held_for, 7)), held_for, axis=0)
    if held_for > 1:
        actions[:, 2] = np.abs(actions[:, 2])  # upwards: long strokes would end in the table
    start = start_alike(world, robosuite_lift, seed)["eef_pos"]
    tool, _, touched = rollout(world, robosuite_lift, seed, 100, lambda step, _: actions[step])
    record_testsuite_property(f"free space, seed {seed}, held {held_for}: largest eef deviation, mm", tool.max() * 1e3)
    assert not touched, "this seed is no free-space rollout: the arm touched something"
    assert np.linalg.norm(world.state().eef_pos - start) > 0.03, "the arm did not move"
    assert tool.max() < 2e-3


def grasp(step: int, observation: Observation) -> np.ndarray:
    """Over the cube, down, close, up."""
    action = np.zeros(7)
    if step < 45:
        action[:3] = np.clip(10 * (observation["gripper_to_cube_pos"] + [0, 0, 0.05 if step < 25 else 0]), -1, 1)
    elif step >= 55:
        action[2] = 0.5
    action[6] = -1.0 if step < 45 else 1.0
    return action


@pytest.mark.parametrize("seed", [0, 1])
def test_a_grasp_lifts_the_cube_in_both_worlds(
    world: ArmWorld, robosuite_lift: RobosuiteEnv, seed: int, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """Contacts amplify small differences, so the deviation is recorded, and only the outcome is asserted."""
    tool, cube, _ = rollout(world, robosuite_lift, seed, 80, grasp)
    record_testsuite_property(f"grasp, seed {seed}: largest eef deviation, mm", tool.max() * 1e3)
    record_testsuite_property(f"grasp, seed {seed}: largest cube deviation, mm", cube.max() * 1e3)
    assert robosuite_lift._success() and world.success()
