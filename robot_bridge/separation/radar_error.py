"""How far a radar's distances are off, and whether the guard that hears them knows."""

from __future__ import annotations

import math

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.monitoring.rfmamba.interface import HumanRadar


def require_error(radar: HumanRadar, error_m: float, what: str) -> None:
    """Checks what a guard takes the error of a radar's distances to be.

    Args:
        radar: of a bundle.
        error_m: of the guard; NaN: not given.
        what: names it in the error.

    Raises:
        ArmstackError: it is below the bundle's own, or the bundle says none.
    """
    own_m = radar.distance_error_95_m
    if own_m == math.inf:
        raise ArmstackError(
            "the bundle does not say how far its distances are off, as no or too few people were held out; valid: one trained anew, "
            "on more people (`armstack aux data`, `aux train`)"
        )
    if not own_m <= error_m < math.inf:
        found = "not given" if math.isnan(error_m) else f"{error_m} m"
        enough_m = math.ceil(round(100 * own_m, 6)) / 100
        raise ArmstackError(
            f"{what}: {found}, valid: what the guard that hears the radar was given, {enough_m:.2f} m or more: so far are this bundle's "
            "distances above the true ones, in 95 of 100 windows of people that it was not trained with"
        )
