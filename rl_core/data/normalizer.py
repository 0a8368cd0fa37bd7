"""Normalizer: statistics per named dimension, kept with the names so that they can never be applied to other numbers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.data.training_data import training_actions
from rl_core.errors import ArmstackError

logger = logging.getLogger(__name__)

Mode = Literal["mean_std", "min_max", "identity"]
Values = TypeVar("Values", NDArray[Any], Tensor)

CONSTANT = 1e-6
"""A dimension whose range is below this share of max(1, |value|) counts as constant."""


class NormalizerError(ArmstackError):
    """Statistics that don't belong to the numbers; the message lists both key sets."""


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """`normalized = (value - shift) / scale` per dimension; for angles in `wraps` the difference is taken on the circle.

    Attributes:
        names: dimension names in order, e.g. `eef_pos.x`.
        mode: how shift and scale were found.
        shift: (D,) float32.
        scale: (D,) float32, above 0.
        wraps: names of angles that jump between -pi and pi.
    """

    names: tuple[str, ...]
    mode: Mode
    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    wraps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        size = (len(self.names),)
        if self.mode not in get_args(Mode):
            raise NormalizerError(f"mode {self.mode!r}, valid: {get_args(Mode)}")
        if self.shift.shape != size or self.scale.shape != size:
            raise NormalizerError(f"shift {self.shift.shape} and scale {self.scale.shape} for {len(self.names)} names; valid: {size}")
        if not (np.isfinite(self.shift).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise NormalizerError(f"shift {self.shift}, scale {self.scale} of {self.names}; valid: finite, scale above 0")

    @property
    def wrapped(self) -> NDArray[np.int64]:
        """Indices of the angles that wrap."""
        return np.flatnonzero([name in self.wraps for name in self.names])


class Normalizer:
    """Statistics of several columns. `unnormalize(c, normalize(c, x)) == x` up to float32, for constant dimensions too.

    Args:
        columns: column name (`observation`, `action`, ...) -> its statistics.
    """

    def __init__(self, columns: Mapping[str, ColumnStatistics]) -> None:
        self.columns = dict(columns)

    @classmethod
    def fit(cls, dataset: Dataset, contract: RobotContract, *, observation: Mode = "mean_std", action: Mode = "identity") -> Normalizer:
        """Statistics of the columns `observation` and `action` over all episodes, with the contract's names and angles.

        Raises:
            NormalizerError: a number isn't finite.
            DatasetError: an observation channel is missing.
        """
        actions = [episode.actions for episode in dataset.episodes] if action == "identity" else training_actions(dataset)
        values = {
            "observation": np.concatenate([episode.flat_observation(contract) for episode in dataset.episodes]),
            "action": np.concatenate(actions),
        }
        return cls.for_contract(values, contract, observation=observation, action=action)

    @classmethod
    def for_contract(
        cls, values: Mapping[str, ArrayLike], contract: RobotContract, *, observation: Mode = "mean_std", action: Mode = "identity"
    ) -> Normalizer:
        """Statistics of `values["observation"]` (N, O) and `values["action"]` (N, A), named as the contract names them.

        Further keys of `values` (those of transitions, say) are left out.
        """
        names = {"observation": contract.observation_names, "action": contract.action.names}
        angles = tuple(f"{channel.name}.{name}" for channel in contract.low_dimensional for name in channel.wraps)
        used = {column: _lookup(values, column, "values") for column in names}
        return cls.fit_columns(used, names, modes={"observation": observation, "action": action}, wraps={"observation": angles})

    @classmethod
    def fit_columns(
        cls,
        values: Mapping[str, ArrayLike],
        names: Mapping[str, Sequence[str]],
        *,
        modes: Mode | Mapping[str, Mode] = "mean_std",
        wraps: Mapping[str, Sequence[str]] | None = None,
    ) -> Normalizer:
        """Statistics of `values`: column -> (N, D), with `names`: column -> D dimension names.

        `mean_std` gives mean 0 and deviation 1; `min_max` gives -1..1; `identity` leaves the numbers alone. A constant
        dimension is only shifted (scale 1) and named in a warning. Dimensions in `wraps` get circular statistics (Mardia and
        Jupp, "Directional Statistics", 2.2), so that +3.14 and -3.14 are neighbours; those found on the seam are named in a warning.

        Raises:
            NormalizerError: key sets or widths differ, or a number isn't finite.
        """
        if values.keys() != names.keys():
            raise NormalizerError(f"columns with values {sorted(values)}, columns with names {sorted(names)}; valid: equal key sets")
        columns = {}
        for column, array in values.items():
            mode = modes if isinstance(modes, str) else _lookup(modes, column, "modes")
            angles = tuple((wraps or {}).get(column, ()))
            columns[column] = _statistics(column, np.asarray(array, np.float64), tuple(names[column]), mode, angles)
        return cls(columns)

    def normalize(self, column: str, values: Values) -> Values:
        """(..., D) in the column's units -> the same, normalised; arrays stay arrays, tensors stay tensors."""
        statistics = _lookup(self.columns, column, "normalizer")
        shift, scale = _like(statistics.shift, values), _like(statistics.scale, values)
        return _wrap(values - shift, statistics.wrapped) / scale

    def unnormalize(self, column: str, values: Values) -> Values:
        """The inverse of `normalize`; angles that wrap come out in [-pi, pi)."""
        statistics = _lookup(self.columns, column, "normalizer")
        shift, scale = _like(statistics.shift, values), _like(statistics.scale, values)
        return _wrap(values * scale + shift, statistics.wrapped)

    def require_contract(self, contract: RobotContract) -> None:
        """Checks that these are statistics of exactly the contract's observation and action.

        Raises:
            NormalizerError: a column or a dimension is missing, unknown or in another order; lists both key sets.
        """
        needed = {"observation": contract.observation_names, "action": contract.action.names}
        if not needed.keys() <= self.columns.keys():
            raise NormalizerError(f"normalizer has columns {sorted(self.columns)}, needed are {sorted(needed)}")
        for column, names in needed.items():
            if self.columns[column].names != names:
                found = list(self.columns[column].names)
                raise NormalizerError(f"normalizer column {column!r} has names {found}, needed are {list(names)}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able values; `from_dict` gives equal statistics, to the bit."""
        return {
            column: {
                "names": list(statistics.names),
                "mode": statistics.mode,
                "shift": [float(value) for value in statistics.shift],
                "scale": [float(value) for value in statistics.scale],
                "wraps": list(statistics.wraps),
            }
            for column, statistics in self.columns.items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, contract: RobotContract | None = None) -> Normalizer:
        """Reads `to_dict`'s value; with `contract` it is checked by `require_contract` at once.

        Raises:
            NormalizerError: a key is missing, unknown or renamed; lists both key sets.
        """
        fields = {"names", "mode", "shift", "scale", "wraps"}
        columns = {}
        for column, entry in data.items():
            if not isinstance(entry, Mapping) or entry.keys() != fields:
                found = sorted(entry) if isinstance(entry, Mapping) else type(entry).__name__
                raise NormalizerError(f"normalizer column {column!r} has {found}, needed are {sorted(fields)}")
            columns[column] = ColumnStatistics(
                names=tuple(entry["names"]),
                mode=entry["mode"],
                shift=np.asarray(entry["shift"], np.float32),
                scale=np.asarray(entry["scale"], np.float32),
                wraps=tuple(entry["wraps"]),
            )
        normalizer = cls(columns)
        if contract is not None:
            normalizer.require_contract(contract)
        return normalizer


def _statistics(column: str, values: NDArray[np.float64], names: tuple[str, ...], mode: Mode, angles: tuple[str, ...]) -> ColumnStatistics:
    if values.ndim != 2 or values.shape[1] != len(names) or not len(values):
        raise NormalizerError(f"column {column!r}: values {values.shape} for names {list(names)}; valid: (N, {len(names)}) with N above 0")
    if set(angles) - set(names):
        raise NormalizerError(f"column {column!r}: wraps {sorted(set(angles) - set(names))} not in names {list(names)}")
    bad = [name for name, finite in zip(names, np.isfinite(values).all(axis=0), strict=True) if not finite]
    if bad:
        raise NormalizerError(f"column {column!r}: {bad} not finite")
    if mode == "identity":
        return ColumnStatistics(names=names, mode=mode, shift=np.zeros(len(names), np.float32), scale=np.ones(len(names), np.float32))
    shift = np.zeros(len(names))
    wrapped = np.flatnonzero([name in angles for name in names])
    seam = [names[i] for i in wrapped if np.ptp(values[:, i]) > np.pi]
    if seam:
        logger.warning("column %s: angles that jump between -pi and pi get circular statistics: %s", column, ", ".join(seam))
    shift[wrapped] = np.angle(np.exp(1j * values[:, wrapped]).mean(axis=0))
    residual = _wrap(values - shift, wrapped)
    low, high = residual.min(axis=0), residual.max(axis=0)
    centre = residual.mean(axis=0) if mode == "mean_std" else (low + high) / 2
    scale = residual.std(axis=0) if mode == "mean_std" else (high - low) / 2
    shift = _wrap(shift + centre, wrapped)
    constant = high - low <= CONSTANT * np.maximum(1.0, np.abs(shift))
    if constant.any():
        logger.warning("column %s: constant dimensions are kept unscaled: %s", column, ", ".join(np.array(names)[constant]))
    scale = np.where(constant, 1.0, scale)
    return ColumnStatistics(names=names, mode=mode, shift=shift.astype(np.float32), scale=scale.astype(np.float32), wraps=angles)


def _wrap(values: Values, wrapped: NDArray[np.int64]) -> Values:
    """`values` with the angles at the indices `wrapped` brought into [-pi, pi)."""
    if not len(wrapped):
        return values
    result = values.clone() if isinstance(values, Tensor) else values.copy()
    result[..., wrapped] = (values[..., wrapped] + np.pi) % (2 * np.pi) - np.pi
    return result


def _like(array: NDArray[np.float32], values: Values) -> Values:
    return torch.as_tensor(array, device=values.device) if isinstance(values, Tensor) else array


def _lookup(mapping: Mapping[str, Any], key: str, what: str) -> Any:
    if key not in mapping:
        raise NormalizerError(f"{what}: no column {key!r}; needed are [{key!r}], found are {sorted(mapping)}")
    return mapping[key]
