"""Speed and separation in the dark: a person visits a swinging arm that is guarded by what a radar says (experiments/separation.yaml).

No camera takes part. The radar's echoes are judged by a trained bundle of `rfmamba`, the distance goes into the rule, what the rule says
into the command filter of a simulated arm, in lockstep and without ROS; the true distance judges. The rule's `error_m` is the radar's own:
how far it was above the true distance in 95 of 100 windows of visits of other people in another cell.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.bundle import Bundle
from rl_core.errors import ArmstackError
from rl_core.training.seeding import numpy_generator
from robot_bridge.arms.simulated import SimulatedArm
from robot_bridge.arms.tightening import Tightening
from robot_bridge.auxiliary.monitoring.rfmamba.interface import HumanRadar
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from robot_bridge.control.arm_shape import ArmShape
from robot_bridge.control.command import JointCommand
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import panda_limits
from robot_bridge.control.loop import ControlLoop
from robot_bridge.control.separation import BrakingArm, Judgement, Separation, SeparationSettings
from robot_bridge.control.settings import FilterSettings
from robot_bridge.separation.radar_geometry import geometry_of
from robot_bridge.separation.report import draw_separation
from robot_bridge.separation.trace import SeparationTrace, figures
from sim_envs.arm.world import ArmWorld
from sim_envs.sensors.humanoid import Build
from sim_envs.sensors.recordings import RadarScene, Recorder
from sim_envs.sensors.visit import Visit, record_visit
from sim_envs.sensors.walker import Walker

Array = NDArray[np.float64]
GUARD = "separation"
_STATE_TICKS, _JUDGE_TICKS, _COMMAND_TICKS = 2, 5, 5  # control periods between two joint_states, judgements and commands
_JOINT, _AMPLITUDE_RAD = 0, 0.4
_UNGUARDED = Judgement(reason="", scale=1.0)


@dataclass(frozen=True, kw_only=True)
class Guest:
    """Somebody who comes to see the arm, and what the radar hears of it."""

    walker: Walker
    visit: Visit


class Eye:
    """Distances from echoes, or without a radar the true ones.

    Args:
        radar: the trained one; None tells the truth.
        thickness: radius of the arm's links, m.
        flesh: radius of a person about their keypoints, m.
    """

    def __init__(self, radar: HumanRadar | None, *, thickness: float, flesh: float) -> None:
        self.radar, self._thickness, self._flesh = radar, thickness, flesh
        self.seconds: list[float] = []
        """What each look took of the CPU."""

    @property
    def behind_s(self) -> float:
        """How much older than a window what its answer is about is."""
        radar = self.radar
        return 0.0 if radar is None else (radar.geometry.frames - 1 - radar.current) * radar.geometry.period_s

    def true(self, guest: Guest, shape: ArmShape, joints: Array, seconds: float) -> float:
        """The true distance, m."""
        return shape.distance(joints, guest.walker.capsules(seconds), guest.walker.radii, thickness=self._thickness)

    def look(self, guest: Guest, shape: ArmShape, joints: Array, seconds: float) -> float:
        """What is told of the newest window at `seconds`, m."""
        if self.radar is None:
            return self.true(guest, shape, joints, seconds)
        begun = time.process_time()
        person = self.radar.perceive(guest.visit.window(seconds, self.radar.geometry.frames), guest.visit.background)
        self.seconds.append(time.process_time() - begun)
        points = np.repeat(person.joints[:, None].astype(np.float64), 2, axis=1)
        return shape.distance(joints, points, np.full(len(points), self._flesh), thickness=self._thickness)


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Guests one after the other; figures over all of them.

    Args:
        config: `bundle`, folder of rfmamba's; empty: distances are the true ones. `visits`; `calibration`, visits that `error_m` is taken
            from; `limit_m`, `max_age_s`, `person_mps`, `hysteresis_m`, `restart_delay_s` of the rule; `computing_s`, until a window's
            distance is told; `speed`, share of the arm's velocity limits; `swing_s`, to and fro; `guarded`, false lets the arm move
            whatever is said; `arm_radius_m`, `body_radius_m`.
        seed: of people, paths and cells.
        run_dir: gets the first visit's picture.

    Returns:
        The figures of `separation_trace.figures`; `error_m`, `error_mean_m` of the calibration; `trigger_standing_m`, below which a
        standing arm is held; `look_ms_95`, of the CPU for a window; `seconds` in all.
    """
    eye = Eye(_radar(config["bundle"]), thickness=config["arm_radius_m"], flesh=config["body_radius_m"])
    if eye.radar is not None:
        eye.radar.geometry.accepts(geometry_of(RadarScene(), eye.radar.geometry.frames))
    cell = Cell(config)
    errors = _errors(eye, cell, config, seed)
    error_m = max(0.0, float(np.quantile(errors, 0.95)))
    settings = SeparationSettings(
        limit_m=config["limit_m"],
        error_m=error_m,
        latency_s=config["computing_s"] + eye.behind_s,
        max_age_s=config["max_age_s"],
        person_mps=config["person_mps"],
        hysteresis_m=config["hysteresis_m"],
        restart_delay_s=config["restart_delay_s"],
    )
    recorder = Recorder(RadarScene(), numpy_generator(seed, "cell"))
    traces, triggers = [], []
    for number in range(config["visits"]):
        trace, trigger = cell.receive(_guest(recorder, numpy_generator(seed, "guest", number)), eye, settings)
        traces.append(trace)
        triggers.append(trigger)
    draw_separation(run_dir / "separation.png", traces[0], limit_m=config["limit_m"])
    whole = _joined(traces)
    return {
        **figures(whole, config["limit_m"], np.concatenate(triggers)),
        "error_m": error_m,
        "error_mean_m": float(errors.mean()),
        "trigger_standing_m": cell.standing_trigger(settings),
        "look_ms_95": 1e3 * float(np.quantile(eye.seconds, 0.95)) if eye.seconds else None,
        "seconds": float(whole.seconds[-1]),
    }


