"""Holds a running policy to the certificate in its bundle: V against its bound at every inference, told on `policy/certificate`.

Any policy whose chunks say `certificate` (V, steps since the motion began, the measured state) is monitored where its bundle has one.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from rclpy.impl.rcutils_logger import RcutilsLogger
from std_msgs.msg import String
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contractive import Certificate, CertificateMonitor
from rl_core.contractive.certificate import PREFIX, Verdict

TOPIC = "policy/certificate"
INFO = "certificate"
"""Entry of a chunk's `info`."""
_TOLERANCE = 0.02
"""Share by which V may rise or exceed its bound; between two disturbances it is the motion's own, exact up to rounding."""
_SAME_DISTURBANCE = 10
"""Inferences between two jumps of V that still count as one disturbance: a push lasts longer than a period."""
_RESTLESS = (20, 60)
"""So many jumps of V within so many inferences are no disturbance any more, but a policy that does not keep to its certificate."""


def carried_certificate(bundle: Bundle) -> Certificate | None:
    """The certificate of a bundle; None where it has none.

    Raises:
        BundleError: it has only parts of one.
    """
    return Certificate.from_bundle(bundle) if any(name.startswith(PREFIX) for name in bundle.arrays) else None


class PolicyMonitor:
    """Judges a policy, inference by inference.

    Args:
        certificate: of the policy's bundle.
        tell: publishes on `policy/certificate`.
        logger: of the node.

    Attributes:
        verdict: on the last inference; None before the first of a motion.
        disturbances: how often V jumped in this episode; jumps right after each other count once.
    """

    def __init__(self, certificate: Certificate, *, tell: Callable[[String], None], logger: RcutilsLogger) -> None:
        self._monitor = CertificateMonitor(certificate, tolerance=_TOLERANCE)
        self._tell, self._logger = tell, logger
        if not certificate.holds:
            logger.warning(
                f"the certificate does not hold: factor {certificate.factor:.4g} a step, valid: at most 1; V is watched all the same"
            )
        self.reset()

    @property
    def held(self) -> bool:
        """Whether the last inference was one too many."""
        return self.verdict is not None and self.verdict.status == "hold"

    def reset(self) -> None:
        """An episode begins."""
        self.disturbances = 0
        self._since_jump = _SAME_DISTURBANCE
        self.resume()

    def resume(self) -> None:
        """An operator lets a policy that was held go on: V is judged from where it is then."""
        self._monitor.reset()
        self.verdict: Verdict | None = None
        self._jumps: deque[bool] = deque(maxlen=_RESTLESS[1])
        self._margin = math.nan

    def judge(self, info: Mapping[str, Tensor], stamp_ns: int) -> str:
        """Takes what the policy said about the chunk it has just given; returns why it must not be sent, empty where it may."""
        if INFO not in info:
            return ""
        figures = info[INFO][0].double().cpu().numpy()
        before = self.verdict
        verdict = self._monitor.update(figures)
        jumped = verdict.disturbances > (before.disturbances if before is not None else 0)
        self._jumps.append(jumped)
        if sum(self._jumps) >= _RESTLESS[0] and verdict.status != "hold":
            verdict = replace(verdict, status="hold", reason=f"V jumped in {sum(self._jumps)} of the last {len(self._jumps)} periods")
        self.verdict = verdict
        certificate = self._monitor.certificate
        self._margin = float(np.minimum(figures[2:] - certificate.low, certificate.high - figures[2:]).min())
        if jumped and self._since_jump >= _SAME_DISTURBANCE:
            self.disturbances += 1
            self._logger.warning(f"disturbance {self.disturbances}: V is {verdict.value:.3g} and its bound begins anew from there")
        self._since_jump = 0 if jumped else self._since_jump + 1
        self._tell(String(data=json.dumps({"stamp_ns": stamp_ns, "step": float(figures[1]), **_finite(self.figures())})))
        return f"its certificate is violated: {verdict.reason}" if verdict.status == "hold" else ""

    def figures(self) -> dict[str, Any]:
        """Verdict (`ok`, `disturbed`, `hold`) and reason; V and its bound; periods in a row above it; disturbances; and `margin`, the
        distance to the border of the certified region in units of the motion's size, negative outside. Empty before a motion began."""
        verdict = self.verdict
        if verdict is None:
            return {}
        return {
            "verdict": verdict.status,
            "reason": verdict.reason,
            "v": verdict.value,
            "bound": verdict.bound,
            "slow_periods": verdict.slow_steps,
            "disturbances": self.disturbances,
            "margin": self._margin,
        }


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """NaN and infinity are no JSON: null."""
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}
