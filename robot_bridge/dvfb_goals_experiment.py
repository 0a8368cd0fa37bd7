"""How near a hand comes to goals that it is told zero-shot: DVFB against skills drawn at random, over ROS 2 in lockstep.

The skill of each goal is inferred from the states that the pre-trained bundle carries, when the goal is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.data.atomic import write_atomically
from rl_core.dvfb.policy import GOAL, SKILL, with_goal
from rl_core.dvfb.solving import blind_skill
from rl_core.errors import ArmstackError
from rl_core.methods import load_policy
from rl_core.policy import Policy
from rl_core.training.evaluation import evaluation_seeds
from rl_core.training.intervals import wilson_interval
from rl_core.training.seeding import derive_seed, numpy_generator
from robot_bridge.control.explored_box import kept_inside
from robot_bridge.goal_motion import Array, GoalMotion, play_goals
from sim_envs.arm.reward_free import TABLE, WORLDS

CHANNEL = "eef_pos"
THRESHOLDS_CM = tuple(range(1, 11))
_WORLD = "reach"
_BATCH = 20
"""Goals of one graph; a run that is cut loses at most these."""


class BlindPolicy:
    """Told goals, it follows a skill drawn at random for each of them: what inferring one has to beat.

    Args:
        policy: acts under a skill.
        bundle: where the skill is drawn as in training.
        seed: of the draws, with the goal's numbers.
    """

    def __init__(self, policy: Policy, bundle: Bundle, seed: int) -> None:
        self._bundle, self._seed = bundle, seed
        self.contract, self.reset, self.reset_rows, self.act = policy.contract, policy.reset, policy.reset_rows, policy.act

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """See `Policy.prepare`; the same goal has the same skill."""
        goal = np.asarray(condition[GOAL + CHANNEL], np.float32)
        return TensorDict({SKILL: blind_skill(self._bundle, derive_seed(self._seed, str(goal.tolist())))}, batch_size=[])


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Sends the hand of the simulated arm to random goals.

    Args:
        config: `bundle_of`, a run beside this one (its name without the seed) that pre-trained in `armstack/ExploreReach-v0`; `goals`, how
            many; `horizon`, policy steps for each.
        seed: of the pre-training, the goals and the blind skills.
        run_dir: where it works; a run that was cut goes on with its next goals.
    """
    bundle = with_goal(Bundle.load(_pretrained(run_dir, config["bundle_of"], seed)), CHANNEL)
    return judge(bundle, config["goals"], config["horizon"], seed, run_dir)


def judge(bundle: Bundle, count: int, horizon: int, seed: int, run_dir: Path) -> dict[str, Any]:
    """Figures of a bundle that is told goals of `eef_pos`, and, as `blind_...`, of skills drawn at random. See `run` and `summary`."""
    run_dir.mkdir(parents=True, exist_ok=True)
    policy = kept_inside(load_policy(bundle), bundle)
    goals, seeds = random_goals(count, seed), evaluation_seeds(seed, count)
    figures: dict[str, Any] = {"goals": count, "horizon": horizon}
    for prefix, told in (("", policy), ("blind_", BlindPolicy(policy, bundle, seed))):
        rows: list[dict[str, Any]] = []
        for first in range(0, count, _BATCH):
            file = run_dir / f"{prefix}goals_{first:03d}.json"
            if not file.is_file():
                part = slice(first, first + _BATCH)
                motions = play_goals(told, goals[part], seeds[part], task=_WORLD, horizon=horizon, say=print)
                with write_atomically(file) as opened:
                    opened.write(json.dumps([row(motion) for motion in motions], indent=1).encode())
            rows += json.loads(file.read_text())
        figures |= {f"{prefix}{name}": value for name, value in summary(rows).items()}
    return figures


def random_goals(count: int, seed: int) -> list[Array]:
    """Positions (3,), metres in frame base, drawn evenly from the box that was explored."""
    rng, box = numpy_generator(seed, "goals"), WORLDS[_WORLD]
    return [TABLE + rng.uniform(box.low, box.high) for _ in range(count)]


def row(motion: GoalMotion) -> dict[str, Any]:
    """What one goal showed: `end_m`, distance from it at the episode's end, `nearest_m`, the least on the way; None where refused."""
    distance = np.linalg.norm(motion.hand - motion.goal, axis=1)
    return {
        "goal": motion.goal.tolist(),
        "seed": motion.seed,
        "start_m": float(distance[0]) if len(distance) else None,
        "end_m": float(distance[-1]) if len(distance) else None,
        "nearest_m": float(distance.min()) if len(distance) else None,
        "prepared_ms": 1e3 * motion.prepared_s,
        "refused": motion.refused,
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Success at 1 to 10 cm: `within_Ncm_percent` at the episodes' end with its 95 % Wilson interval (`_low`, `_high`),
    `passed_Ncm_percent` anywhere on the way. A goal that was refused, since no carried state is near, is not reached."""
    figures: dict[str, Any] = {}
    for threshold in THRESHOLDS_CM:
        within, passed = (_count(rows, name, threshold) for name in ("end_m", "nearest_m"))
        low, high = wilson_interval(within, len(rows))
        figures |= {
            f"within_{threshold}cm_percent": 100.0 * within / len(rows),
            f"within_{threshold}cm_percent_low": 100.0 * low,
            f"within_{threshold}cm_percent_high": 100.0 * high,
            f"passed_{threshold}cm_percent": 100.0 * passed / len(rows),
        }
    played = [each for each in rows if not each["refused"]]
    return figures | {
        "refused_percent": 100.0 * (len(rows) - len(played)) / len(rows),
        "start_cm_median": 100.0 * float(np.median([each["start_m"] for each in played])) if played else None,
        "end_cm_median": 100.0 * float(np.median([each["end_m"] for each in played])) if played else None,
        "prepared_ms_median": float(np.median([each["prepared_ms"] for each in rows])),
    }


def _count(rows: Sequence[Mapping[str, Any]], name: str, threshold_cm: int) -> int:
    return sum(each[name] is not None and 100.0 * each[name] <= threshold_cm for each in rows)


def _pretrained(run_dir: Path, name: str, seed: int) -> Path:
    """The bundle of the newest finished run `name` of the same seed beside `run_dir`."""
    found = [path for pattern in (f"{name}-s{seed}", f"{name}-s{seed}-*") for path in run_dir.parent.glob(f"{pattern}/bundle")]
    if not found:
        raise ArmstackError(
            f"{run_dir.parent}: no finished run {name}-s{seed}, whose bundle is judged here; do that one first, then this again"
        )
    return max(found, key=lambda path: path.stat().st_mtime)