class Cell:
    """A simulated arm that swings one joint, behind the command filter; time passes in control periods.

    Args:
        config: see `run`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self.limits = Tightening(speed=config["speed"]).apply(panda_limits())
        self.names = self.limits.names[: self.limits.arm_joints]
        self.shape = ArmShape(ArmWorld.kinematics_xml(), self.names)
        self._settings = FilterSettings(required_guards=(GUARD,), separation_required=True) if config["guarded"] else FilterSettings()
        self.period_s = self._settings.control_period_s

    def standing_trigger(self, settings: SeparationSettings) -> float:
        """Below this distance a standing arm is held, m."""
        arm = self._braking()
        return Separation(settings, arm).protective_distance(arm.braking(np.zeros((1, len(self.names))), np.zeros(len(self.names))))

    def _braking(self) -> BrakingArm:
        return BrakingArm(self.limits, self.shape, period_s=self.period_s)

    def swung(self, first: Array, seconds: float) -> Array:
        """Where the joints (J,) are to be."""
        target = first.copy()
        target[_JOINT] += _AMPLITUDE_RAD * math.sin(2 * math.pi * seconds / self._config["swing_s"])
        return target

    def receive(self, guest: Guest, eye: Eye, settings: SeparationSettings) -> tuple[SeparationTrace, Array]:
        """One visit, and (T,) the distance below which the rule held."""
        arm = SimulatedArm(ArmWorld("reach", controller="joint_position"), self.limits)
        fk = Kinematics(ArmWorld.kinematics_xml()).fk
        loop = ControlLoop(arm=arm, filter=CommandFilter(self.limits, self._settings, forward=fk), clock=arm.clock)
        rule = Separation(settings, self._braking())
        loop.restart()
        loop.take("policy", "swing")
        first = arm.read().positions
        every = round(guest.visit.period_s / self.period_s)
        coming: deque[tuple[int, float]] = deque()
        rows, trigger, heard, swung_s = [], [], math.nan, 0.0
        for tick in range(round(guest.walker.duration_s / self.period_s)):
            now_ns, seconds, measured = arm.clock.now_ns, tick * self.period_s, arm.read()
            joints = measured.positions[:-1]
            if tick % every == 0 and tick >= every * (eye.radar.geometry.frames if eye.radar else 1):
                coming.append((now_ns + round(self._config["computing_s"] * 1e9), eye.look(guest, self.shape, joints, seconds)))
            if tick % _STATE_TICKS == 0:
                rule.hear_arm(joints, measured.velocities[:-1], now_ns)
            came = bool(coming) and coming[0][0] <= now_ns
            if came:
                heard = coming.popleft()[1]
                rule.hear_distance(heard, now_ns)
            if came or tick % _JUDGE_TICKS == 0:
                judged = rule.judge(now_ns) if self._config["guarded"] else _UNGUARDED
                loop.guard(rule.report(GUARD, judged))
                loop.speed(judged.scale, GUARD)
            if tick % _COMMAND_TICKS == 0 and loop.status().accepts:
                swung_s += self._settings.policy_period_s
                loop.receive(self._command(self.swung(first, swung_s), measured.positions, now_ns))
            output = loop.tick().output
            distance = eye.true(guest, self.shape, output.positions[:-1], seconds)
            sent, moved = (float(np.abs(each[:-1]).max()) for each in (output.velocities, measured.velocities))
            rows.append((seconds, distance, heard, sent, moved, judged.scale, float(bool(judged.reason))))
            trigger.append(judged.trigger_m)
        *columns, held = np.array(rows).T
        names = ("seconds", "distance_m", "heard_m", "speed", "measured_speed", "scale")
        trace = SeparationTrace(**dict(zip(names, columns, strict=True)), held=held > 0)
        return trace, np.array(trigger)

    def _command(self, target: Array, measured: Array, stamp_ns: int) -> JointCommand:
        lead = np.array(self.limits.max_lead)
        return JointCommand(
            stamp_ns=stamp_ns,
            source="policy",
            sender="swing",
            names=self.limits.names,
            positions=(measured + np.clip(target - measured, -0.9 * lead, 0.9 * lead))[None],
            time_from_start_s=np.array([2 * self._settings.policy_period_s]),
        )


def _radar(bundle: str) -> HumanRadar | None:
    if not bundle:
        return None
    radar = load_auxiliary(find_method("rfmamba"), Bundle.load(bundle))
    if not isinstance(radar, HumanRadar):
        raise ArmstackError(f"{bundle}: {type(radar).__name__} sees no people by radar, valid: a bundle of rfmamba")
    return radar


def _guest(recorder: Recorder, rng: np.random.Generator) -> Guest:
    """Comes from 2.8 m at 0.6 to 1.4 m/s, stays near the arm for a while, and goes."""
    far, near = rng.uniform(-0.6, 0.6), (rng.uniform(1.05, 1.3), rng.uniform(-0.2, 0.2))
    waits, stays = rng.uniform(1.5, 3.0), rng.uniform(1.0, 3.0)
    there, back = ((2.8 - near[0]) / rng.uniform(0.6, 1.4) for _ in range(2))
    times = np.cumsum([0.0, waits, there, stays, back, 2.0])
    places = [(2.8, far), (2.8, far), near, near, (2.8, far), (2.8, far)]
    build = Build(height=float(rng.normal(1.0, 0.05)), girth=float(rng.normal(1.0, 0.1)))
    walker = Walker([(time_s, *place) for time_s, place in zip(times.tolist(), places, strict=True)], build=build)
    return Guest(walker=walker, visit=record_visit(recorder, walker, rng))


def _errors(eye: Eye, cell: Cell, config: Mapping[str, Any], seed: int) -> Array:
    """How far what was told was above the true distance, of all windows of the calibration visits, with the arm where it swings."""
    if eye.radar is None:
        return np.zeros(1)
    recorder = Recorder(RadarScene(), numpy_generator(seed, "calibration cell"))
    home = ArmWorld("reach").state().joint_pos
    found = []
    for number in range(config["calibration"]):
        guest = _guest(recorder, numpy_generator(seed, "calibration", number))
        for frame in range(eye.radar.geometry.frames, len(guest.visit.echoes)):
            seconds = frame * guest.visit.period_s
            joints = cell.swung(home, seconds)
            told = eye.look(guest, cell.shape, joints, seconds)
            found.append(told - eye.true(guest, cell.shape, joints, seconds - eye.behind_s))
    return np.array(found)


def _joined(traces: list[SeparationTrace]) -> SeparationTrace:
    """One after the other."""
    begins = np.cumsum([0.0, *(trace.seconds[-1] + 0.01 for trace in traces[:-1])])
    fields = ("distance_m", "heard_m", "speed", "measured_speed", "scale", "held")
    return SeparationTrace(
        seconds=np.concatenate([trace.seconds + begin for trace, begin in zip(traces, begins, strict=True)]),
        **{name: np.concatenate([getattr(trace, name) for trace in traces]) for name in fields},
    )
