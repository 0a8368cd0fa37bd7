"""Which pokes to make: across the rope at random, or one that brings a bead to where it shall be."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sim_envs.rope.rope import BEADS, POKE, RADIUS

Poke = tuple[NDArray[np.float64], float]
"""Start (2,), metres, and direction, rad."""
TOUCH = 2.2 * RADIUS
"""Distance of the poker's middle from a bead's when they all but touch, metres."""
CANDIDATES = 5
"""Beads that are tried."""


def poke_across(beads: NDArray[np.float64], rng: np.random.Generator) -> Poke:
    """Pushes a bead (of (15, 2)) by some 5 cm across the rope, to either side."""
    bead = int(rng.integers(BEADS))
    x, y = beads[min(bead + 1, BEADS - 1)] - beads[max(bead - 1, 0)]
    across = rng.choice([-1.0, 1.0]) * np.array([-y, x]) / math.hypot(x, y)
    return beads[bead] - 0.03 * across, math.atan2(across[1], across[0])


def poke_towards(beads: NDArray[np.float64], goal: NDArray[np.float64]) -> Iterator[Poke]:
    """Pokes that push one bead each as far as it is from its goal, for the beads that are farthest."""
    ways = goal - beads
    lengths = np.linalg.norm(ways, axis=1)
    for bead in np.argsort(-lengths, kind="stable")[:CANDIDATES]:
        along = ways[bead] / lengths[bead]
        back = max(POKE + TOUCH - lengths[bead], TOUCH)
        yield beads[bead] - back * along, math.atan2(along[1], along[0])
