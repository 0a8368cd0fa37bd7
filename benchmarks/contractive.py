"""A contractive policy: an epoch of training and a step on a robot, beside plain PyTorch of the same model, alternating in one run."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from benchmarks.peers.plain_ren import PlainModel
from rl_core.contractive import ContractiveConfig, ContractiveLearner, ContractivePolicy
from rl_core.data.formats import read_dataset
from rl_core.methods import make_source

EPOCHS = 10
STEPS = 500
WARM_UP = 2


def main() -> dict[str, Any]:
    """Milliseconds of an epoch (median; 7 demonstrations and their jittered copies, 49 rollouts of 50 points) and of a step, one thread.

    All in CPU time of the process. The figures at the top are of the epoch; `step` holds those of one `act` and of the plain step.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        learner, source = _learner()
        epoch = _epochs(learner, source)
        step = _steps(learner)
    finally:
        torch.set_num_threads(threads)
    return {
        "ours": epoch["ours_ms"],
        "peer": epoch["peer_ms"],
        "ratio": epoch["peer_ms"] / epoch["ours_ms"],
        "peer_name": "the same model in plain PyTorch, matrices and bijection in every step",
        "epoch": epoch,
        "step": step,
        "setting": {
            "unit": "milliseconds of CPU per training epoch, median",
            "data": "lasa:Sine, 7 demonstrations",
            "preset": "cpu",
            "rollouts": 7 * (1 + learner.config.jitter_copies),
            "points": learner.config.horizon,
            "threads": 1,
            "epochs": EPOCHS,
            "steps": STEPS,
        },
    }


def _learner() -> tuple[ContractiveLearner, Any]:
    """A learner after a few updates, so that the bijection is no identity."""
    dataset = read_dataset("lasa:Sine")
    config = ContractiveConfig.preset("cpu")
    learner = ContractiveLearner(config, dataset.contract, seed=0, data=dataset)
    source = make_source("contractive", config, dataset, seed=0)
    for _ in range(10):
        learner.update(source.next_batch())
    return learner, source


def _epochs(learner: ContractiveLearner, source: Any) -> dict[str, float]:
    """Both sides take the same batch and the same jitter; the peer's data are resampled for it beforehand, its optimiser is PyTorch's."""
    config, demos = learner.config, learner.demonstrations
    double = copy.deepcopy(learner.model).double()
    starts = demos.states[:, 0].repeat(1 + config.jitter_copies, 1)
    with torch.no_grad():
        ours, plain_states = double.rollout(starts.double())[1], PlainModel(double).rollout(starts.double())
    difference = float((ours - plain_states).abs().max())
    if difference > 1e-5:
        raise AssertionError(f"the rollouts compared differ by {difference:.2g}; valid: up to 1e-5")
    plain = PlainModel(copy.deepcopy(learner.model))
    optimizer = torch.optim.Adam(plain.trained(), lr=config.lr)
    rows, skip = len(demos.states), config.jitter_skip
    copies = demos.states[:, skip:].repeat(config.jitter_copies, 1, 1)

    def peer() -> None:
        noisy = starts.clone()
        noisy[rows:] += config.jitter * (2 * torch.rand_like(noisy[rows:]) - 1)
        states = plain.rollout(noisy)
        loss = (states[:rows] - demos.states).square().mean() + (states[rows:, skip:] - copies).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(plain.trained(), config.max_grad_norm)
        optimizer.step()

    times = _alternate({"ours": lambda: learner.update(source.next_batch()), "peer": peer}, EPOCHS, time.process_time)
    return {**{f"{name}_ms": float(np.median(values)) for name, values in times.items()}, "largest_difference": difference}


def _steps(learner: ContractiveLearner) -> dict[str, float]:
    """One `act` of a robot (lift of the measured state, step, decoding, action) beside the same in plain PyTorch with ready matrices."""
    policy: ContractivePolicy = learner.policy()
    plain = PlainModel(copy.deepcopy(learner.model).double())
    plain.prepare()
    position = learner.demonstrations.states[:1, 0].double() * torch.from_numpy(policy.frame.units)
    obs, nothing = TensorDict({"position": position}, [1]), TensorDict({}, [])
    measured = torch.from_numpy(policy.frame.states(position.numpy(), policy.frame.goal(position.numpy())))
    _, state = policy.act(obs, nothing, policy.reset([0]))

    @torch.no_grad()
    def peer() -> torch.Tensor:
        return plain.decode(plain.step(plain.lift(measured)))

    with torch.no_grad():
        difference = float((torch.from_numpy(policy.model.rollout(measured.numpy())[1][:, 1]) - peer()).abs().max())
    if difference > 1e-5:
        raise AssertionError(f"the steps compared differ by {difference:.2g}; valid: up to 1e-5")
    times = _alternate({"ours": lambda: policy.act(obs, nothing, state), "peer": peer}, STEPS, time.process_time)
    ours, theirs = times["ours"], times["peer"]
    return {
        "ours_p50_ms": float(np.median(ours)),
        "ours_p99_ms": float(np.percentile(ours, 99)),
        "peer_p50_ms": float(np.median(theirs)),
        "ratio": float(np.median(theirs) / np.median(ours)),
        "largest_difference": difference,
    }


def _alternate(calls: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Milliseconds of each call, in turn, after some that don't count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for index in range(WARM_UP + rounds):
        for name, call in calls.items():
            started = clock()
            call()
            if index >= WARM_UP:
                times[name].append((clock() - started) * 1e3)
    return times


if __name__ == "__main__":
    print(json.dumps(main()))
