"""Whole demonstrations as the loss needs them: states relative to each one's own end, at the model's points in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

from rl_core.contract import RobotContract
from rl_core.contractive.motion import MotionFrame, resample
from rl_core.data.episode import Dataset


@dataclass(frozen=True, kw_only=True)
class Demonstrations:
    """B motions on a common grid.

    Attributes:
        states: (B, T, n_y); behind a motion's last point its end is repeated.
        points: (B,) points of each motion, at most T.
        extra: (B, T, k) action dimensions that the state does not move.
    """

    states: Tensor
    points: Tensor
    extra: Tensor


class DemonstrationReader:
    """Makes `Demonstrations` of batches of whole episodes.

    Args:
        frame: what is a state.
        offered: contract of the batch's observations, of which the frame's are taken.
        horizon: T.
        stretched: all motions take T points; otherwise each takes its own time.
        device: where the tensors are to be.
    """

    def __init__(self, frame: MotionFrame, offered: RobotContract, *, horizon: int, stretched: bool, device: torch.device) -> None:
        self.frame, self.horizon, self.stretched, self.device = frame, horizon, stretched, device
        first, columns = 0, {}
        for channel in offered.low_dimensional:
            columns[channel.name] = range(first, first + channel.size * channel.history)
            first += channel.size * channel.history
        self._columns = np.array([index for channel in frame.contract.observation for index in columns[channel.name]])

    def read(self, batch: TensorDict) -> Demonstrations:
        """Keys `observation`, `next_observation` (B, L, O), `action` (B, L, A), `length` (B,); see `rollout_source`."""
        steps = np.asarray(batch["length"])
        path = torch.cat([batch["observation"][:, :1], batch["next_observation"]], dim=1).numpy()[..., self._columns]
        return self._resample(path.astype(np.float64), steps, batch["action"].numpy())

    def read_dataset(self, dataset: Dataset) -> Demonstrations:
        """All episodes of `dataset` in their order."""
        episodes = [episode for episode in dataset.episodes if len(episode)]
        paths = [episode.flat_observation(self.frame.contract).astype(np.float64) for episode in episodes]
        steps = np.array([len(episode) for episode in episodes])
        path = np.stack([np.concatenate([p, np.repeat(p[-1:], steps.max() + 1 - len(p), axis=0)]) for p in paths])
        actions = np.stack([np.concatenate([e.actions, np.repeat(e.actions[-1:], steps.max() - len(e), axis=0)]) for e in episodes])
        return self._resample(path, steps, actions)

    def _resample(self, path: NDArray[np.float64], steps: NDArray[np.int64], actions: NDArray[np.float32]) -> Demonstrations:
        ends = path[np.arange(len(path)), steps]
        states = self.frame.states(path, ends[:, None])
        points = np.full(len(path), self.horizon)
        if not self.stretched:
            points = np.clip(np.rint(steps * self.frame.period_steps).astype(np.int64) + 1, 2, self.horizon)
        lengths = np.maximum(steps, 1) + 1
        moved = resample(states, lengths, points, self.horizon)
        share = np.minimum(np.arange(self.horizon) / (points - 1)[:, None], 1.0)
        rows = np.minimum((share * steps[:, None]).astype(np.int64), (steps - 1)[:, None])
        extra = actions[np.arange(len(path))[:, None], rows][..., self.frame.extra]
        return Demonstrations(
            states=torch.as_tensor(moved, dtype=torch.float32, device=self.device),
            points=torch.as_tensor(points, device=self.device),
            extra=torch.as_tensor(extra, dtype=torch.float32, device=self.device),
        )
