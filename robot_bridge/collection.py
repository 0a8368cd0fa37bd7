"""Collecting demonstrations with scripted experts: resumable, repeatable by seed, on several processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium

from rl_core.data.annotations import LANG
from rl_core.data.episode import Episode
from rl_core.data.recording import EpisodeWriter, finished_episodes
from rl_core.errors import ArmstackError
from rl_core.training.seeding import derive_seed
from robot_bridge.recorded_steps import RecordedSteps
from robot_bridge.recording_pool import keep_plan, record_shares, require_same_plan

if TYPE_CHECKING:
    from sim_envs.arm.world_env import WorldEnv

World = Literal["filtered", "osc_pose"]


@dataclass(frozen=True, kw_only=True)
class CollectionPlan:
    """What to record. Episode k has the skill `skills[k % len(skills)]` and a seed that depends on (`seed`, k) alone."""

    task: str = "lift"
    """Task of the native arm: reach, lift, pick_place, sort or one of the workbench."""
    episodes: int = 150
    """Episodes in all."""
    skills: tuple[Literal["expert", "sloppy", "failing"], ...] = ("expert", "sloppy", "failing")
    """Skills of the scripted experts, in turn."""
    world: World = "filtered"
    """`filtered`: position-controlled arm behind decoding, IK and the command filter, as over ROS. `osc_pose`: robosuite's control law."""
    horizon: int = 200
    """Steps after which an episode is cut (20 steps a second)."""
    seed: int = 0
    """Seed of the collection; evaluation seeds start at 1,000,000 and never meet it."""

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("horizon", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ArmstackError(f"plan.{name}: {getattr(self, name)}, valid: {least} or more")
        if not self.skills:
            raise ArmstackError("plan.skills: none, valid: at least one of expert, sloppy, failing")


def make_world(task: str, world: World, horizon: int, **options: Any) -> WorldEnv:
    """The environment in which demonstrations are recorded and policies judged (end-effector deltas).

    Raises:
        ArmstackError: unknown task, or a horizon below 1.
    """
    from robot_bridge.control.filtered_env import FilteredEnv
    from sim_envs.arm.env import ArmEnv
    from sim_envs.arm.tasks import TASKS

    if task not in TASKS:
        raise ArmstackError(f"task {task!r}, valid: {', '.join(TASKS)}")
    if horizon < 1:
        raise ArmstackError(f"horizon {horizon}, valid: 1 or more")
    if world == "filtered":
        return FilteredEnv(task, horizon=horizon, **options)
    return ArmEnv(task=task, controller="osc_pose", action="ee_delta", horizon=horizon, **options)


def record_episode(env: gymnasium.Env[Any, Any], plan: CollectionPlan, index: int) -> Episode:
    """Plays episode `index` of the plan in `env`."""
    from sim_envs.experts import make_expert

    skill = plan.skills[index % len(plan.skills)]
    seed = derive_seed(plan.seed, index) % 1_000_000
    expert = make_expert(plan.task, skill, seed)
    observation, _ = env.reset(seed=seed)
    expert.reset(seed)
    steps, success = RecordedSteps(env, observation), False
    terminal = truncated = False
    while not (terminal or truncated):
        action = expert.act(observation)
        observation, terminal, truncated, info = steps.step(action)
        success = success or bool(info["success"])
    return steps.episode(
        terminal=terminal,
        truncated=truncated,
        success=success,
        uuid=f"{plan.task}-{plan.seed}-{index:05d}-{skill}",
        meta={"index": index, "seed": seed, "task": plan.task, "skill": skill, "world": plan.world, **_words(plan.task)},
    )


def _words(task: str) -> dict[str, str]:
    """The task in words, where it has an instruction."""
    from sim_envs.arm.tasks import WORKBENCH

    return {LANG: WORKBENCH[task].instruction} if task in WORKBENCH else {}


def _record_share(plan: CollectionPlan, folder: Path, indices: Sequence[int]) -> int:
    env = make_world(plan.task, plan.world, plan.horizon)
    writer = EpisodeWriter(folder, env.get_wrapper_attr("contract"))
    for index in indices:
        writer.write(record_episode(env, plan, index))
    env.close()
    return len(indices)


def _plan_facts(plan: CollectionPlan) -> dict[str, Any]:
    """What must be equal for a collection to go on: all but its length, which may grow."""
    return {name: value for name, value in json.loads(json.dumps(asdict(plan))).items() if name != "episodes"}


def collect(plan: CollectionPlan, folder: Path, *, processes: int = 2, progress: Callable[[int], None] = lambda done: None) -> int:
    """Records what is missing of the plan into `folder`, one file an episode; returns how many were recorded now.

    An interrupted collection keeps every finished episode; calling again goes on. `progress(n)` is told of n more episodes.

    Raises:
        ArmstackError: the folder holds episodes of another plan, or `processes` is below 1.
    """
    if processes < 1:
        raise ArmstackError(f"processes: {processes}, valid: 1 or more")
    there = {str(episode_uuid) for episode_uuid in finished_episodes(folder)}
    planned = {f"{plan.task}-{plan.seed}-{k:05d}-{plan.skills[k % len(plan.skills)]}": k for k in range(plan.episodes)}
    strangers = there - planned.keys()
    if strangers:
        raise ArmstackError(f"{folder}: holds {len(strangers)} episodes of another collection, e.g. {min(strangers)}; give a new folder")
    missing = [index for uuid, index in planned.items() if uuid not in there]
    env = make_world(plan.task, plan.world, plan.horizon)
    require_same_plan(folder, _plan_facts(plan))
    EpisodeWriter(folder, env.get_wrapper_attr("contract"))  # writes dataset.json once, before the processes start
    env.close()
    keep_plan(folder, _plan_facts(plan))
    progress(len(there))
    shares = [missing[k : k + 3] for k in range(0, len(missing), 3)]
    record_shares(_record_share, [(plan, folder, share) for share in shares], processes, progress)
    return len(missing)
