"""The adapter to robosuite's tasks, and observations out of files that hold its states only."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import h5py
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import benchmarks.sim
from sim_envs.arm.observation import world_contract
from sim_envs.arm.scene import ROBOSUITE_BASE
from sim_envs.arm.world import FaultyAction, SimulationFault
from sim_envs.robosuite_observation import RobosuiteObserver, states_to_observations
from sim_envs.robosuite_tasks import RobosuiteEnv, RobosuiteMissing, import_robosuite


@pytest.fixture(scope="module")
def lift() -> Iterator[RobosuiteEnv]:
    env = RobosuiteEnv("Lift", horizon=30)
    yield env
    env.close()


def test_passes_gymnasiums_checker(lift: RobosuiteEnv) -> None:
    check_env(lift, skip_render_check=True)


def test_lift_offers_the_native_lifts_contract(lift: RobosuiteEnv) -> None:
    assert lift.contract == world_contract("lift", "ee_delta", "osc_pose")
    observation, _ = lift.reset(seed=0)
    assert list(observation) == [channel.name for channel in lift.contract.observation]


def test_numbers_are_robosuites_own_in_the_base_frame(lift: RobosuiteEnv) -> None:
    """Right after a reset, when robosuite's poses are not one step old, each number can be checked against its observables."""
    lift.reset(seed=3)
    world = lift._world
    theirs = world._get_observations(force_update=True)
    ours = lift._observer.observe(world.sim.data._data)
    np.testing.assert_allclose(ours["joint_pos"], theirs["robot0_joint_pos"], atol=1e-12)
    np.testing.assert_allclose(ours["joint_vel"], theirs["robot0_joint_vel"], atol=1e-12)
    np.testing.assert_allclose(ours["eef_pos"] + ROBOSUITE_BASE, theirs["robot0_eef_pos"], atol=1e-12)
    np.testing.assert_allclose(ours["eef_quat"], theirs["robot0_eef_quat"], atol=1e-12)
    assert ours["gripper_pos"] == pytest.approx(theirs["robot0_gripper_qpos"] @ [1, -1])
    cube = world.cube_body_id
    np.testing.assert_allclose(ours["cube_pos"] + ROBOSUITE_BASE, world.sim.data.body_xpos[cube], atol=1e-12)
    np.testing.assert_allclose(ours["gripper_to_cube_pos"], ours["cube_pos"] - ours["eef_pos"], atol=0)


def test_quaternion_order_is_xyzw(lift: RobosuiteEnv) -> None:
    lift.reset(seed=0)
    data = lift._world.sim.data._data
    half = np.sqrt(0.5)
    data.qpos[12:16] = half, 0, 0, half  # MuJoCo's w, x, y, z: 90 degrees of yaw
    np.testing.assert_allclose(lift._observer.observe(data)["cube_quat"], [0, 0, half, half], atol=1e-12)


def test_poses_are_in_the_frame_of_a_turned_base(lift: RobosuiteEnv) -> None:
    lift.reset(seed=0)
    straight = lift._observer.observe(lift._world.sim.data._data)
    model = copy.copy(lift._observer.model)
    model.body("robot0_base").quat = np.sqrt([0.5, 0, 0, 0.5])
    data = mujoco.MjData(model)
    data.qpos[:] = lift._world.sim.data._data.qpos
    turned = RobosuiteObserver(model).observe(data)
    np.testing.assert_allclose(turned["eef_pos"], straight["eef_pos"], atol=1e-9)
    np.testing.assert_allclose(turned["eef_quat"], straight["eef_quat"], atol=1e-9)
    x, y, z = straight["cube_pos"]
    np.testing.assert_allclose(turned["cube_pos"], [y, -x, z], atol=1e-9)


def test_gripper_polarity_is_metres_of_opening(lift: RobosuiteEnv) -> None:
    ends = {}
    for value in (-1.0, 1.0):
        observation, _ = lift.reset(seed=0)
        for _ in range(29):
            observation, *_ = lift.step(np.array([0, 0, 0, 0, 0, 0, value]))
        ends[value] = float(observation["gripper_pos"][0])
    assert lift.contract.action.gripper is not None
    assert ends[-1.0] == pytest.approx(lift.contract.action.gripper.open, abs=4e-3)
    assert ends[1.0] == pytest.approx(lift.contract.action.gripper.closed, abs=4e-3)


def test_poses_are_as_new_as_joint_positions(lift: RobosuiteEnv) -> None:
    """robosuite's own eef_pos lags its joint_pos by one physics step."""
    lift.reset(seed=0)
    for _ in range(5):
        observation, *_ = lift.step(np.array([1.0, 0, 0, 0, 0, 0, 0]))
    data = mujoco.MjData(lift._observer.model)
    data.qpos[:] = lift._world.sim.data._data.qpos
    np.testing.assert_array_equal(observation["eef_pos"], lift._observer.observe(data)["eef_pos"].astype(np.float32))


def test_reset_repeats_by_seed_in_another_instance(lift: RobosuiteEnv) -> None:
    first, _ = lift.reset(seed=11)
    lift.step(lift.action_space.sample())
    lift.reset()
    other = RobosuiteEnv("Lift")
    other.reset(seed=5)
    for again in (lift.reset(seed=11)[0], other.reset(seed=11)[0]):
        for name, value in first.items():
            np.testing.assert_array_equal(again[name], value)
    assert any((first[name] != value).any() for name, value in lift.reset(seed=12)[0].items())
    other.close()


def test_time_limit_truncates_and_never_terminates(lift: RobosuiteEnv) -> None:
    lift.reset(seed=0)
    ends = [lift.step(np.zeros(7))[2:4] for _ in range(30)]
    assert ends == [(False, False)] * 29 + [(False, True)]


