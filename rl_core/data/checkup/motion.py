"""Checks of how the arm moves: pauses, and angles that jump."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.checkup.report import Finding
from rl_core.data.episode import Dataset, Episode

IDLE_JOINT = 0.01
"""rad/s; below it in every joint (and without a moving gripper) the arm stands still."""
IDLE_EEF = 0.002
"""m/s; the same for datasets without joint positions."""
IDLE_GRIPPER = 0.002
"""m/s of finger opening."""
IDLE_SHARE = 0.2
"""A larger share of steps without motion is worth a warning, as is a second of it at the start."""


def still_steps(episode: Episode) -> NDArray[np.bool_] | None:
    """(T,) whether the arm and its gripper stood still during each step; None where neither joint_pos nor eef_pos tells."""
    names = [(name, limit) for name, limit in (("joint_pos", IDLE_JOINT), ("eef_pos", IDLE_EEF)) if name in episode.observations][:1]
    if not names:
        return None
    names += [("gripper_pos", IDLE_GRIPPER)] if "gripper_pos" in episode.observations else []
    seconds = np.maximum(np.diff(episode.stamps_ns) * 1e-9, 1e-9)[:, None]
    speeds = [np.abs(np.diff(episode.observations[name], axis=0)) / seconds / limit for name, limit in names]
    return (np.concatenate(speeds, axis=1) < 1).all(axis=1)


def check_idle(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """The share of steps in which the arm stands still, and how many of them are at the start."""
    still = [still_steps(episode) for episode in dataset.episodes if len(episode)]
    flags = [flag for flag in still if flag is not None]
    if len(flags) < len(still):
        figures.update(idle_share=None, idle_at_start=None)
        return Finding(subject="idle", level="ok", found="cannot be told: neither joint_pos nor eef_pos")
    share = float(np.concatenate(flags).mean())
    start = [int(np.argmin(flag)) if not flag.all() else len(flag) for flag in flags]
    figures.update(idle_share=share, idle_at_start=start)
    found = f"stands still in {share:.1%} of the steps; at the start {np.mean(start):.1f} steps on average, at most {max(start)}"
    if share > IDLE_SHARE or max(start) > 1.0 / dataset.contract.action.period_s:
        advice = "pauses teach a policy to stand still; cut them with `armstack trim`"
        return Finding(subject="idle", level="warning", found=found, advice=advice)
    return Finding(subject="idle", level="ok", found=found)


def check_angles(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Angles that jump between -pi and pi, and whether the contract says so."""
    jumps: dict[str, int] = {}
    declared: set[str] = set()
    for channel in dataset.contract.low_dimensional:
        if channel.unit != "rad":
            continue
        declared |= {f"{channel.name}.{name}" for name in channel.wraps}
        for episode in dataset.episodes:
            counts = (np.abs(np.diff(episode.observations[channel.name], axis=0)) > np.pi).sum(axis=0)
            for name, count in zip(channel.names, counts, strict=True):
                if count:
                    jumps[f"{channel.name}.{name}"] = jumps.get(f"{channel.name}.{name}", 0) + int(count)
    undeclared = sorted(set(jumps) - declared)
    figures.update(angle_jumps=jumps, angle_jumps_undeclared=undeclared)
    if jumps:
        advice = "declared in `wraps`, so the normaliser's statistics are circular"
        if undeclared:
            advice = f"name them in the channel's `wraps` ({', '.join(undeclared)}), or record quaternions"
        return Finding(subject="angles", level="warning", found=f"jumps between -pi and pi: {jumps}", advice=advice)
    return Finding(subject="angles", level="ok", found="no jumps between -pi and pi")
