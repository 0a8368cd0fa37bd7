"""The tasks in robosuite: their demonstrators succeed and their tags are in order."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from rl_core.data.annotations import primitive_tags
from robot_bridge import corpus as corpus_module
from robot_bridge.corpus import CorpusPlan, demonstrate, demonstration_world, parts
from robot_bridge.tagged_recording import SETTLED
from sim_envs.robosuite_corpus import ROBOSUITE_TASKS


@pytest.mark.parametrize(("task", "demos"), [("robosuite_lift", 2), ("robosuite_stack", 2), ("robosuite_can", 1)])
def test_demonstrations_in_robosuite(task: str, demos: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All succeed from their first start."""
    monkeypatch.setattr(corpus_module, "ATTEMPTS", 1)
    plan = CorpusPlan(robosuite=True)
    env = demonstration_world(plan, task)
    for index in range(demos):
        episode = demonstrate(env, plan, task, index)
        assert episode.success and episode.meta["lang"] == ROBOSUITE_TASKS[task].instruction and episode.meta["world"] == "robosuite"
        assert SETTLED < len(episode) < ROBOSUITE_TASKS[task].horizon
        assert tuple(tag for tag, _ in groupby(primitive_tags(episode))) == ROBOSUITE_TASKS[task].primitives
        assert np.isfinite(episode.flat_observation(env.get_wrapper_attr("contract"))).all()
    env.close()


def test_every_task_of_robosuite_is_demonstrated_where_asked_for() -> None:
    there = {part.task: part.folder for part in parts(CorpusPlan(robosuite=True))}
    assert {there[task] for task in ROBOSUITE_TASKS} == {f"robosuite/{task}" for task in ROBOSUITE_TASKS}
    assert not set(ROBOSUITE_TASKS) & {part.task for part in parts(CorpusPlan())}
