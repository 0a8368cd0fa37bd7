"""Behaviour cloning with a transformer, chunks and instructions (STRAP's policy; the baselines BC, MT and FT are the same on other data).

loss = - mean over windows and the chunk's actions within the episode of  log pi(a_{t + i} | o_{t - context + 1 .. t}, instruction)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.normalizer import Normalizer
from rl_core.models.film import crop
from rl_core.models.gmm import GaussianMixture
from rl_core.models.transformer_optimizer import WarmUpAdamW
from rl_core.restore import restore_weights
from rl_core.strap.config import BCTransformerConfig
from rl_core.strap.policy import ChunkPolicy, policy_contract, policy_from_bundle
from rl_core.strap.policy_instructions import Instructions
from rl_core.strap.policy_network import make_network
from rl_core.training.seeding import torch_generator


def chunk_loss(mixture: GaussianMixture, action: Tensor, mask: Tensor) -> Tensor:
    """Mean negative log-likelihood of the actions (B, chunk, A) whose mask (B, chunk) is 1."""
    return -(mixture.log_prob(action) * mask).sum() / mask.sum()


class BCTransformerLearner:
    """Implements `Learner`.

    Args:
        config: hyperparameters.
        contract: observation channels and action of one step.
        device: torch device.
        seed: seed of the initial weights and of the crops; dropout draws from torch's global generator.
        data: what is trained on; gives the instructions and the observation statistics.
    """

    method = "bc_transformer"

    def __init__(
        self,
        config: BCTransformerConfig,
        contract: RobotContract,
        *,
        device: str = "cpu",
        seed: int = 0,
        data: Dataset | None = None,
    ) -> None:
        if data is None:
            raise DatasetError(f"{type(self).__name__} needs a dataset, whose instructions it learns to follow; found none")
        self.config = config
        self.device = torch.device(device)
        self.instructions = Instructions.of(data, config.instruction)
        self.contract = policy_contract(config, contract, self.instructions)
        self.normalizer = Normalizer.fit(data, contract) if config.normalize_observations and contract.low_dimensional else None
        self.cameras = [channel.name for channel in contract.observation if channel.kind == "image"]
        self.generator = torch_generator(seed, "bc_transformer", "crops")
        self.network = make_network(config, contract, self.instructions.vectors.shape[1], seed=seed).to(device)
        self.optimizer = WarmUpAdamW(
            self.network.parameters(),
            lr=config.lr,
            warm_up=config.warm_up,
            weight_decay=config.weight_decay,
            max_norm=config.max_grad_norm,
        )

    def update(self, batch: TensorDict) -> Mapping[str, Tensor]:
        """One step down `chunk_loss`; a batch is `ChunkSampler`'s."""
        observation = batch["observation"]
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
        images = {name: crop(batch[name], self.config.crop, self.generator).to(self.device) for name in self.cameras}
        language = self.instructions.vectors[batch["instruction"]].to(self.device)
        self.network.train()
        mixture = self.network(observation.to(self.device), images, language)
        loss = chunk_loss(mixture, batch["action"].to(self.device), batch["mask"].to(self.device))
        norm = self.optimizer.minimize(loss)
        self.network.eval()
        return {"loss/actor": loss.detach(), "grad/actor": norm}

    def policy(self) -> ChunkPolicy:
        """The policy of the current weights, shared."""
        return ChunkPolicy(self.config, self.contract, self.network, self.normalizer, self.instructions)

    def init_from(self, bundle: Bundle) -> None:
        """Starts from a trained policy's weights and statistics; the optimiser starts anew, instructions are those of the new data.

        Raises:
            ContractMismatch: it was trained for another robot.
            BundleError: its network is of another size.
        """
        trained = policy_from_bundle(bundle)
        dataclasses.replace(self.contract, condition=()).accepts(
            trained.contract, needed_by="this run", offered_by="the bundle of init_from"
        )
        restore_weights(self.network, bundle, str(self.device)).requires_grad_(True)
        self.normalizer = trained.normalizer

    def bundle(self) -> Bundle:
        """Network, statistics, and the instructions with their vectors."""
        return Bundle(
            kind="policy",
            method=self.method,
            config=self.config.to_dict(),
            contract=self.contract,
            normalizer=self.normalizer.to_dict() if self.normalizer is not None else None,
            weights=self.network.state_dict(),
            arrays=self.instructions.to_arrays(),
        )

    def state_dict(self) -> dict[str, Any]:
        """Network, optimiser, statistics, instructions and the generator of crops."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "normalizer": self.normalizer.to_dict() if self.normalizer is not None else None,
            "instructions": self.instructions.to_arrays(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.normalizer = Normalizer.from_dict(state["normalizer"]) if state["normalizer"] is not None else None
        self.instructions = Instructions.from_arrays(state["instructions"])
        self.generator.set_state(state["generator"])


class STRAPLearner(BCTransformerLearner):
    """The same learner on target demonstrations and the pieces that were retrieved for them."""

    method = "strap"
