"""Echoes that are fresh and say nothing: frozen, of a dead antenna, without the cell, of another cell."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarError
from robot_bridge.nodes.radar_liveness import RadarLiveness

SHAPE = (4, 2, 2, 16)
RNG = np.random.default_rng(0)


def noise(*shape: int, scale: float = 1.0) -> NDArray[np.complex64]:
    return (scale * (RNG.normal(size=shape) + 1j * RNG.normal(size=shape))).astype(np.complex64)


EMPTY = noise(*SHAPE[1:])


def live() -> NDArray[np.complex64]:
    return EMPTY + noise(*SHAPE, scale=0.1)


def test_live_windows_pass() -> None:
    liveness, frames = RadarLiveness(), np.concatenate([live(), live()])
    for at in range(5):
        liveness.require(frames[at : at + 4], EMPTY)


def test_a_window_that_comes_again_is_frozen_and_the_next_live_one_is_not() -> None:
    liveness, window = RadarLiveness(), live()
    liveness.require(window, EMPTY)
    with pytest.raises(RadarError, match="equal to the bit"):
        liveness.require(window, EMPTY)
    liveness.require(live(), EMPTY)


@pytest.mark.parametrize("background", [EMPTY, None])
def test_one_antenna_that_stands_still_is_named(background: NDArray[np.complex64] | None) -> None:
    window = live()
    window[:, 1, 0] = 0
    with pytest.raises(RadarError, match="transmitter 1 and receiver 0 are equal to the bit"):
        RadarLiveness().require(window, background)


@pytest.mark.parametrize("echo", [noise(*SHAPE, scale=0.1), 3 * live()], ids=["no echo but noise", "another gain"])
def test_an_echo_that_does_not_hold_that_of_the_empty_cell_is_not_judged(echo: NDArray[np.complex64]) -> None:
    with pytest.raises(RadarError, match="of the empty cell's echo, valid: about 1"):
        RadarLiveness().require(echo, EMPTY)


def test_an_empty_cell_without_an_echo_is_that_of_a_dead_radar() -> None:
    with pytest.raises(RadarError, match=r"holds 0.00 of the empty cell's echo"):
        RadarLiveness().require(live(), np.zeros_like(EMPTY))
