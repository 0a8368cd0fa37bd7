"""The update of a contractive policy (arXiv 2412.07544): gradient descent on whole rollouts; the parameters need no constraint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.contractive.bounds import certify
from rl_core.contractive.config import ContractiveConfig
from rl_core.contractive.demonstrations import DemonstrationReader, Demonstrations
from rl_core.contractive.losses import mse, soft_dtw_divergence
from rl_core.contractive.model import ContractiveModel
from rl_core.contractive.motion import MotionFrame, fit_frame, motion_contract
from rl_core.contractive.policy import ContractivePolicy, frame_arrays, restore_model
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.normalizer import Normalizer
from rl_core.models import ClippedAdam
from rl_core.training.seeding import torch_generator


class ContractiveLearner:
    """Implements `Learner`.

    Args:
        config: hyperparameters.
        contract: observation channels offered, and action; the policy's contract holds those of the motion (`motion_contract`).
        device: torch device.
        seed: seed of the initial weights and of the jitter.
        data: the demonstrations; they give goal, unit and duration.

    Raises:
        DatasetError: no data.
        ContractError: see `motion_contract`.
    """

    def __init__(
        self, config: ContractiveConfig, contract: RobotContract, *, device: str = "cpu", seed: int = 0, data: Dataset | None = None
    ) -> None:
        if data is None:
            raise DatasetError("contractive policies take goal and unit from the demonstrations: give `data`")
        self.config = config
        self.device = torch.device(device)
        self.generator = torch_generator(seed, "contractive", "jitter", device=device)
        self.contract = motion_contract(contract, config.goal_channel)
        stretched = config.loss == "mse"
        frame = fit_frame(data, self.contract, goal_channel=config.goal_channel, horizon=config.horizon, stretched=stretched)
        self.reader = DemonstrationReader(frame, contract, horizon=config.horizon, stretched=stretched, device=self.device)
        self.demonstrations = self.reader.read_dataset(data)
        weights = torch_generator(seed, "contractive", "weights")
        self.model = ContractiveModel(config, frame.size, len(frame.extra), generator=weights).to(device)
        parameters = [p for p in self.model.parameters() if p.numel()]  # without a bijection, its parameters have no numbers
        self.optimizer = ClippedAdam(parameters, lr=config.lr, decay_steps=config.lr_decay_steps, max_norm=config.max_grad_norm)

    @property
    def frame(self) -> MotionFrame:
        """What a state is."""
        return self.reader.frame

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One step on a batch of whole demonstrations; see `rl_core.training.sources.rollout_source`."""
        config = self.config
        demos = self.reader.read(batch)
        rows = len(demos.states)
        # All rollouts at once: from the demonstrated starts, and from jittered copies of them.
        starts = demos.states[:, 0].repeat(1 + config.jitter_copies, 1)
        noise = torch.rand(rows * config.jitter_copies, starts.shape[1], generator=self.generator, device=self.device)
        starts[rows:] += config.jitter * (2.0 * noise - 1.0)
        latent, states = self.model.rollout(starts)
        ends = states[:, -1]
        # Imitation from the demonstrated starts.
        imitation = self._distance(states[:rows], demos)
        loss = imitation
        metrics = {"loss/bc": imitation.detach()}
        if config.jitter_copies:
            # The same from jittered starts, except for the first points, where a rollout cannot be back yet.
            of = torch.arange(rows, device=self.device).repeat(config.jitter_copies)
            copies = _rest(demos, of, torch.zeros_like(of), config.jitter_skip)
            jittered = self._distance(states[rows:, config.jitter_skip :], copies)
            loss = loss + jittered
            metrics["loss/jittered"] = jittered.detach()
        if config.push_copies:
            # The same after pushes on the way.
            pushed, of, when = self._push(latent[:rows].detach())
            back = self.model.go_on(pushed)[1]
            coming_back = self._distance(back[:, config.jitter_skip :], _rest(demos, of, when, config.jitter_skip))
            loss = loss + coming_back
            metrics["loss/pushed"] = coming_back.detach()
            ends = torch.cat([ends, back[:, -1]])
        if config.end_weight:
            # A motion that only nears its goal is not over: the last points count more than the others.
            end = ends.square().mean()
            loss = loss + config.end_weight * end
            metrics["loss/end"] = end.detach()
        if config.conditioning:
            # How much the latent system may amplify a deviation: the certificate's, not the data's.
            amplification = self.model.amplification()
            loss = loss + config.conditioning * amplification
            metrics["certificate/amplification"] = (0.5 * amplification.detach()).exp()
        if self.model.head is not None:
            # Action dimensions that no state moves are read out of the latent state; this term does not change the motion.
            extra = mse(self.model.extra(latent[:rows]), demos.extra)
            loss = loss + extra
            metrics["loss/extra"] = extra.detach()
        norm = self.optimizer.minimize(loss)
        return {**metrics, "grad/actor": norm}

    def _distance(self, states: Tensor, demos: Demonstrations) -> Tensor:
        if self.config.loss == "mse":
            return mse(states, demos.states)
        return soft_dtw_divergence(states, demos.states, demos.points, gamma=self.config.soft_dtw_gamma)

    def _push(self, latent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pushes motions (B, T, n_x) anywhere on their way: latent states (B copies, n_x), which motion each was, and at which point."""
        of = torch.arange(len(latent), device=self.device).repeat(self.config.push_copies)
        when = torch.randint(latent.shape[1], (len(of),), generator=self.generator, device=self.device)
        noise = torch.rand(len(of), self.frame.size, generator=self.generator, device=self.device)
        return self.model.pushed(latent[of, when], self.config.jitter * (2.0 * noise - 1.0)), of, when

    def policy(self) -> ContractivePolicy:
        """The policy of the current weights, copied."""
        return ContractivePolicy(self.config, self.frame, self.model, str(self.device))

    def init_from(self, bundle: Bundle) -> None:
        """Starts from a trained policy's weights and statistics; the optimiser starts anew."""
        _, frame, model = restore_model(bundle)
        self.contract.accepts(frame.contract, needed_by="this run", offered_by="the bundle of init_from")
        self.model.load_state_dict(model.state_dict())
        self._use(frame.normalizer, frame.period_steps)

    def bundle(self) -> Bundle:
        """Weights, and the certificate of what they are."""
        certificate = certify(self.model, self.demonstrations.states, margin=self.config.jitter)
        figures = ("promised", "factor", "gain", "k_theory", "k_empirical", "bound_worst", "bound_expected")
        return Bundle(
            kind="policy",
            method="contractive",
            config=self.config.to_dict(),
            contract=self.contract,
            normalizer=self.frame.normalizer.to_dict(),
            weights=self.model.state_dict(),
            arrays={**frame_arrays(self.frame), **certificate.arrays()},
            metrics={f"certificate/{name}": getattr(certificate, name) for name in figures},
        )

    def draw(self, run_dir: Path) -> None:
        """`motion.png` in the run's folder: rollouts over the demonstrations, and V over time with its bound."""
        from rl_core.contractive.pictures import draw_motion

        draw_motion(self.model, self.demonstrations.states, self.config.jitter, run_dir / "motion.png")

    def _use(self, normalizer: Normalizer, period_steps: float) -> None:
        frame = self.frame
        self.reader.frame = MotionFrame(frame.contract, normalizer, goal_channel=frame.goal_channel, period_steps=period_steps)

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, generator, and what was taken from the dataset."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "normalizer": self.frame.normalizer.to_dict(),
            "period_steps": self.frame.period_steps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self._use(Normalizer.from_dict(state["normalizer"]), float(state["period_steps"]))


def _rest(demos: Demonstrations, of: Tensor, when: Tensor, skip: int) -> Demonstrations:
    """Of the demonstrations `of` (N,), what comes `skip` points after point `when` (N,): the end stays, two points are left at least."""
    points = torch.arange(skip, demos.states.shape[1], device=of.device)
    later = of.unsqueeze(1), (when.unsqueeze(1) + points).clamp(max=demos.states.shape[1] - 1)
    return Demonstrations(states=demos.states[later], points=(demos.points[of] - when - skip).clamp(min=2), extra=demos.extra[later])
