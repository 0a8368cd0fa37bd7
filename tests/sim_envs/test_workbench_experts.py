"""The workbench's demonstrators: they do their tasks, and their tags are true."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pytest

from sim_envs.arm.env import ArmEnv
from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks import WORKBENCH
from sim_envs.arm.tasks.workbench import ABOVE, LIFTED
from sim_envs.arm.tasks.workbench_scene import OBJECT_HEIGHT
from sim_envs.experts import TaggedExpert, make_expert, make_tagged_expert


@dataclass(frozen=True)
class Played:
    success: bool
    tags: list[str]
    actions: np.ndarray
    observations: list[dict[str, np.ndarray]]


def play(env: ArmEnv, seed: int, skill: str = "expert") -> Played:
    """Until the demonstrator is done and the task too, or the time is up."""
    expert = make_expert(env.world.task.name, skill, seed)  # type: ignore[arg-type]
    assert isinstance(expert, TaggedExpert)
    observation, info = env.reset(seed=seed)
    tags, actions, observations, truncated = [], [], [observation], False
    while not (truncated or expert.done and info["success"]):
        actions.append(expert.act(observation))
        tags.append(expert.primitive)
        observation, _, _, truncated, info = env.step(actions[-1])
        observations.append(observation)
    return Played(bool(info["success"]), tags, np.array(actions), observations)


@pytest.mark.parametrize("task", [name for name in WORKBENCH if name != "button_can_left_shifted"])  # its parts are all in others
def test_the_expert_does_its_task_and_tags_every_step(task: str) -> None:
    env = ArmEnv(task, reward_shaping=False)
    plays = [play(env, seed) for seed in range(10)]
    done = [played for played in plays if played.success]
    assert len(done) >= 9
    expected = list(WORKBENCH[task].primitives)
    for played in done:
        assert len(played.tags) == len(played.actions) and np.abs(played.actions).max() <= 1.0
        runs = [tag for tag, _ in groupby(played.tags)]
        assert set(runs) == set(expected)
        # A thing that slipped out of the hand is grasped again: the runs of such an episode repeat.
        assert runs == expected or len(runs) > len(expected)
    assert sum([tag for tag, _ in groupby(played.tags)] == expected for played in done) >= 8


def test_tags_change_where_the_motions_do() -> None:
    env = ArmEnv("button_can_left")
    played = play(env, 3)
    begin = {tag: played.tags.index(tag) for tag in WORKBENCH["button_can_left"].primitives}
    at = {tag: played.observations[step] for tag, step in begin.items()}
    over_button = at["push_button"]["eef_pos"] - at["push_button"]["button_pos"]
    assert np.abs(over_button[:2]).max() < 0.012 and 0.03 < over_button[2] < 0.05
    top = at["reach_can"]
    assert top["button_pos"][2] < at["push_button"]["button_pos"][2] - 0.01  # it was pressed before the next reach
    assert np.linalg.norm(at["grasp_can"]["gripper_to_can_pos"]) < 0.015 and at["grasp_can"]["gripper_pos"][0] > 0.07
    assert at["lift"]["gripper_pos"][0] < 0.045 and at["lift"]["can_pos"][2] < TABLE_TOP + OBJECT_HEIGHT["can"] + 0.01
    assert at["place_left"]["can_pos"][2] > TABLE_TOP + OBJECT_HEIGHT["can"] + LIFTED


def test_reaching_ends_over_the_object() -> None:
    played = play(ArmEnv("reach_block"), 0)
    assert np.linalg.norm(played.observations[-1]["gripper_to_block_pos"] + (0, 0, ABOVE)) < 0.02


def test_equal_seeds_give_equal_episodes() -> None:
    env = ArmEnv("push_button")
    first, again, other = play(env, 3), play(env, 3), play(env, 4)
    np.testing.assert_array_equal(first.actions, again.actions)
    assert first.tags == again.tags
    assert not np.array_equal(first.actions[:10], other.actions[:10])


@pytest.mark.parametrize("task", ["reach_block", "can_left", "push_button", "open_drawer"])
def test_a_failing_demonstrator_does_not_do_it(task: str) -> None:
    env = ArmEnv(task, horizon=150)
    assert not any(play(env, seed, "failing").success for seed in range(2))


def test_other_tasks_have_no_tags() -> None:
    with pytest.raises(ValueError, match="'lift'; tasks: reach_block"):
        make_tagged_expert("lift")
