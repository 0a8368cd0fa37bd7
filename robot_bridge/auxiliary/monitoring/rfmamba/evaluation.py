"""How good a radar that sees people is: joints, activity, range bins; behind a wall and in free space."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from robot_bridge.auxiliary.monitoring.rfmamba.baselines import Answers, root_of
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings, Windows
from robot_bridge.auxiliary.monitoring.rfmamba.interface import keypoint_distance

if TYPE_CHECKING:
    from robot_bridge.auxiliary.monitoring.rfmamba.recogniser import RadarRecogniser

_TIMED = 20
_NEAREST = 20
_ARM = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.33), (0.06, 0.0, 0.64), (0.14, 0.0, 0.63), (0.34, 0.0, 0.29), (0.43, 0.0, 0.3), (0.45, 0.0, 0.09))
"""Ends of the links of a Panda at rest, metres in its base frame."""


def evaluate(radar: RadarRecogniser, data: Recordings) -> dict[str, float]:
    """Figures of `pose_figures`, `body_iou` (bins of the person, threshold 0.5), `ms_per_window` (median of one window alone) and
    `latency_s`: how much older than a window what is said of it is, and the slowest of those.

    Raises:
        ContractMismatch: recordings of another radar.
    """
    windows = data.windows(radar.geometry.frames, radar.current)
    radar.geometry.accepts(windows.geometry)
    nothing = np.zeros(windows.echoes.shape[2:], np.complex64)
    found = radar.judge(windows.echoes, nothing)  # windows come without their background
    guess, true = (found.body > 0).numpy(), windows.body.reshape(found.body.shape)
    answers = Answers(joints=found.joints, activity=found.activity.argmax(dim=1))
    milliseconds = _milliseconds(radar, windows)
    behind_s = (radar.geometry.frames - 1 - radar.current) * radar.geometry.period_s
    return {
        **pose_figures(answers, windows),
        "body_iou": float((guess & true).sum() / max(1, (guess | true).sum())),
        "ms_per_window": float(np.median(milliseconds)),
        "latency_s": behind_s + 1e-3 * max(milliseconds),
    }


def pose_figures(answers: Answers, windows: Windows) -> dict[str, float]:
    """Figures of any method.

    Returns:
        `mpjpe_m`: mean distance of a joint from where it is; `mpjpe_free_m`, `mpjpe_wall_m`: of the windows without and with a wall;
        `root_m`: of the middle of the hips; `pose_m`: of joints relative to it; `distance_error_95_m`: how far it is from the nearest
        joint to an arm at rest is no more than so much above the truth, in 95 of 100 windows of the nearest tenth; `accuracy`, and
        `accuracy_ACTIVITY`, of methods that say an activity. Those without windows of their kind are left out.
    """
    joints = torch.from_numpy(windows.joints)
    far = (answers.joints - joints).norm(dim=-1).mean(dim=1)
    wall = torch.from_numpy(windows.behind_wall)
    own, theirs = root_of(answers.joints), root_of(joints)
    figures = {
        "mpjpe_m": _mean(far),
        "mpjpe_free_m": _mean(far[~wall]),
        "mpjpe_wall_m": _mean(far[wall]),
        "root_m": _mean((own - theirs).norm(dim=-1)),
        "pose_m": _mean((answers.joints - own[:, None] - joints + theirs[:, None]).norm(dim=-1).mean(dim=1)),
        "distance_error_95_m": _distance_error(answers.joints, joints),
    }
    if int(answers.activity.min()) >= 0:
        activity = torch.from_numpy(windows.activity)
        right = (answers.activity == activity).float()
        figures["accuracy"] = _mean(right)
        figures |= {f"accuracy_{name}": _mean(right[activity == label]) for label, name in enumerate(windows.activities)}
    return {name: value for name, value in figures.items() if value is not None}


def _mean(values: Tensor) -> float | None:
    return float(values.mean()) if len(values) else None


def _distance_error(said: Tensor, true: Tensor) -> float:
    told, there = (np.array([keypoint_distance(joints, _ARM) for joints in each.numpy()]) for each in (said, true))
    # A radar that says much the same of everybody is off where it matters.
    nearest = np.argsort(there)[: max(_NEAREST, round(0.1 * len(there)))]
    return max(0.0, float(np.quantile((told - there)[nearest], 0.95)))


def _milliseconds(radar: RadarRecogniser, windows: Windows) -> list[float]:
    nothing, times = np.zeros(windows.echoes.shape[2:], np.complex64), []
    for row in range(min(_TIMED, len(windows))):
        begun = time.perf_counter()
        radar.perceive(windows.echoes[row], nothing)
        times.append(1e3 * (time.perf_counter() - begun))
    return times
