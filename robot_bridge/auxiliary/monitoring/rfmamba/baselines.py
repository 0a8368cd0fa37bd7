"""What a network has to beat: mean pose, oracle root, ridge and nearest neighbours on images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS

_HIPS = JOINTS.index("left_hip"), JOINTS.index("right_hip")
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """Of n windows: `joints` (n, 14, 3) metres, and `activity` (n,), -1 where a method says none."""

    joints: Tensor
    activity: Tensor


def root_of(joints: Tensor) -> Tensor:
    """(..., 3), the middle of the hips of joints (..., 14, 3)."""
    return 0.5 * (joints[..., _HIPS[0], :] + joints[..., _HIPS[1], :])


def mean_pose(train: Tensor, test: Tensor) -> Answers:
    """The mean of the training joints (n, 14, 3), whatever the echo."""
    return Answers(joints=train.mean(dim=0).expand_as(test), activity=torch.full((len(test),), -1))


def oracle_root(train: Tensor, test: Tensor) -> Answers:
    """The true root, and the mean body around it: localisation without pose."""
    body = (train - root_of(train)[:, None]).mean(dim=0)
    return Answers(joints=root_of(test)[:, None] + body, activity=torch.full((len(test),), -1))


def nearest(features: Tensor, joints: Tensor, activity: Tensor, test: Tensor, *, k: int = 8) -> Answers:
    """Mean of the k nearest training windows, each weighted by 1 / distance.

    Args:
        features: (n, V) of the training windows.
        joints: (n, 14, 3).
        activity: (n,).
        test: (m, V).
        k: how many.
    """
    found_joints, found_activity = [], []
    classes = int(activity.max()) + 1
    for rows in test.split(256):
        distance, index = torch.cdist(rows, features).topk(k, largest=False)
        weight = F.normalize(1.0 / distance.clamp_min(1e-6), p=1, dim=1)
        found_joints.append(torch.einsum("mk,mkjd->mjd", weight, joints[index]))
        votes = torch.zeros(len(rows), classes).scatter_add_(1, activity[index], weight)
        found_activity.append(votes.argmax(dim=1))
    return Answers(joints=torch.cat(found_joints), activity=torch.cat(found_activity))


def ridge(features: Tensor, joints: Tensor, activity: Tensor, people: Tensor, test: Tensor) -> Answers:
    """Linear in the features; how much it is held back is chosen on a fifth of the training people.

    Args:
        features: (n, V) of the training windows.
        joints: (n, 14, 3).
        activity: (n,).
        people: (n,) who it is.
        test: (m, V).
    """
    target = torch.cat([joints.flatten(1), F.one_hot(activity).float()], dim=1)
    held = people % 5 == 0

    def error(strength: float) -> float:
        guess = _ridge(features[~held], target[~held], features[held], strength)[:, : 3 * len(JOINTS)]
        return float((guess - target[held, : 3 * len(JOINTS)]).abs().mean())

    found = _ridge(features, target, test, min(_RIDGES, key=error))
    split = 3 * len(JOINTS)
    return Answers(joints=found[:, :split].unflatten(1, (-1, 3)), activity=found[:, split:].argmax(dim=1))


def _ridge(features: Tensor, target: Tensor, test: Tensor, strength: float) -> Tensor:
    centre, offset = features.mean(dim=0), target.mean(dim=0)
    x = (features - centre).double()
    gram = x.T @ x + strength * torch.eye(x.shape[1], dtype=torch.double)
    return (test - centre) @ torch.linalg.solve(gram, x.T @ (target - offset).double()).float() + offset
