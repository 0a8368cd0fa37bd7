"""Push: a force on the arm's hand for a while, as of somebody who leans against it or drags it aside."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MAX_FORCE = 300.0
"""No push is stronger, N."""
STIFFNESS = 8000.0
"""Of the spring that drags the hand, N/m: the arm's own servos are about as stiff."""
DAMPING = 100.0
"""Of that spring, N s/m."""
_RISE = 0.7
"""Share of the duration after which the spring's end has gone all of the way."""


@dataclass(kw_only=True)
class Push:
    """A constant `force`, or the force of a spring whose end goes along `displacement` from where the hand is when the push begins.

    Attributes:
        force: (3,) N, frame base; None for a spring.
        displacement: (3,) metres, frame base; used where `force` is None.
        duration_s: how long it acts.
    """

    force: Array | None = None
    displacement: Array = field(default_factory=lambda: np.zeros(3))
    duration_s: float
    _start: Array | None = field(default=None, init=False)
    _last: tuple[float, Array] | None = field(default=None, init=False)

    def at(self, elapsed_s: float, hand: Array) -> Array:
        """The force (3,), N, `elapsed_s` after it began, with the hand at (3,) metres; call it in the order of time."""
        if self.force is not None:
            return self.force
        if self._start is None or self._last is None:
            self._start, self._last = hand.copy(), (elapsed_s, hand.copy())
        before_s, before = self._last
        velocity = (hand - before) / (elapsed_s - before_s) if elapsed_s > before_s else np.zeros(3)
        self._last = elapsed_s, hand.copy()
        end = self._start + min(1.0, elapsed_s / (_RISE * self.duration_s)) * self.displacement
        force = STIFFNESS * (end - hand) - DAMPING * velocity
        strength = float(np.linalg.norm(force))
        return force * min(1.0, MAX_FORCE / strength) if strength > 0 else force
