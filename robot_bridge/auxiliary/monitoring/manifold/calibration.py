"""The threshold, from real frames alone: mean + k deviations of the score; and how often real frames of other objects exceed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Numbers of real frames.

    Attributes:
        mean, deviation: of a frame's score.
        tile_mean, tile_deviation: of a crop's.
        k: deviations above the mean at which a frame is flagged.
        false_positive_rate: share of real frames that are flagged, on objects that took no part in the rest.
        correlation: of that verdict within an object (intraclass correlation), 0..1; 1 where no object has two frames.
        checked: frames behind those two.
    """

    mean: float
    deviation: float
    tile_mean: float
    tile_deviation: float
    k: float
    false_positive_rate: float = 0.0
    correlation: float = 1.0
    checked: int = 0

    def excess(self, frames: Tensor) -> Tensor:
        """Deviations above the threshold of frames' scores; above 0 is flagged."""
        return (frames - self.mean) / self.deviation - self.k

    def tile_excess(self, crops: Tensor) -> Tensor:
        """The same of crops' scores."""
        return (crops - self.tile_mean) / self.tile_deviation - self.k

    def numbers(self) -> dict[str, float]:
        """For a bundle; `from_numbers` gives it back."""
        return {name: float(value) for name, value in asdict(self).items()}

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, float]) -> Calibration:
        """What `numbers` gave, among others."""
        return cls(**{name: numbers[name] for name in cls.__dataclass_fields__ if name != "checked"}, checked=int(numbers["checked"]))

    def allowed_share(self, counts: NDArray[np.integer], tests: int = 1, level: float = 0.01) -> float:
        """Share of flagged frames that real ones explain.

            f + z sqrt(f (1 - f) sum_e n_e (1 + (n_e - 1) rho)) / n

        f is the false positive rate, rho the correlation: frames of one scene err together, so a hundred are worth far fewer.

        Args:
            counts: frames n_e of each group (episode, object).
            tests: how many shares are looked at; z is that of level / tests, one-sided.
            level: probability that real frames alone exceed one of them.
        """
        total = float(counts.sum())
        rate = min(max(self.false_positive_rate, 1 / max(self.checked, 1)), 0.5)
        variance = rate * (1 - rate) * float((counts * (1 + (counts - 1) * self.correlation)).sum()) / total**2
        return rate + NormalDist().inv_cdf(1 - level / tests) * variance**0.5


def calibrate(crops: Tensor, tiles: int, k: float) -> Calibration:
    """From crops' scores (n * tiles^2,) of real frames.

    Raises:
        AuthenticityError: fewer than two frames, or numbers that are not finite.
    """
    frames = frame_scores(crops, tiles)
    if len(frames) < 2 or not bool(crops.isfinite().all()):
        raise AuthenticityError(f"scores of {len(frames)} real frames to calibrate on; valid: 2 or more, all finite")
    (mean, deviation), (tile_mean, tile_deviation) = _moments(frames), _moments(crops)
    return Calibration(mean=mean, deviation=deviation, tile_mean=tile_mean, tile_deviation=tile_deviation, k=k)


def frame_scores(crops: Tensor, tiles: int) -> Tensor:
    """Mean over the crops of each frame (n,), of (n * tiles^2,)."""
    return crops.view(-1, tiles**2).mean(dim=1)


def verdict_correlation(flagged: NDArray[np.bool_], groups: NDArray[np.integer]) -> float:
    """Intraclass correlation of verdicts (n,) within groups (n,), by analysis of variance, 0..1; 1 where it cannot be told.

    (MSB - MSW) / (MSB + (m - 1) MSW) with mean squares between and within groups and m the groups' size, corrected for unequal ones.
    At least one over the number of groups: few of them tell little.
    """
    names, place = np.unique(groups, return_inverse=True)
    sizes = np.bincount(place)
    if len(names) < 2 or sizes.max() < 2 or flagged.all() or not flagged.any():
        return 1.0
    means = np.bincount(place, weights=flagged) / sizes
    between = float((sizes * (means - flagged.mean()) ** 2).sum() / (len(names) - 1))
    within = float(((flagged - means[place]) ** 2).sum() / (len(flagged) - len(names)))
    size = float((sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(names) - 1))
    total = between + (size - 1) * within
    return min(max((between - within) / total, 1 / len(names)), 1.0) if total > 0 else 1.0


def _moments(values: Tensor) -> tuple[float, float]:
    return float(values.double().mean()), max(float(values.double().std(correction=0)), 1e-9)
