"""How many motions come back after a push: contractive policies, cloning, a run replayed open loop (experiments/contractive_pushes.yaml).

A trial is two episodes from the same seed over a ROS 2 graph in lockstep: undisturbed, and with the hand dragged aside by 5-8 cm half-way.
The policy is back when its hand stays within 1.5 cm of its own undisturbed path until the episode ends.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.data.atomic import write_atomically
from rl_core.data.episode import Dataset
from rl_core.data.formats import read_dataset
from rl_core.methods import load_policy
from rl_core.policy import ActionChunk, Policy, PolicyState
from rl_core.training.evaluation import evaluation_seeds
from rl_core.training.intervals import wilson_interval
from rl_core.training.run import train
from rl_core.training.seeding import numpy_generator
from robot_bridge.collection import CollectionPlan, collect
from robot_bridge.drawing import TASK, check_reach, drawing, hand_of, stroke
from robot_bridge.motion_trace import Motion, read_motions
from robot_bridge.pushed_motion import run_pushes

if TYPE_CHECKING:
    from rclpy import Context

    from robot_bridge.nodes.policy_node import PolicyNode

Array = NDArray[np.float64]
BACK_M = 0.015
"""So near to the undisturbed path, a motion is back."""
_BATCH = 10
"""Trials of one graph; a run that is cut loses at most these."""
_CHANNELS = {"draw": ("eef_pos", "eef_quat"), "lift": ("eef_pos", "eef_quat", "cube_pos")}
_WORLD = {"draw": TASK, "lift": "lift"}


class OpenLoop:
    """A policy whose episodes are played again, action by action, when their seed comes a second time.

    State tensors a row: `seed`, `step`, and those of the policy as `policy.NAME`.

    Args:
        policy: acts in the first episode of each seed.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.contract, self.prepare = policy.contract, policy.prepare
        self._acted: dict[int, list[torch.Tensor]] = {}

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset`; one row."""
        (seed,) = seeds
        inner = self._policy.reset(seeds)
        again = bool(self._acted.get(seed))
        if not again:
            self._acted[seed] = []
        own = {"seed": torch.tensor([seed]), "step": torch.tensor([0]), "again": torch.tensor([again])}
        return replace(inner, tensors={**own, **{f"policy.{name}": value for name, value in inner.tensors.items()}})

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset_rows`."""
        return self.reset(seeds)

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; after its last action a replay repeats it."""
        seed, step, again = (int(state.tensors[name][0]) for name in ("seed", "step", "again"))
        acted = self._acted[seed]
        own = {**state.tensors, "step": torch.tensor([step + 1])}
        if again:
            values = acted[min(step, len(acted) - 1)]
            return ActionChunk(values=values, period_s=self.contract.action.period_s, execute=1), replace(state, tensors=own)
        inner = {name.removeprefix("policy."): value for name, value in state.tensors.items() if name.startswith("policy.")}
        chunk, after = self._policy.act(obs, condition, replace(state, tensors=inner))
        acted.append(chunk.values[:, :1])
        own |= {f"policy.{name}": value for name, value in after.tensors.items()}
        return replace(chunk, values=chunk.values[:, :1], execute=1), replace(after, tensors=own)


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Trains a policy on one task and pushes it.

    Args:
        config: `method`; `task`, draw or lift; `trials`; `horizon`, policy steps; `push_at_s`, the earliest and the latest; `updates`;
            `overrides` of the method's configuration; `open_loop`, to replay the undisturbed run in the pushed one. For draw: `shape`,
            `size`, `seconds`; for lift: `demonstrations`.
        seed: of training and pushes.
        run_dir: where it works; a run that was cut goes on with its next batch of trials.
    """
    result = train(
        config["method"],
        demonstrations(config, seed, run_dir),
        run_dir / "train",
        preset="cpu",
        overrides=config.get("overrides", {}),
        trainer={"updates": config["updates"], "seed": seed, "checkpoint_every": config["updates"] // 4},
        channels=_CHANNELS[config["task"]],
        resume=True,
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    requests = pushes(config, seed)
    seeds = evaluation_seeds(seed, len(requests))
    rows: list[dict[str, Any]] = []
    for first in range(0, len(requests), _BATCH):
        file = run_dir / f"trials_{first:03d}.json"
        if not file.is_file():
            batch = list(zip(seeds, requests, strict=True))[first : first + _BATCH]
            found = _trials(config, result.bundle, batch, run_dir / f"bag_{first:03d}")
            with write_atomically(file) as opened:
                opened.write(json.dumps(found, indent=1).encode())
        rows += json.loads(file.read_text())
    return summary(rows)


def demonstrations(config: Mapping[str, Any], seed: int, run_dir: Path) -> Dataset:
    """The task's: a person's stroke, or reaching, grasping and lifting by the scripted expert."""
    if config["task"] == "draw":
        position, quaternion, limits = hand_of("simulated")
        path = stroke(config["shape"], position, size=config["size"], seconds=config["seconds"])
        check_reach(path, limits)
        return drawing(path, quaternion)
    plan = CollectionPlan(task="lift", episodes=config["demonstrations"], skills=("expert",), horizon=120, seed=seed)
    collect(plan, run_dir / "data", processes=1)
    return read_dataset(run_dir / "data")


def pushes(config: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """A request of `sim/disturb` a trial: anywhere but down (the table is there), in half a second."""
    rng = numpy_generator(seed, "pushes")
    made = []
    for _ in range(config["trials"]):
        direction = rng.standard_normal(3)
        direction[2] = abs(direction[2])
        displacement = rng.uniform(*config["push_m"]) * direction / np.linalg.norm(direction)
        at_s = round(float(rng.uniform(*config["push_at_s"])), 2)
        made.append({"displacement": displacement.tolist(), "duration_s": 0.5, "at_s": at_s})
    return made


def _trials(config: Mapping[str, Any], bundle: Path, batch: Sequence[tuple[int, dict[str, Any]]], bag: Path) -> list[dict[str, Any]]:
    shutil.rmtree(bag, ignore_errors=True)  # of a run that was cut
    loaded = Bundle.load(bundle)
    policy: Policy = load_policy(loaded)
    if config.get("open_loop"):
        policy = OpenLoop(policy)

    def make_policy(context: Context) -> PolicyNode:
        from robot_bridge.nodes.policy_monitor import carried_certificate
        from robot_bridge.nodes.policy_node import PolicyNode

        return PolicyNode(policy=policy, certificate=None if config.get("open_loop") else carried_certificate(loaded), context=context)

    arguments = {"task": _WORLD[config["task"]], "sim_mode": "lockstep", "horizon": str(config["horizon"])}
    episodes = [(seed, push) for seed, request in batch for push in (None, request)]
    run_pushes(bag, arguments, episodes, make_policy=make_policy, say=print)
    motions = {}
    for motion in read_motions(bag):  # an episode whose push came late was played again: the last one counts
        motions[motion.seed, motion.pushed is not None] = motion
    return [compare(motions[seed, False], motions[seed, True], request) for seed, request in batch]


def compare(undisturbed: Motion, pushed: Motion, request: Mapping[str, Any]) -> dict[str, Any]:
    """What one trial showed.

    Returns:
        `displaced_m`: how far the push took the hand from where it was undisturbed at that time; `back`: it stayed within `BACK_M` of the
        undisturbed path from some time on until the end; `seconds_back`: that time after the push's end; `back_in_time`: likewise, but of
        where it was undisturbed at the same time; `end_m`: distance between the two ends; `held`, `success`, and the push.
    """
    assert pushed.pushed is not None
    begin, end = pushed.pushed
    beside = np.stack([np.interp(pushed.seconds, undisturbed.seconds, undisturbed.hand[:, axis]) for axis in range(3)], axis=1)
    in_time = np.linalg.norm(pushed.hand - beside, axis=1)
    on_path = np.linalg.norm(pushed.hand[:, None] - undisturbed.hand[None], axis=2).min(axis=1)
    after = pushed.seconds >= end
    away = np.flatnonzero(on_path[after] > BACK_M)
    returned = int(away[-1]) + 1 if len(away) else 0
    back = returned < int(after.sum())
    return {
        "displaced_m": float(in_time[(pushed.seconds >= begin) & (pushed.seconds <= end + 0.1)].max()),
        "back": back,
        "seconds_back": float(pushed.seconds[after][returned] - end) if back else None,
        "back_in_time": bool(in_time[-1] <= BACK_M),
        "end_m": float(in_time[-1]),
        "held": any(row.verdict == "hold" for row in pushed.certified),
        "disturbances": pushed.certified[-1].disturbances if pushed.certified else None,
        "success": pushed.success,
        "success_undisturbed": undisturbed.success,
        "seed": pushed.seed,
        "push": dict(request),
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures of a run's trials: shares in percent, with the 95 % Wilson interval of those that are back."""
    trials = len(rows)
    back = sum(bool(row["back"]) for row in rows)
    low, high = wilson_interval(back, trials)
    seconds = [row["seconds_back"] for row in rows if row["seconds_back"] is not None]

    def percent(name: str) -> float:
        return 100.0 * sum(bool(row[name]) for row in rows) / trials

    return {
        "trials": trials,
        "displaced_cm": 100.0 * float(np.mean([row["displaced_m"] for row in rows])),
        "back_percent": 100.0 * back / trials,
        "back_percent_low": 100.0 * low,
        "back_percent_high": 100.0 * high,
        "back_in_time_percent": percent("back_in_time"),
        "seconds_back_median": float(np.median(seconds)) if seconds else None,
        "end_cm_median": 100.0 * float(np.median([row["end_m"] for row in rows])),
        "held_percent": percent("held"),
        "success_percent": percent("success"),
        "success_undisturbed_percent": percent("success_undisturbed"),
    }
