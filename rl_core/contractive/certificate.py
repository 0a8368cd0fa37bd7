"""The certificate of a contractive policy, and a monitor that holds a running policy to it.

Any two motions of the latent system approach each other in the metric S: with V = dx' S dx, V <= rho^2 V in each step. The goal x = 0 is
itself a motion, so V(x) = x' S x falls at that rate on the way to it, whatever the start. A certificate says how fast (`factor`), how
distances in V become distances of the arm (`gain`, `k_theory`), and where this was found to hold (`low`, `high`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle, BundleError

Array = NDArray[np.float64]
PREFIX = "certificate."
METRIC = PREFIX + "metric"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Numbers in units of the motion's size and the model's steps; see `rl_core.contractive.bounds` for how they are found.

    Attributes:
        metric: S (n_x, n_x).
        promised: factor on sqrt(V) a step that holds for any parameters; infinite for an unconstrained network.
        factor: of these parameters in this metric, which is not the parameters' own but the one that bounds motions most tightly.
        gain: |y - y'| <= gain sqrt(V) inside the region.
        stretch: (T,) the share of `gain` that is reached at each point of a motion, at most 1.
        k_theory: |y(t) - y'(t)| <= k_theory factor^t |y(0) - y'(0)|.
        k_empirical: the largest such constant over pairs of sampled motions; it must be below `k_theory`.
        errors: (N,) mean error of the rollout from each demonstration's start.
        starts: (N, n_y) where the demonstrations start.
        latents: (N, n_x) the latent states they start from.
        horizon: points of a motion.
        low: (n_y,) lower corner of the certified region.
        high: (n_y,) its upper corner.
        bound_worst: largest mean error, over the horizon, from any start within the margin around the demonstrated ones.
        bound_expected: the same bound, averaged over these starts.
    """

    metric: Array
    promised: float
    factor: float
    gain: float
    stretch: Array
    k_theory: float
    k_empirical: float
    errors: Array
    starts: Array
    latents: Array
    horizon: int
    low: Array
    high: Array
    bound_worst: float
    bound_expected: float

    @property
    def holds(self) -> bool:
        """Whether motions are certified to approach each other at all."""
        return self.factor <= 1.0 and self.k_empirical <= self.k_theory

    def arrays(self) -> dict[str, Tensor]:
        """For `Bundle.arrays`."""
        fields = dataclasses.fields(self)
        return {PREFIX + field.name: torch.as_tensor(np.asarray(getattr(self, field.name), np.float64)) for field in fields}

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Self:
        """The certificate that a bundle carries.

        Raises:
            BundleError: it carries none, or not all of it; lists what is missing.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        missing = [PREFIX + name for name in names if PREFIX + name not in bundle.arrays]
        if missing:
            raise BundleError(
                f"bundle of method {bundle.method!r} has no certificate: arrays {missing} are missing; valid: a contractive policy"
            )
        values: dict[str, Any] = {name: bundle.arrays[PREFIX + name].numpy() for name in names}
        values = {name: value if value.ndim else float(value) for name, value in values.items()}
        return cls(**{**values, "horizon": int(values["horizon"])})


Status = Literal["ok", "disturbed", "hold"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the monitor says of one period.

    Attributes:
        status: `ok`; `disturbed`: V jumped, and its bound begins anew from there; `hold`: the policy must not go on.
        reason: of a hold, else empty.
        value: V.
        bound: what V may be at most.
        slow_steps: periods in a row in which V was above its bound or jumped.
        disturbances: jumps so far.
    """

    status: Status
    reason: str
    value: float
    bound: float
    slow_steps: int
    disturbances: int


class CertificateMonitor:
    """Compares V with what the certificate promises, period by period; a hold stays until `reset`.

    Args:
        certificate: of the policy that runs.
        patience: periods above the bound, in a row, that are a hold.
        tolerance: share by which V may exceed its bound, for rounding and small deviations of the arm.
        arrived: distance from the goal, in units of the motion's size, below which V is no longer judged.
    """

    def __init__(self, certificate: Certificate, *, patience: int = 20, tolerance: float = 0.1, arrived: float = 0.02) -> None:
        self.certificate = certificate
        self.patience, self.tolerance = patience, tolerance
        self._floor = (arrived / certificate.gain) ** 2
        self.reset()

    def reset(self) -> None:
        """A new motion begins."""
        self._anchor: tuple[float, float] | None = None
        self._last = 0.0
        self._slow = 0
        self._disturbances = 0
        self._held = ""

    def update(self, figures: Sequence[float] | Array) -> Verdict:
        """Judges one row of a chunk's `info["certificate"]`: V, steps since the start, and the measured state."""
        value, step, state = float(figures[0]), float(figures[1]), np.asarray(figures[2:], np.float64)
        jumped = False
        if self._anchor is None:
            self._anchor = (value, step)
        elif not value <= (1.0 + self.tolerance) * self._last + self._floor:  # `not <=`, so that NaN is none of it
            jumped = True
            self._disturbances += 1
            self._anchor = (value, step)
        self._last = value
        anchor, begun = self._anchor
        bound = anchor * self.certificate.factor ** (2.0 * np.floor(step - begun + 1e-6))
        self._slow = self._slow + 1 if jumped or not value <= (1.0 + self.tolerance) * bound + self._floor else 0
        outside = ~((state >= self.certificate.low) & (state <= self.certificate.high))
        if outside.any():
            index = int(np.flatnonzero(outside)[0])
            limits = f"{self.certificate.low[index]:.3g}..{self.certificate.high[index]:.3g}"
            self._held = f"state {index} is {state[index]:.3g}, outside of the certified region {limits}"
        elif self._slow >= self.patience:
            self._held = f"V is {value:.3g} and was above its bound, {bound:.3g}, for {self._slow} periods"
        return Verdict(
            status="hold" if self._held else "disturbed" if jumped else "ok",
            reason=self._held,
            value=value,
            bound=float(bound),
            slow_steps=self._slow,
            disturbances=self._disturbances,
        )
