"""Does one fault after the other to an arm in motion; the same over a ROS graph and, in tests, around a control loop alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.settings import FilterSettings
from robot_bridge.faults.catalogue import Fault
from robot_bridge.faults.sender import Measured, Sender
from robot_bridge.faults.trace import Injection

_TRIES = 5  # a machine that is busy may not send evenly
AFTER_S = 0.3  # the arm is watched for this long once the fault is over


class Stage(Protocol):
    """An arm behind its control loop, with everything around it that can be spoilt."""

    @property
    def limits(self) -> ArmLimits:
        """Of the arm."""
        ...

    @property
    def settings(self) -> FilterSettings:
        """Of the arm's command filter."""
        ...

    @property
    def sender(self) -> Sender:
        """What sweeps the arm."""
        ...

    def now_ns(self) -> int:
        """On the clock of the trace."""
        ...

    def measured(self) -> Measured:
        """Where the arm is now."""
        ...

    def wait(self, seconds: float) -> None:
        """Time passes; whoever sends goes on."""
        ...

    def wait_motion(self, timeout_s: float) -> bool:
        """Returns when the swept joint moves with the sweep; False where `timeout_s` passed first."""
        ...

    def ready(self, fault: Fault) -> None:
        """Arms, and gives authority to whoever is to send."""
        ...

    def start(self, fault: Fault) -> None:
        """The sender begins to sweep."""
        ...

    def inject(self, fault: Fault) -> int:
        """Begins the fault; returns when it began, ns."""
        ...

    def clear(self, fault: Fault) -> None:
        """Ends the fault."""
        ...


def inject_all(stage: Stage, faults: Iterable[Fault], progress: Callable[[Fault], None] = lambda fault: None) -> list[Injection]:
    """Every fault once, each on a sweep of its own."""
    injections = []
    for fault in faults:
        progress(fault)
        injections.append(_inject(stage, fault))
    return injections


def _inject(stage: Stage, fault: Fault) -> Injection:
    for _ in range(_TRIES):
        stage.ready(fault)
        stage.start(fault)
        if stage.wait_motion(5.0):
            break
        stage.sender.stop()
    direction = stage.sender.direction
    injected_ns = stage.inject(fault)
    stage.wait(fault.patience_s(stage.settings) + fault.lasts_s)
    ended_ns = stage.now_ns()
    stage.clear(fault)
    if fault.ends == "new sender":
        stage.sender.stop()
    elif fault.effect == "rest":
        stage.sender.start(stage.measured(), stage.now_ns())
    if fault.ends == "by itself":
        stage.wait_motion(10.0)
    stage.wait(AFTER_S)
    closed_ns = stage.now_ns()
    stage.sender.stop()
    return Injection(
        fault=fault, injected_ns=injected_ns, ended_ns=ended_ns, closed_ns=closed_ns,
        joint=stage.sender.joint, direction=direction, speed=stage.sender.speed,
    )  # fmt: skip
