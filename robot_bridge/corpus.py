"""A corpus of demonstrations of many tasks, each with its instruction and primitives, to retrieve from, and few of the targets.

    FOLDER/prior             demonstrations of every task of the workbench's corpus, one dataset: all offer the same channels
    FOLDER/targets/TASK      a few demonstrations of a composition that no task of the corpus has
    FOLDER/robosuite/TASK    demonstrations in robosuite, where asked for; a dataset each, since their objects differ

Only what succeeded is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium

from rl_core.data.annotations import LANG
from rl_core.data.episode import Episode
from rl_core.data.recording import EpisodeWriter, finished_episodes
from rl_core.errors import ArmstackError
from rl_core.training.seeding import derive_seed
from robot_bridge.collection import World, make_world
from robot_bridge.recording_pool import keep_plan, record_shares, require_same_plan
from robot_bridge.tagged_recording import play_to_success

SHARE = 5
"""Demonstrations that a process records of one task before it takes another."""
ATTEMPTS = 10
"""A demonstration that fails is played anew from another start, at most this often."""


@dataclass(frozen=True, kw_only=True)
class CorpusPlan:
    """What to record. A demonstration depends on its task, its index and the plan alone."""

    demos: int = 20
    """Demonstrations of every task to retrieve from."""
    target_demos: int = 5
    """Demonstrations of every target."""
    world: World = "filtered"
    """`filtered`: position-controlled arm behind decoding, IK and the command filter, as over ROS. `osc_pose`: robosuite's control law."""
    images: bool = False
    """Record the cameras `front` and `wrist` too."""
    image_size: int = 84
    """Height and width of the pictures, pixels."""
    robosuite: bool = False
    """Record the tasks in robosuite too, without pictures."""
    seed: int = 0
    """Seed of the corpus; evaluation seeds start at 1,000,000 and never meet it."""

    def __post_init__(self) -> None:
        for name, least in (("demos", 1), ("target_demos", 1), ("image_size", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ArmstackError(f"plan.{name}: {getattr(self, name)}, valid: {least} or more")


@dataclass(frozen=True, kw_only=True)
class Part:
    """All demonstrations of one task.

    Attributes:
        folder: of the dataset they belong to, relative to the corpus.
        task: name of the task.
        demos: how many.
    """

    folder: str
    task: str
    demos: int

    def uuids(self, seed: int) -> dict[str, int]:
        """uuid -> index of every demonstration."""
        return {f"{self.task}-{seed}-{k:05d}": k for k in range(self.demos)}


def parts(plan: CorpusPlan) -> tuple[Part, ...]:
    """What the corpus consists of."""
    from sim_envs.arm.tasks.workbench import CORPUS, TARGETS
    from sim_envs.robosuite_corpus import ROBOSUITE_TASKS

    found = [Part(folder="prior", task=task.name, demos=plan.demos) for task in CORPUS]
    found += [Part(folder=f"targets/{task.name}", task=task.name, demos=plan.target_demos) for task in TARGETS]
    if plan.robosuite:
        found += [Part(folder=f"robosuite/{name}", task=name, demos=plan.demos) for name in ROBOSUITE_TASKS]
    return tuple(found)


def demonstration_world(plan: CorpusPlan, task: str) -> gymnasium.Env[Any, Any]:
    """The world in which a task is demonstrated, and a policy of it judged: channels and, where the plan has them, pictures.

    Raises:
        ArmstackError: unknown task, or a library is missing that its world needs.
    """
    from sim_envs.arm.pictured_env import PicturedEnv
    from sim_envs.arm.scene import CAMERAS
    from sim_envs.arm.tasks import WORKBENCH
    from sim_envs.robosuite_corpus import ROBOSUITE_TASKS

    if task in ROBOSUITE_TASKS:
        from sim_envs.robosuite_tasks import RobosuiteEnv

        return RobosuiteEnv(ROBOSUITE_TASKS[task].world, horizon=ROBOSUITE_TASKS[task].horizon)
    if task not in WORKBENCH:
        raise ArmstackError(f"task {task!r}, valid: {', '.join((*WORKBENCH, *ROBOSUITE_TASKS))}")
    env = make_world(task, plan.world, WORKBENCH[task].horizon)
    return PicturedEnv(env, {camera: (plan.image_size,) * 2 for camera in CAMERAS}) if plan.images else env


def demonstrate(env: gymnasium.Env[Any, Any], plan: CorpusPlan, task: str, index: int) -> Episode:
    """Demonstration `index` of a task, in its `demonstration_world`.

    Raises:
        ArmstackError: the demonstrator failed from every start.
    """
    from sim_envs.arm.tasks import WORKBENCH
    from sim_envs.experts import make_tagged_expert
    from sim_envs.robosuite_corpus import ROBOSUITE_TASKS

    theirs = ROBOSUITE_TASKS.get(task)
    words = theirs.instruction if theirs else WORKBENCH[task].instruction
    facts = {"index": index, "task": task, "world": "robosuite" if theirs else plan.world, LANG: words}
    for attempt in range(ATTEMPTS):
        seed = derive_seed(plan.seed, task, index, attempt) % 1_000_000
        expert = theirs.expert(seed) if theirs else make_tagged_expert(task, seed)
        episode = play_to_success(env, expert, seed, uuid=f"{task}-{plan.seed}-{index:05d}", facts=facts)
        if episode is not None:
            return episode
    raise ArmstackError(f"task {task}: demonstration {index} failed from {ATTEMPTS} starts, the last with seed {seed}")


def _record_share(plan: CorpusPlan, folder: Path, task: str, indices: Sequence[int]) -> int:
    env = demonstration_world(plan, task)
    writer = EpisodeWriter(folder, env.get_wrapper_attr("contract"))
    for index in indices:
        writer.write(demonstrate(env, plan, task, index))
    env.close()
    return len(indices)


def _plan_facts(plan: CorpusPlan) -> dict[str, Any]:
    """What must be equal for a corpus to go on: how many demonstrations there are, and of which simulators, may grow."""
    facts: dict[str, Any] = json.loads(json.dumps(asdict(plan)))
    return {name: value for name, value in facts.items() if name not in ("demos", "target_demos", "robosuite")}


def record_corpus(plan: CorpusPlan, folder: Path, *, processes: int = 2, progress: Callable[[int], None] = lambda done: None) -> int:
    """Records what is missing of the plan into `folder`; returns how many demonstrations were recorded now.

    An interrupted recording keeps every finished demonstration; calling again goes on. `progress(n)` is told of n more.

    Raises:
        ArmstackError: the folder holds another plan's corpus, or `processes` is below 1.
    """
    if processes < 1:
        raise ArmstackError(f"processes: {processes}, valid: 1 or more")
    require_same_plan(folder, _plan_facts(plan))
    folder.mkdir(parents=True, exist_ok=True)
    keep_plan(folder, _plan_facts(plan))
    shares, recorded = [], 0
    for part in parts(plan):
        there = finished_episodes(folder / part.folder)
        missing = [index for uuid, index in part.uuids(plan.seed).items() if uuid not in there]
        progress(part.demos - len(missing))
        recorded += len(missing)
        if missing and not (folder / part.folder).exists():
            env = demonstration_world(plan, part.task)
            EpisodeWriter(folder / part.folder, env.get_wrapper_attr("contract"))  # dataset.json, before the processes start
            env.close()
        shares += [(plan, folder / part.folder, part.task, missing[k : k + SHARE]) for k in range(0, len(missing), SHARE)]
    record_shares(_record_share, shares, processes, progress)
    return recorded
