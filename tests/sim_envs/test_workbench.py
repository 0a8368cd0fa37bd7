"""The workbench's tasks: ids, contract, compositions, starts, what stays where it was put, and when a task is done."""

from __future__ import annotations

import warnings

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import robot_bridge  # noqa: F401  registers the worlds behind the command filter
import sim_envs  # noqa: F401  registers the others
from sim_envs.arm.env import ArmEnv
from sim_envs.arm.observation import world_contract
from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks import WORKBENCH, find_task
from sim_envs.arm.tasks.workbench import CORPUS, TARGETS
from sim_envs.arm.tasks.workbench_scene import FIXTURES, GAP, PLACES
from sim_envs.arm.world import ArmWorld
from sim_envs.vector import ThreadedVectorEnv


@pytest.fixture(scope="module")
def bench() -> ArmWorld:
    return ArmWorld("can_left")


def test_every_task_has_an_id_of_either_kind() -> None:
    for suffix in ("", "Filtered"):
        made = {
            spec.kwargs["task"]
            for name, spec in gymnasium.registry.items()
            if name.startswith("armstack/") and spec.kwargs.get("task") in WORKBENCH and ("Filtered" in name) == bool(suffix)
        }
        assert made == set(WORKBENCH)
    assert gymnasium.make("sim_envs:armstack/CanLeftShifted-v0").unwrapped.world.task.name == "can_left_shifted"  # type: ignore[attr-defined]


@pytest.mark.parametrize("action", ["ee_delta", "joint_delta"])
def test_passes_gymnasiums_checker(action: str) -> None:
    env = gymnasium.make("sim_envs:armstack/ButtonCanLeft-v0", action=action)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=True)


def test_steps_in_a_vector() -> None:
    vector = ThreadedVectorEnv([lambda: ArmEnv("can_left", action="joint_delta")] * 2)
    first, _ = vector.reset(seed=[3, 4])
    vector.step(np.zeros((2, 8), np.float32))
    single = ArmEnv("can_left", action="joint_delta")
    for row, seed in enumerate((3, 4)):
        np.testing.assert_array_equal(first["can_pos"][row], single.reset(seed=seed)[0]["can_pos"])
    vector.close()


def test_all_tasks_offer_the_same_channels() -> None:
    """So that their demonstrations are one dataset."""
    contracts = {world_contract(name) for name in WORKBENCH}
    assert len(contracts) == 1
    names = {channel.name for channel in contracts.pop().observation}
    assert {f"{thing}_pos" for thing in (*PLACES, *FIXTURES)} <= names
    assert not any("primitive" in name or "instruction" in name for name in names)


def test_there_are_enough_tasks_with_instructions_of_their_own() -> None:
    assert len(CORPUS) >= 8
    words = [task.instruction for task in (*CORPUS, *TARGETS)]
    assert len(set(words)) == len(words) and all(words)


@pytest.mark.parametrize("target", TARGETS, ids=lambda task: task.name)
def test_the_composition_is_in_no_corpus_task(target) -> None:
    """Every primitive of it is there, and no task has grasping the can and placing it left in one."""
    assert set(target.primitives) <= {primitive for task in CORPUS for primitive in task.primitives}
    length = len(target.primitives)
    for task in CORPUS:
        assert not {"grasp_can", "place_left"} <= set(task.primitives)
        pieces = [task.primitives[k : k + length] for k in range(len(task.primitives))]
        assert target.primitives not in pieces and task.instruction != target.instruction


def test_two_tasks_conflict_in_their_placement_alone() -> None:
    left, right = find_task("block_left"), find_task("block_right")
    assert left.primitives[:-1] == right.primitives[:-1]  # type: ignore[attr-defined]
    assert {left, right} <= set(CORPUS)
    worlds = ArmWorld("block_left"), ArmWorld("block_right")
    for world in worlds:
        world.reset(5)
    np.testing.assert_array_equal(*(world.snapshot() for world in worlds))