@pytest.mark.parametrize("action", [np.full(7, np.nan), np.array([0, 0, np.inf, 0, 0, 0, 0]), np.zeros(6)])
def test_nan_action_is_never_swallowed(lift: RobosuiteEnv, action: np.ndarray) -> None:
    lift.reset(seed=0)
    with pytest.raises(FaultyAction, match="7 finite"):
        lift.step(action)
    with pytest.raises(gymnasium.error.ResetNeeded, match="faulty"):  # the episode is invalid
        lift.step(np.zeros(7))
    lift.reset(seed=0)
    lift.step(np.zeros(7))


def test_silent_restart_of_diverged_physics_raises(lift: RobosuiteEnv) -> None:
    lift.reset(seed=0)
    lift.step(np.zeros(7))
    lift._world.sim.data.qvel[0] = 1e12
    with pytest.raises(SimulationFault, match="diverged at step 1"):
        lift.step(np.zeros(7))
    with pytest.raises(gymnasium.error.ResetNeeded, match="diverged"):
        lift.step(np.zeros(7))


def test_importing_robosuite_keeps_mujoco_gl_and_logging() -> None:
    code = (
        "import logging, os; os.environ['MUJOCO_GL'] = 'disable'; logging.basicConfig(level=logging.ERROR)\n"
        "from sim_envs.robosuite_tasks import import_robosuite\n"
        "before = list(logging.getLogger().handlers)\n"
        "import_robosuite()\n"
        "root = logging.getLogger()\n"
        "print(os.environ['MUJOCO_GL'], root.level == logging.ERROR, root.handlers == before, logging.root.manager.disable)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.split() == ["disable", "True", "True", "0"]
    assert done.stderr == ""


def test_missing_robosuite_names_make_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "robosuite", None)
    with pytest.raises(RobosuiteMissing, match="make setup"):
        import_robosuite()


@pytest.mark.parametrize("task", ["Lfit", "TwoArmLift"])
def test_unknown_or_two_armed_task_lists_the_valid_ones(task: str) -> None:
    with pytest.raises(ValueError, match="Lift, NutAssembly"):
        RobosuiteEnv(task)


def test_task_with_another_gripper_is_refused() -> None:
    with pytest.raises(ValueError, match="two-finger"):
        RobosuiteEnv("Wipe")


def test_registered_tasks_offer_their_objects() -> None:
    env = gymnasium.make("sim_envs:armstack/RobosuiteDoor-v0")
    observation, _ = env.reset(seed=0)
    assert observation["object_hinges"].shape == (2,)
    assert observation["gripper_to_Door_pos"].shape == (3,)
    env.close()


def write_states(path: Path, lift: RobosuiteEnv) -> dict[str, list[dict[str, np.ndarray]]]:
    """Writes two episodes as robosuite's collection scripts do, recorded on a machine with its assets elsewhere; returns what was seen."""
    sim, seen = lift._world.sim, {}
    with h5py.File(path, "w") as file:
        for seed, name in enumerate(("demo_2", "demo_10")):
            observation, _ = lift.reset(seed=seed)
            mujoco.MjModel.from_xml_string(lift._world.model.get_xml())  # get_xml gives what MuJoCo loaded last
            xml, rows, states = sim.model.get_xml(), [], []
            for action in np.random.default_rng(seed).uniform(-1, 1, (6, 7)):
                rows.append(observation)
                states.append(sim.get_state().flatten())
                observation, *_ = lift.step(action)
            group = file.create_group(f"data/{name}")
            group["states"] = np.array(states)
            assert "robosuite/models/assets" in xml
            group.attrs["model_file"] = xml.replace("robosuite/models/assets", "elsewhere")
            seen[name] = rows
    return seen


def test_states_give_the_observations_that_were_seen(lift: RobosuiteEnv, tmp_path: Path) -> None:
    seen = write_states(tmp_path / "demo.hdf5", lift)
    read = dict(states_to_observations(tmp_path / "demo.hdf5"))
    assert list(read) == ["demo_2", "demo_10"]
    for name, channels in read.items():
        assert list(channels) == list(seen[name][0])
        for channel, values in channels.items():
            np.testing.assert_allclose(values, [row[channel] for row in seen[name]], atol=1e-6)


def test_states_that_do_not_fit_are_named(lift: RobosuiteEnv, tmp_path: Path) -> None:
    path = tmp_path / "demo.hdf5"
    write_states(path, lift)
    with h5py.File(path, "a") as file:
        del file["data/demo_2/states"]
        file["data/demo_2/states"] = np.zeros((3, 4))
    with pytest.raises(ValueError, match=r"demo_2: states of shape \(3, 4\).*\(T, 32\)"):
        dict(states_to_observations(path))
    with h5py.File(path, "a") as file:
        del file["data/demo_2/states"]
    with pytest.raises(ValueError, match="demo_2 needs dataset 'states'"):
        dict(states_to_observations(path))
    with h5py.File(path, "w") as file:
        file["other"] = 1
    with pytest.raises(ValueError, match="no group 'data'"):
        dict(states_to_observations(path))


def test_benchmark_compares_equal_physics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks.sim, "ROUNDS", 1)
    monkeypatch.setattr(benchmarks.sim, "BLOCK", 20)
    report = benchmarks.sim.main()
    assert report["ratio"] == pytest.approx(report["ours"] / report["peer"])
    assert report["osc_pose"]["ratio"] > 1.5 and report["joint_position"]["ratio"] > 1.5
    assert {physics["timestep_s"] for physics in report["setting"]["physics"].values()} == {0.002}


def test_model_of_another_robot_is_refused() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><body><joint name='elbow'/><geom size='1'/></body></worldbody></mujoco>")
    with pytest.raises(ValueError, match="one Panda"):
        RobosuiteObserver(model)
