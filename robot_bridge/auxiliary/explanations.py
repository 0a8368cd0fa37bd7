"""Explainer: a recogniser that can also say in words why; the node publishes that as JSON and draws it into the annotated picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from robot_bridge.auxiliary.protocols import Recogniser


@runtime_checkable
class Explainer(Recogniser, Protocol):
    """Pure, as `predict` is; the words on a frame belong to the scores of the same frame."""

    def explain(self, frame: NDArray[np.uint8]) -> Mapping[str, Any]:
        """JSON-able words on a frame (H, W, 3).

        `label` (or None), `accepted`, `support` 0..1, `features` [{`feature`, `support`}], `answer`.
        """
        ...


def lines_of(explanation: Mapping[str, Any]) -> Sequence[str]:
    """An explanation for people: whether it is accepted, what it says the object is, then a line for each cited feature."""
    verdict = "accepted" if explanation["accepted"] else "NOT ACCEPTED"
    cited = [f"- {each['feature']} {each['support']:.2f}" for each in explanation["features"]]
    return [f"{verdict}: {explanation['label'] or 'no known part'}", *cited]
