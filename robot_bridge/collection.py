"""Collecting demonstrations with scripted experts: resumable, repeatable by seed, on several processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np

from rl_core.data.atomic import write_atomically
from rl_core.data.episode import Episode
from rl_core.data.recording import EpisodeWriter, finished_episodes
from rl_core.errors import ArmstackError
from rl_core.training.seeding import derive_seed

World = Literal["filtered", "osc_pose"]
PLAN_FILE = "plan.json"


@dataclass(frozen=True, kw_only=True)
class CollectionPlan:
    """What to record. Episode k has the skill `skills[k % len(skills)]` and a seed that depends on (`seed`, k) alone."""

    task: str = "lift"
    """Task: reach, lift or pick_place."""
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


def make_world(task: str, world: World, horizon: int, **options: Any) -> gymnasium.Env[Any, Any]:
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
    observations, actions, applied, rewards, success = [observation], [], [], [], False
    terminal = truncated = False
    while not (terminal or truncated):
        action = expert.act(observation)
        observation, reward, terminal, truncated, info = env.step(action)
        observations.append(observation)
        actions.append(action)
        applied.append(info.get("action_applied", action))
        rewards.append(reward)
        success = success or bool(info["success"])
    period_ns = round(env.get_wrapper_attr("contract").action.period_s * 1e9)
    return Episode(
        observations={name: np.stack([o[name] for o in observations]) for name in observation},
        actions=np.asarray(actions, np.float32),
        action_applied=np.asarray(applied, np.float32),
        rewards=np.asarray(rewards, np.float32),
        terminal=terminal,
        truncated=truncated,
        stamps_ns=np.arange(len(observations), dtype=np.int64) * period_ns,
        success=success,
        uuid=f"{plan.task}-{plan.seed}-{index:05d}-{skill}",
        meta={"index": index, "seed": seed, "task": plan.task, "skill": skill, "world": plan.world},
    )


def _end_with_parent() -> None:
    """Ends this worker with the process that started it, however that one ended: after a SIGKILL nobody else would."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()  # a pipe that closes with the parent
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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


def _require_same_plan(folder: Path, plan: CollectionPlan) -> None:
    """Raises ArmstackError where the folder holds episodes of another plan."""
    file = folder / PLAN_FILE
    if not file.is_file():
        return
    held, wanted = json.loads(file.read_text()), _plan_facts(plan)
    differences = [f"{name}: there {held.get(name)!r}, asked for {wanted[name]!r}" for name in wanted if held.get(name) != wanted[name]]
    if differences:
        raise ArmstackError(f"{folder}: holds another collection; {'; '.join(differences)}; give a new folder")


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
    _require_same_plan(folder, plan)
    EpisodeWriter(folder, env.get_wrapper_attr("contract"))  # writes dataset.json once, before the processes start
    env.close()
    if not (folder / PLAN_FILE).is_file():
        with write_atomically(folder / PLAN_FILE) as file:
            file.write((json.dumps(_plan_facts(plan), indent=1) + "\n").encode())
    progress(len(there))
    shares = [missing[k : k + 3] for k in range(0, len(missing), 3)]
    # spawn, not fork: the caller may hold torch or rclpy threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            for future in as_completed([pool.submit(_record_share, plan, folder, share) for share in shares]):
                progress(future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)  # else every share would still be recorded before the block is left
            raise
    return len(missing)
