"""Whatever readings jump and drivers stall when: the arm is never sent at once to where it is not."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from robot_bridge.arms.base import ArmState
from robot_bridge.control.loop import STALL_PERIODS
from tests.robot_bridge.control.rig import PERIOD_S, SENDER, Rig

ASIDE, LAG_S = 0.25, 0.2  # rad, s: a jump that is no more is not told from a push, or from an arm that is late


class Bench:
    """The bench arm behind a driver that stalls and an encoder that jumps; the arm is two periods late."""

    def __init__(self, seed: int) -> None:
        self.rng, self.rig = np.random.default_rng(seed), Rig()
        self.true = self.rig.position.copy()
        self.jump, self.stalled, self.length = np.zeros(3), 0, 0
        self.on_the_way = [self.true.copy()] * 2
        self.told = False
        self.sent = self.true.copy()
        self.speeds: deque[np.ndarray] = deque([np.zeros(2)], maxlen=100)
        self.leaps: list[float] = []
        self.restarts = self.faults = 0
        self.reading = self.measured()

    def measured(self) -> ArmState:
        self.rig.position = self.true + self.jump
        return self.rig.measured()

    def period(self) -> None:
        rig, before = self.rig, self.sent
        stalled = self.stalled > 0
        reading = self.reading = self.reading if stalled else self.measured()  # a stalled driver reads nothing new
        if stalled and self.length - self.stalled >= STALL_PERIODS:  # as ControlLoop does
            rig.filter.suspend("stalled")
            self.told = True
        elif not stalled and self.told:
            rig.filter.resume(reading, rig.now_ns)
            self.told = False
        output = rig.filter.step(reading, rig.now_ns, rig.source_ns)
        self.speeds.append(np.abs(output.velocities[:2]))
        self.sent = output.positions.copy()
        if not stalled:
            # How much further from the arm this output is than the one before, or than a jump that cannot be told.
            away, was = (np.abs(each - self.true)[:2] for each in (self.sent, before))
            allowed = np.array(rig.limits.velocity[:2]) * PERIOD_S
            untold = ASIDE + LAG_S * np.max(self.speeds, axis=0)
            self.leaps.append(float((away - np.maximum(was, untold) - allowed).max()))
            self.restarts += bool((np.abs(self.sent - before)[:2] > allowed + 1e-9).any())
            self.on_the_way.append(self.sent)
            self.true = self.on_the_way.pop(0).copy()
        self.stalled = max(0, self.stalled - 1)
        rig.now_ns += round(PERIOD_S * 1e9)
        if output.state == "fault":
            self.faults += 1

    def happen(self) -> None:
        rig, rng = self.rig, self.rng
        match rng.integers(0, 40):
            case 0:
                self.jump[rng.integers(0, 2)] = rng.choice([-1, 1]) * rng.uniform(0.3, 1.5)
            case 1:
                self.jump[:] = 0.0
            case 2 if not self.stalled:
                self.length = self.stalled = int(rng.integers(3, 40))
            case 3 if not self.stalled:
                self.jump[:] = 0.0  # an operator has seen to it
                self.period()
                rig.filter.rearm(rig.now_ns, rig.source_ns)
                rig.filter.authority.take("policy", rig.now_ns, SENDER)


@pytest.mark.parametrize("seed", range(12))
def test_no_output_leaps_away_from_the_arm(seed: int) -> None:
    bench = Bench(seed)
    goal = np.zeros(3)
    for tick in range(3000):
        if tick % 40 == 0:
            goal = np.array([*bench.rng.uniform(-1.5, 1.5, 2), 0.04])
        if tick % 5 == 0 and bench.rng.random() < 0.9:
            seen = bench.measured().positions
            bench.rig.send(seen + np.clip(goal - seen, -0.4, 0.4))
        bench.happen()
        bench.period()
    assert max(bench.leaps) <= 1e-9
    assert bench.restarts > 0 and 0 < bench.faults < 2900, "this shows nothing"
