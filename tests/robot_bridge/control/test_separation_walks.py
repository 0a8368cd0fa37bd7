"""A person walks up to an arm that the rule of speed and separation watches."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from robot_bridge.control.separation import BrakingArm, Separation, SeparationSettings
from tests.robot_bridge.control.guarded_bench import SETTINGS, shape
from tests.robot_bridge.control.rig import PERIOD_S, Rig


class Cell:
    """The bench arm swings; somebody's distance from its shoulder is `place(seconds)`, along x; they stand as a pole."""

    def __init__(self, settings: SeparationSettings, *, every_s: float, seed: int) -> None:
        self.rig, self.shape, self.settings = Rig((0.8, 0.2, 0.04), required_guards=("separation",)), shape(), settings
        self.rule = Separation(settings, BrakingArm(self.rig.limits, shape(), period_s=PERIOD_S))
        self.every, self._rng = round(every_s / PERIOD_S), np.random.default_rng(seed)

    def distance(self, place: float) -> float:
        pole = np.array([[[place, 0.0, -1.0], [place, 0.0, 1.0]]])
        return self.shape.distance(self.rig.position[:2], pole, np.zeros(1), thickness=0.0)

    def run(self, place, seconds_: float, *, guard_dies_s: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
        """(T,) true distances, and (T,) how far a joint moved in each period."""
        true, moved, waiting = [], [], []
        before = np.zeros(2)
        for tick in range(round(seconds_ / PERIOD_S)):
            now = self.rig.source_ns
            true.append(self.distance(place(tick * PERIOD_S)))
            if tick % self.every == 0:
                waiting.append((now + round(self.settings.latency_s * 1e9), true[-1]))
            while waiting and waiting[0][0] <= now:
                _, distance = waiting.pop(0)
                self.rule.hear_distance(max(0.0, distance + self._rng.uniform(-1, 1) * self.settings.error_m), now)
            self.rule.hear_arm(self.rig.position[:2].copy(), (self.rig.position[:2] - before) / PERIOD_S if tick else before, now)
            before = self.rig.position[:2].copy()
            if tick * PERIOD_S < guard_dies_s:
                judged = self.rule.judge(now)
                self.rig.filter.holds.receive(self.rule.report("separation", judged), self.rig.now_ns)
                self.rig.filter.speed_scale.receive(judged.scale, "separation", self.rig.now_ns)
            if tick % 5 == 0:
                self.rig.filter.authority.take("policy", self.rig.now_ns, "gid-1")
                goal = 0.6 * np.sin(2.5 * tick * PERIOD_S) * np.array([1.0, 0.5])
                self.rig.send([*(self.rig.position[:2] + np.clip(goal - self.rig.position[:2], -0.4, 0.4)), 0.04])
            self.rig.tick()
            moved.append(np.abs(self.rig.position[:2] - before).max())
        return np.array(true), np.array(moved)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("walk_mps", [0.6, 1.6])
def test_nothing_moves_within_the_limit_whoever_comes_how(walk_mps: float, seed: int) -> None:
    """They come at any speed up to that of the settings, stop at any place, and go; the sensor is off by its error, and late."""
    rng = np.random.default_rng(seed)
    nearest, come = rng.uniform(0.6, 1.2), rng.uniform(1.0, 2.0)
    back = come + (4.5 - nearest) / walk_mps + rng.uniform(0.2, 1.5)

    def place(time: float) -> float:
        return min(4.5, max(nearest, 4.5 - walk_mps * max(0.0, time - come)) + walk_mps * max(0.0, time - back))

    end = back + (4.5 - nearest) / walk_mps + 1.5
    true, moved = Cell(SETTINGS, every_s=0.1, seed=seed).run(place, end)
    assert (true < SETTINGS.limit_m).any()
    assert moved[true < SETTINGS.limit_m].max(initial=0.0) == 0.0
    early, late = moved[: round(come / PERIOD_S)], moved[round((end - 1.2) / PERIOD_S) :]
    assert early.max() > 0.005 and late.max() > 0.005, "the arm did not move before and after"


def test_an_arm_before_somebody_who_comes_nearer_stops_once() -> None:
    def holds(restart_delay_s: float) -> int:
        cell = Cell(dataclasses.replace(SETTINGS, restart_delay_s=restart_delay_s), every_s=0.1, seed=0)
        held = []
        judge = cell.rule.judge
        cell.rule.judge = lambda now_ns: held.append(judge(now_ns)) or held[-1]  # type: ignore[method-assign]
        cell.run(lambda time: max(0.8, 4.5 - 1.6 * max(0.0, time - 1.5)), 5.0)
        said = np.array([bool(each.reason) for each in held])
        return int((np.diff(said.astype(int)) > 0).sum())

    assert holds(0.5) == 1 < holds(0.0)


def test_nothing_moves_within_the_limit_when_the_guard_dies_at_the_worst_time() -> None:
    """The arm node notices by the age of the newest distance: until then it moves on as was allowed last."""
    least = []
    for index, dies in enumerate(np.arange(1.5, 2.7, 0.1)):
        true, moved = Cell(SETTINGS, every_s=0.1, seed=index).run(lambda time: 4.5 - 1.6 * time, 3.0, guard_dies_s=dies)
        assert moved[true < SETTINGS.limit_m].max(initial=0.0) == 0.0
        least.append(true[moved > 0].min())
    assert min(least) < SETTINGS.limit_m + 0.5, "no time was bad: this shows nothing"
