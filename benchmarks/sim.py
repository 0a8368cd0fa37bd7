"""Steps a second of this package's Lift against robosuite's, with state observations, in one process.

The three worlds take turns in short blocks within one run, so that whatever else the machine does meets all of them; the figures
are medians over the rounds, a ratio is the median of the rounds' ratios. Physics timestep, constraint solver and control rate are
read from the compiled models and must be equal. Resets and compilation are not timed; `compile_s` reports the latter.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from sim_envs.arm.env import ArmEnv
from sim_envs.robosuite_tasks import import_robosuite, undisturbed_process

ROUNDS = 9
BLOCK = 50
"""Policy steps of each world in a round."""
CONTROL_RATE_HZ = 20


def main() -> dict[str, Any]:
    """Runs the benchmark.

    Returns:
        `ours`, `peer` in env steps/s and `ratio` of `osc_pose`, whose control law is the peer's; the same for both controllers under
        their names; `peer_name`; `setting`; `compile_s`.
    """
    started = time.perf_counter()
    osc = ArmEnv("lift", action="ee_delta")
    compile_s = time.perf_counter() - started
    joint = ArmEnv("lift", action="joint_delta")
    robosuite = import_robosuite()
    with undisturbed_process():
        peer = robosuite.make(
            "Lift", robots="Panda", control_freq=CONTROL_RATE_HZ, ignore_done=True, hard_reset=False, seed=0, reward_shaping=True,
            has_renderer=False, has_offscreen_renderer=False, use_camera_obs=False,
        )  # fmt: skip
    models = {"osc_pose": osc.world.model, "joint_position": joint.world.model, "robosuite": peer.sim.model._model}
    setting = {name: _physics(model) for name, model in models.items()}
    shared = ("timestep_s", "solver", "iterations", "tolerance", "cone")
    for name, physics in setting.items():
        if any(physics[key] != setting["robosuite"][key] for key in shared):
            raise RuntimeError(f"not comparable: {name} runs {physics}, robosuite {setting['robosuite']}")

    worlds: dict[str, tuple[Callable[[int], Any], Callable[[np.ndarray], Any], int]] = {
        "osc_pose": (lambda seed: osc.reset(seed=seed), osc.step, 7),
        "joint_position": (lambda seed: joint.reset(seed=seed), joint.step, 8),
        "robosuite": (lambda seed: peer.reset(), peer.step, 7),
    }
    for name in worlds:
        _block(*worlds[name], seed=0, steps=10)
    rates: dict[str, list[float]] = {name: [] for name in worlds}
    for seed in range(1, ROUNDS + 1):
        for name in worlds:
            rates[name].append(_block(*worlds[name], seed=seed, steps=BLOCK))
    peer.close()

    results = {name: _compare(rates[name], rates["robosuite"]) for name in ("osc_pose", "joint_position")}
    return {
        **results["osc_pose"],
        "peer_name": f"robosuite {robosuite.__version__} Lift, Panda, OSC_POSE",
        "setting": {
            "task": "Lift, state observations, shaped reward, one environment, one process",
            "unit": "env steps/s",
            "control_rate_hz": CONTROL_RATE_HZ,
            "rounds": ROUNDS,
            "steps_a_round": BLOCK,
            "mujoco": mujoco.__version__,
            "collision_shapes": "ours primitives, robosuite's convex meshes",
            "physics": setting,
        },
        "compile_s": compile_s,
        **results,
    }


def _block(reset: Callable[[int], Any], step: Callable[[np.ndarray], Any], size: int, *, seed: int, steps: int) -> float:
    """Env steps/s over one stretch of random actions after a reset."""
    actions = np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, size))
    reset(seed)
    started = time.perf_counter()
    for action in actions:
        step(action)
    return steps / (time.perf_counter() - started)


def _compare(ours: list[float], peer: list[float]) -> dict[str, float]:
    ratios = np.divide(ours, peer)
    return {"ours": float(np.median(ours)), "peer": float(np.median(peer)), "ratio": float(np.median(ratios))}


def _physics(model: mujoco.MjModel) -> dict[str, Any]:
    option = model.opt
    return {
        "timestep_s": option.timestep,
        "substeps": round(1 / CONTROL_RATE_HZ / option.timestep),
        "solver": mujoco.mjtSolver(option.solver).name,
        "iterations": option.iterations,
        "tolerance": option.tolerance,
        "cone": mujoco.mjtCone(option.cone).name,
        "integrator": mujoco.mjtIntegrator(option.integrator).name,
        "degrees_of_freedom": model.nv,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
