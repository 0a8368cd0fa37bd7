"""Time of one command filter step for the Panda's 8 joints, beside the bare trajectory generator underneath it.

Both follow the same 20 Hz stream of goals at 100 Hz in one run, taking turns in blocks; the filter also judges each command, applies
every limit, proves a way to stop for every output and keeps holds, e-stop and authority. Receipt is timed apart.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from ruckig import InputParameter, OutputParameter, Ruckig

from robot_bridge.arms.base import ArmState
from robot_bridge.control.command import JointCommand
from robot_bridge.control.filter import CommandFilter, FilterOutput
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import ArmLimits, panda_limits
from robot_bridge.control.settings import FilterSettings

COMMANDS = 600
WARM_UP = 50
PERIODS = 5
HOME = np.array([0.0, 0.2, 0.0, -2.6, 0.0, 2.8, 0.78, 0.04])
AMPLITUDE = np.array([0.3, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.03])


class _Filter:
    """Feeds a filter and times it, seconds."""

    def __init__(self, limits: ArmLimits, settings: FilterSettings) -> None:
        from sim_envs.arm.world import ArmWorld

        self._filter = CommandFilter(limits, settings, forward=Kinematics(ArmWorld.kinematics_xml()).fk)
        self._names = limits.names
        self._period_ns = round(settings.control_period_s * 1e9)
        self._now_ns = 0
        self.receipts: list[float] = []
        self.steps: list[float] = []
        self._filter.restart(self._measured(HOME), 0)
        self._filter.authority.take("policy", 0, "bench")

    def follow(self, goal: np.ndarray) -> None:
        command = JointCommand(
            stamp_ns=self._now_ns,
            source="policy",
            sender="bench",
            names=self._names,
            positions=goal[None],
            time_from_start_s=np.array([0.1]),
        )
        started = time.perf_counter()
        refusal = self._filter.receive(command, self._now_ns, self._now_ns)
        self.receipts.append(time.perf_counter() - started)
        if refusal is not None:
            raise RuntimeError(f"the benchmark's command was refused: {refusal}")
        output: FilterOutput | None = None
        for _ in range(PERIODS):
            measured = self._state if output is None else self._measured(output.positions)
            started = time.perf_counter()
            output = self._filter.step(measured, self._now_ns, self._now_ns)
            self.steps.append(time.perf_counter() - started)
            self._now_ns += self._period_ns
        assert output is not None
        self._measured(output.positions)

    def _measured(self, positions: np.ndarray) -> ArmState:
        nowhere = np.zeros(3)
        self._state = ArmState(
            stamp_ns=self._now_ns,
            names=self._names,
            positions=positions,
            velocities=np.zeros_like(positions),
            ee_pos=nowhere,
            ee_quat=np.array([0.0, 0.0, 0.0, 1.0]),
        )
        return self._state


class _Generator:
    """Ruckig's own control loop on the same goals."""

    def __init__(self, limits: ArmLimits, settings: FilterSettings) -> None:
        joints = len(limits.names)
        self._otg = Ruckig(joints, settings.control_period_s)
        self._input, self._output = InputParameter(joints), OutputParameter(joints)
        self._input.current_position = HOME.tolist()
        self._input.max_velocity = list(limits.velocity)
        self._input.max_acceleration = list(limits.acceleration)
        self._input.max_jerk = list(limits.jerk)
        self.steps: list[float] = []

    def follow(self, goal: np.ndarray) -> None:
        self._input.target_position = goal.tolist()
        for _ in range(PERIODS):
            started = time.perf_counter()
            self._otg.update(self._input, self._output)
            np.array(self._output.new_position)
            self._output.pass_to_input(self._input)
            self.steps.append(time.perf_counter() - started)


def main() -> dict[str, Any]:
    """Runs the benchmark.

    Returns:
        `ours` and `peer`, microseconds a step (p50); `ratio` (peer / ours: how much of our step is the generator's); `ours_p95`,
        `ours_p99`, `receive` (p50); `peer_name`; `setting`.
    """
    limits, settings = panda_limits(), FilterSettings()
    ours, peer = _Filter(limits, settings), _Generator(limits, settings)
    for k in range(WARM_UP + COMMANDS):
        if k == WARM_UP:
            for warm_up in (ours.receipts, ours.steps, peer.steps):
                warm_up.clear()
        goal = HOME + AMPLITUDE * np.sin(k * settings.policy_period_s * np.linspace(0.5, 1.5, len(HOME)))
        ours.follow(goal)
        peer.follow(goal)
    p50, p95, p99 = (float(np.percentile(ours.steps, q) * 1e6) for q in (50, 95, 99))
    peer_p50 = float(np.percentile(peer.steps, 50) * 1e6)
    return {
        "ours": p50,
        "peer": peer_p50,
        "ratio": peer_p50 / p50,
        "peer_name": "ruckig update alone, no checks",
        "ours_p95": p95,
        "ours_p99": p99,
        "receive": float(np.percentile(ours.receipts, 50) * 1e6),
        "unit": "us",
        "setting": {"joints": len(limits.names), "control_hz": 100, "policy_hz": 20, "steps": len(ours.steps)},
    }


if __name__ == "__main__":
    print(json.dumps(main()))
