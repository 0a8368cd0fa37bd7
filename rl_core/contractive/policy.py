"""A contractive policy at run time: the latent state goes on by one period, corrected by what is measured.

In each period, with x the latent state carried over and z what it was expected to read out as:

    1. x <- x + C+ (phi^-1(y_measured + phi(0)) - z)      a disturbance moves x by as little as explains it
    2. x goes on by one period; between two steps of the model on the chord between them, where V is at most that of the chord's start
    3. the action leads from y_measured to y = phi(C x) - phi(0)

NumPy in double precision, whatever torch's device: one robot's act costs a fraction of eager torch, and equals the training rollout.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.contractive.certificate import METRIC
from rl_core.contractive.config import ContractiveConfig
from rl_core.contractive.model import ContractiveModel
from rl_core.contractive.motion import MotionFrame, motion_contract
from rl_core.contractive.numpy_model import NumpyModel
from rl_core.policy import ActionChunk, Policy, PolicyState, flatten_observation, seeded_state
from rl_core.restore import restore_contract, restore_normalizer, restore_weights

Array = NDArray[np.float64]
DISTURBED = 0.03
"""Deviation, in units of the motion's size, above which the motion goes on from where the arm is. A smaller one is how an arm follows, not
a disturbance: fed back, it comes out amplified (by up to `k_theory`), is followed late again, and the arm swings."""
PERIOD_STEPS = "motion.period_steps"
"""Array of the bundle: how many steps of the model one period is."""


class ContractivePolicy:
    """Implements `Policy`. State tensors a row, float64: `current` and `following` latent state, `phase` between them, `elapsed` steps,
    `asked` (lag + 1, n_y) the read-outs expected now and later, `goal`, and `begun`.

    Args:
        config: the method's configuration.
        frame: what a state is.
        model: its weights are copied.
        device: where actions are given.
        metric: of the certificate, in which V is told; None takes the parameters' own.
    """

    def __init__(
        self, config: ContractiveConfig, frame: MotionFrame, model: ContractiveModel, device: str = "cpu", metric: Array | None = None
    ) -> None:
        self.config, self.frame, self.device = config, frame, device
        self.contract = frame.contract
        self.model = NumpyModel(copy.deepcopy(model).cpu().double(), metric)

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """No condition: an empty TensorDict."""
        return TensorDict({}, batch_size=[])

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset`; the latent state is found at the first `act`."""
        rows, latent, size = len(seeds), self.config.latent, self.frame.size
        shapes = {
            "current": (latent,), "following": (latent,), "phase": (1,), "elapsed": (1,), "asked": (self.config.lag + 1, size),
            "goal": (self.frame.width,), "begun": (1,),
        }  # fmt: skip
        tensors = {name: torch.zeros(rows, *shape, dtype=torch.float64) for name, shape in shapes.items()}
        return replace(seeded_state(seeds), tensors=tensors)

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset_rows`."""
        fresh = self.reset(seeds)
        generators = list(state.generators)
        tensors = {name: values.clone() for name, values in state.tensors.items()}
        for index, row in enumerate(rows):
            generators[row] = fresh.generators[index]
            for name in tensors:
                tensors[name][row] = fresh.tensors[name][index]
        return PolicyState(generators=tuple(generators), tensors=tensors)

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; `info["certificate"]` (n, 2 + n_y): V at the chord's start, the model's steps since the motion began, and the
        state measured; `CertificateMonitor` takes a row of it."""
        model = self.model
        raw = flatten_observation(self.contract, obs).numpy().astype(np.float64)
        old = {name: values.numpy() for name, values in state.tensors.items()}
        new = old["begun"][:, 0] == 0.0
        goal = np.where(new[:, None], self.frame.goal(raw), old["goal"]) if new.any() else old["goal"]
        measured = self.frame.states(raw[:, : self.frame.width], goal)
        seen = model.read(measured)

        # Deviation: what is measured now against what was asked for `lag` periods ago.
        deviation = seen - old["asked"][:, 0]
        phase, elapsed, asked = old["phase"], old["elapsed"], old["asked"]
        current, following = old["current"], old["following"]
        begun = new | (np.abs(deviation) > DISTURBED).any(axis=1)
        if begun.any():
            moved = current + phase * (following - current) + deviation @ model.right_inverse.T
            start = np.where(new[:, None], model.lift(seen), moved)
            current = np.where(begun[:, None], start, current)
            following = np.where(begun[:, None], model.step(start), following)
            phase = np.where(begun[:, None], 0.0, phase)
            asked = np.where(new[:, None, None], seen[:, None], asked + np.where(begun, 1.0, 0.0)[:, None, None] * deviation[:, None])
        value = model.energy(current)

        # One period further.
        phase = phase + self.frame.period_steps
        while (due := phase >= 1.0 - 1e-9).any():
            current, following = np.where(due, following, current), np.where(due, model.step(following), following)
            phase = np.maximum(np.where(due, phase - 1.0, phase), 0.0)
        latent = current + phase * (following - current)
        target, expected = model.decode(latent)
        asked = np.concatenate([asked[:, 1:], expected[:, None]], axis=1)

        values = np.empty((len(raw), self.contract.action.size))
        values[:, self.frame.moved] = self.frame.values(target, measured, goal)
        values[:, self.frame.extra] = model.extra(latent)
        arrays = {"current": current, "following": following, "phase": phase, "elapsed": elapsed + self.frame.period_steps, "asked": asked}
        tensors = {name: torch.from_numpy(array) for name, array in {**arrays, "goal": goal, "begun": np.ones_like(phase)}.items()}
        figures = np.concatenate([value[:, None], elapsed, measured], axis=1)
        chunk = ActionChunk(
            values=torch.from_numpy(np.clip(values, -1.0, 1.0).astype(np.float32)).unsqueeze(1).to(self.device),
            period_s=self.contract.action.period_s,
            info={"certificate": torch.from_numpy(figures)},
        )
        return chunk, PolicyState(generators=state.generators, tensors=tensors)


def restore_frame(bundle: Bundle, goal_channel: str = "") -> MotionFrame:
    """The motion frame of a bundle.

    Raises:
        BundleError: no contract, no statistics, or no `motion.period_steps` among its arrays.
        NormalizerError: not statistics of the contract's numbers.
    """
    contract = restore_contract(bundle)
    normalizer = restore_normalizer(bundle, needed=True)
    assert normalizer is not None
    if PERIOD_STEPS not in bundle.arrays:
        raise BundleError(f"bundle of method {bundle.method!r}: arrays {sorted(bundle.arrays)}, needed is {PERIOD_STEPS!r}")
    period_steps = float(bundle.arrays[PERIOD_STEPS])
    return MotionFrame(motion_contract(contract, goal_channel), normalizer, goal_channel=goal_channel, period_steps=period_steps)


def frame_arrays(frame: MotionFrame) -> dict[str, Tensor]:
    """What `restore_frame` needs besides contract and normaliser."""
    return {PERIOD_STEPS: torch.tensor(frame.period_steps, dtype=torch.float64)}


def restore_model(bundle: Bundle) -> tuple[ContractiveConfig, MotionFrame, ContractiveModel]:
    """Configuration, frame and weights of a bundle that `ContractiveLearner.bundle` made.

    Raises:
        BundleError: another method's, or something is missing or does not fit.
    """
    if bundle.method != "contractive":
        raise BundleError(f"bundle of method {bundle.method!r}, valid: contractive")
    config = ContractiveConfig.from_dict(bundle.config)
    frame = restore_frame(bundle, config.goal_channel)
    model = restore_weights(ContractiveModel(config, frame.size, len(frame.extra)), bundle)
    return config, frame, model


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> Policy:
    """The policy of a bundle that `ContractiveLearner.bundle` made.

    Raises:
        BundleError: see `restore_model`.
    """
    metric = bundle.arrays.get(METRIC)
    return ContractivePolicy(*restore_model(bundle), device, metric.numpy() if metric is not None else None)
