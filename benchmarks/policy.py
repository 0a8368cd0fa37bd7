"""One DAC action on a robot: the exported NumPy policy beside eager PyTorch, equal weights and noise, alternating in one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from benchmarks.peers.eager_policy import plain_policy
from rl_core.contract import Action, Channel, RobotContract
from rl_core.dac.config import DACConfig
from rl_core.dac.export import NumpyDACPolicy
from rl_core.dac.learner import DACLearner
from rl_core.policy import Policy

OBSERVATION = 32
"""Numbers in the flat observation of the native Lift."""
ACTION = 7
ROUNDS = 300
WARM_UP = 20


def main() -> dict[str, Any]:
    """Median milliseconds of one `act` and their ratio (above 1 = the exported policy is faster), one thread.

    The figures at the top are of the `cpu` preset against our own torch policy; `presets` holds both presets, and the plain eager form.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        presets = {name: _measure(name) for name in ("cpu", "default")}
    finally:
        torch.set_num_threads(threads)
    cpu = presets["cpu"]
    return {
        "ours": cpu["exported_ms"],
        "peer": cpu["torch_ms"],
        "ratio": cpu["torch_ms"] / cpu["exported_ms"],
        "peer_name": "the same policy in eager PyTorch",
        "presets": presets,
        "setting": {
            "unit": "milliseconds per action, median",
            "preset": "cpu",
            "candidates": DACConfig().action_candidates,
            "diffusion_steps": DACConfig().diffusion_steps,
            "observation": OBSERVATION,
            "action": ACTION,
            "rows": 1,
            "threads": 1,
            "rounds": ROUNDS,
        },
    }


def _measure(preset: str) -> dict[str, float]:
    contract = RobotContract(
        robot="bench",
        observation=(Channel(name="state", names=tuple(f"s{i}" for i in range(OBSERVATION))),),
        action=Action(
            names=tuple(f"a{i}" for i in range(ACTION)),
            meaning="absolute",
            space="joint",
            scale=(1.0,) * ACTION,
            units=("rad",) * ACTION,
        ),
    )
    config = DACConfig.preset(preset).override(reward_scaling="none", normalize_observations=False)
    policy = DACLearner(config, contract, seed=0).policy()
    exported, plain = NumpyDACPolicy(policy), plain_policy(policy)
    obs = TensorDict({"state": torch.randn(1, OBSERVATION, generator=torch.Generator().manual_seed(0))}, [1])
    nothing = TensorDict({}, [])
    states = {name: policy.reset([7]) for name in ("exported", "torch", "plain")}

    def plain_act() -> torch.Tensor:
        noise = states["plain"].normal(config.diffusion_steps, config.action_candidates, ACTION)
        return plain(obs["state"], noise)

    def act(name: str, who: Policy) -> Callable[[], torch.Tensor]:
        return lambda: who.act(obs, nothing, states[name])[0].values[:, 0]

    calls = {"exported": act("exported", exported), "torch": act("torch", policy), "plain": plain_act}
    times: dict[str, list[float]] = {name: [] for name in calls}
    worst = 0.0
    for step in range(WARM_UP + ROUNDS):
        actions = {}
        for name, call in calls.items():
            started = time.perf_counter()
            actions[name] = call()
            if step >= WARM_UP:
                times[name].append(time.perf_counter() - started)
        worst = max(worst, *(float((actions[name] - actions["torch"]).abs().max()) for name in ("exported", "plain")))
    if worst > 1e-5:
        raise AssertionError(f"the policies compared differ by {worst:.2g}; valid: up to 1e-5 for equal noise")
    medians = {name: float(np.median(values) * 1e3) for name, values in times.items()}
    return {
        "exported_ms": medians["exported"],
        "torch_ms": medians["torch"],
        "plain_torch_ms": medians["plain"],
        "exported_over_torch": medians["exported"] / medians["torch"],
        "largest_difference": worst,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