def test_starts_differ_and_stay_within_their_ranges(bench: ArmWorld) -> None:
    starts = []
    for seed in range(60):
        bench.reset(seed)
        objects = bench.state().objects
        starts.append([objects[name][0][:2] - PLACES[name] for name in PLACES])
        for name, point in FIXTURES.items():
            assert np.abs(objects[name][0] - point).max() <= 0.01 + 1e-9
    offsets = np.abs(starts)
    assert 0.02 < offsets.max() <= 0.025 and offsets.min() < 0.005


def test_shifted_starts_are_ones_that_no_demonstration_has() -> None:
    world = ArmWorld("can_left_shifted")
    task = find_task("can_left")
    assert world.task.steps == task.steps and world.task.instruction == task.instruction  # type: ignore[attr-defined]
    for seed in range(30):
        world.reset(seed)
        for name, place in PLACES.items():
            offset = np.abs(world.state().objects[name][0][:2] - place).max()
            assert 0.025 <= offset <= 0.05
        objects = world.state().objects
        assert objects["can"][0][0] - objects["block"][0][0] >= GAP


def test_fixtures_and_objects_stay_where_they_are(bench: ArmWorld) -> None:
    bench.reset(2)
    before = {name: pose[0] for name, pose in bench.state().objects.items()}
    bench.advance(1000)
    for name, pose in bench.state().objects.items():
        assert np.abs(pose[0] - before[name]).max() < 0.002, name


@pytest.mark.parametrize("task, joint, travel", [("push_button", "button", 0.013), ("open_drawer", "drawer", 0.11)])
def test_button_and_drawer_stay_where_they_were_moved_to(task: str, joint: str, travel: float) -> None:
    world = ArmWorld(task)
    world.reset(0)
    assert not world.success()
    world.data.qpos[world.model.joint(joint).qposadr[0]] = travel
    mujoco.mj_forward(world.model, world.data)
    assert world.success() and world.reward() == 1.0
    world.advance(1000)
    assert world.travel(joint) == pytest.approx(travel, abs=0.001) and world.success()
    world.reset(0)
    assert world.travel(joint) == 0.0


def test_placing_is_done_in_the_right_tray_only_and_not_in_the_air(bench: ArmWorld) -> None:
    bench.reset(0)
    left, right = (bench.state().objects[f"{side}_tray"][0] for side in ("left", "right"))
    rewards = {}
    for name, place in {"right": right + (0, 0, 0.032), "over": left + (0, 0, 0.2), "left": left + (0.03, -0.03, 0.032)}.items():
        bench.place("can", place)
        mujoco.mj_forward(bench.model, bench.data)
        rewards[name] = bench.reward()
        assert bench.success() == (name == "left") == (bench.reward(shaped=False) == 1.0)
    assert rewards["left"] == 1.0 and max(rewards["right"], rewards["over"]) < 0.9


def test_a_task_of_two_steps_needs_both() -> None:
    world = ArmWorld("button_can_left")
    world.reset(1)
    start = world.reward()
    world.data.qpos[world.model.joint("button").qposadr[0]] = 0.013
    mujoco.mj_forward(world.model, world.data)
    half = world.reward()
    assert start < 0.5 <= half < 1.0 and not world.success()
    world.place("can", (*world.state().objects["left_tray"][0][:2], TABLE_TOP + 0.032))
    mujoco.mj_forward(world.model, world.data)
    assert world.success()


def test_a_drawer_moves_with_its_case(bench: ArmWorld) -> None:
    bench.reset(0)
    bench.data.qpos[bench.model.joint("drawer").qposadr[0]] = 0.05
    bench.place("drawer", (0.7, 0.02, -0.03))
    mujoco.mj_forward(bench.model, bench.data)
    np.testing.assert_allclose(bench.object_pos("drawer"), (0.65, 0.02, -0.03), atol=1e-9)
