"""RFMamba from recordings to a bundle, and the radar that sees people that a bundle becomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.errors import ContractError
from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.bundles import recogniser_bundle, recognition_of
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings, fingerprint
from robot_bridge.auxiliary.monitoring.rfmamba.evaluation import evaluate
from robot_bridge.auxiliary.monitoring.rfmamba.imaging import network_for
from robot_bridge.auxiliary.monitoring.rfmamba.interface import Person, RadarError, RadarGeometry
from robot_bridge.auxiliary.monitoring.rfmamba.learning import Say, fit, new_network, outputs_of
from robot_bridge.auxiliary.monitoring.rfmamba.network import Outputs, RadarNetwork
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.run_folder import RunFolder
from robot_bridge.auxiliary.unfinished import unfinished

_SCALE = "antenna_scale"
_ERROR = "distance_error_95_m"
_LEAST_PEOPLE, _LEAST_WINDOWS = 10, 200
"""Held out, for `distance_error_95_m` to be one that a guard may count on: its nearest tenth is then 20 windows or more."""
_PLACES = ("transmitters", "receivers", "frequencies")


class RadarRecogniser:
    """Says where a person is and what they do; `interface.HumanRadar`, and a recogniser whose frames are echo windows.

    Args:
        network: trained.
        scale: (antennas,) that echoes are divided by.
        geometry: of the radar that it was trained for.
        activities: names.
        current: frame of a window that the answer is about.
        distance_error_95_m: see `HumanRadar`.
    """

    def __init__(
        self,
        network: RadarNetwork,
        scale: Tensor,
        geometry: RadarGeometry,
        activities: tuple[str, ...],
        current: int,
        distance_error_95_m: float = math.inf,
    ) -> None:
        self.geometry, self.activities, self.current = geometry, activities, current
        self.distance_error_95_m = distance_error_95_m
        self._network, self._scale = network.eval(), scale

    @property
    def classes(self) -> tuple[str, ...]:
        """The activities."""
        return self.activities

    def perceive(self, echo: NDArray[np.complex64], background: NDArray[np.complex64]) -> Person:
        """Judges one window (frames, tx, rx, frequency); see `HumanRadar.perceive`."""
        found = self.judge(np.asarray(echo)[None], background)
        chances = torch.softmax(found.activity[0], dim=0).tolist()
        return Person(
            joints=found.joints[0].numpy(),
            activity=dict(zip(self.activities, chances, strict=True)),
            body=torch.sigmoid(found.body[0]).reshape(self.geometry.shape[1:]).numpy(),
        )

    def predict(self, frames: NDArray[np.complex64], condition: Mapping[str, Any] | None = None) -> Prediction:
        """Scores: probabilities of the activities. Map: (n, tx rx, range bins), probability that the person fills a bin.

        Args:
            frames: (n, frames, tx, rx, frequency) complex echo windows, not pictures.
            condition: `background` (tx, rx, frequency), the mean echo of the empty cell.

        Raises:
            RadarError: pictures, windows of another shape, or no background.
        """
        self._check("echo", frames, (*np.shape(frames)[:1], *self.geometry.shape))
        if condition is None or "background" not in condition:
            raise RadarError("radar: condition without 'background', valid: the mean echo of the empty cell, (tx, rx, frequency)")
        found = self.judge(frames, condition["background"])
        return Prediction(scores=torch.softmax(found.activity, dim=1).numpy(), map=torch.sigmoid(found.body).numpy())

    def judge(self, echoes: NDArray[np.complex64], background: NDArray[np.complex64]) -> Outputs:
        """The network's outputs of windows (n, frames, tx, rx, frequency).

        Raises:
            RadarError: of another shape or type, or not finite.
        """
        shape = self.geometry.shape
        self._check("echo", echoes, (*np.shape(echoes)[:1], *shape))
        self._check("background", background, shape[1:])
        return outputs_of(self._network, (echoes - background).astype(np.complex64), self._scale)

    def _check(self, name: str, found: NDArray[Any], valid: tuple[int, ...]) -> None:
        if np.shape(found) != valid or not np.iscomplexobj(found):
            kind = getattr(found, "dtype", type(found).__name__)
            raise RadarError(f"radar {name}: {kind} {np.shape(found)}, valid: complex {valid}; of a radar, not of a camera")
        if not np.isfinite(found).all():
            raise RadarError(f"radar {name}: NaN or infinity, valid: finite numbers")


def train(data: Recordings, config: RFMambaConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """Trains on the windows of most people, see `learning.fit`; what the rest say of it is the bundle's metrics.

    Whole epochs are kept in `unfinished(run_dir)`; a run that is started again goes on there.

    Raises:
        RadarError: recordings of one person alone, or shorter than a window.
        ArmstackError: the folder holds an unfinished run of other settings or data; says which.
    """
    seen, held = data.split((1 - config.held_out, config.held_out), seed)
    windows = seen.windows(config.frames, config.current)
    say(f"{len(windows)} windows of {config.frames} frames, {len(np.unique(seen.people))} people; {len(np.unique(held.people))} held out")
    network = new_network(windows, config, seed)
    kept, data_hash = unfinished(run_dir), fingerprint(data)
    RunFolder(kept, {"config": config.to_dict(), "seed": seed, "data": data_hash})
    scale = fit(network, windows, config, seed=seed, say=say, store=CheckpointStore(kept))
    # Times would give equal runs bundles that differ.
    judged = evaluate(RadarRecogniser(network, scale, windows.geometry, data.activities, config.current), held)
    figures = {name: value for name, value in judged.items() if name not in ("ms_per_window", "latency_s")}
    calibration = {"period_s": windows.geometry.period_s, **_counted_on(figures[_ERROR], held, config, say)}
    places = {name: torch.tensor(getattr(windows.geometry, name), dtype=torch.float64) for name in _PLACES}
    return recogniser_bundle(
        "rfmamba",
        config,
        {**network.state_dict(), _SCALE: scale},
        classes=data.activities,
        arrays=places,
        calibration=calibration,
        data_fingerprint=data_hash,
        metrics={f"held_out/{name}": value for name, value in figures.items()},
    )


def _counted_on(error_m: float, held: Recordings, config: RFMambaConfig, say: Say) -> dict[str, float]:
    """The error of distances, if those who were held out tell it; few of them may all be easy ones."""
    people, windows = len(np.unique(held.people)), len(held.windows(config.frames, config.current))
    if people >= _LEAST_PEOPLE and windows >= _LEAST_WINDOWS:
        return {_ERROR: error_m}
    say(
        f"{windows} windows of {people} people do not tell how far distances are off, so no guard may count on this bundle; valid: "
        f"{_LEAST_WINDOWS} windows of {_LEAST_PEOPLE} people or more held out, e.g. of `armstack aux data rfmamba --people 100`"
    )
    return {}


def load(bundle: Bundle) -> RadarRecogniser:
    """The radar of a bundle.

    Raises:
        BundleError: a geometry or weights that are missing or do not fit.
    """
    made_for = recognition_of(bundle)
    config = made_for.config(RFMambaConfig)
    try:
        geometry = RadarGeometry(
            **{name: tuple(bundle.arrays[name].tolist()) for name in _PLACES},
            frames=config.frames,
            period_s=made_for.calibration["period_s"],
        )
    except (KeyError, ContractError, TypeError) as error:
        raise BundleError(
            f"bundle of rfmamba: radar geometry: {error}; valid: arrays {', '.join(_PLACES)}, calibration period_s"
        ) from error
    network = network_for(geometry, config.network, current=config.current, activities=len(made_for.classes))
    weights = dict(bundle.weights)
    scale, antennas = weights.pop(_SCALE, None), (len(geometry.transmitters) * len(geometry.receivers),)
    if scale is None or scale.shape != antennas:
        raise BundleError(f"bundle of rfmamba: {_SCALE} of {None if scale is None else tuple(scale.shape)}, valid: {antennas}")
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise BundleError(f"bundle of rfmamba: weights do not fit its settings: {error}") from error
    error_m = made_for.calibration.get(_ERROR, math.inf)
    return RadarRecogniser(network, scale, geometry, made_for.classes, config.current, error_m)
