"""STRAP's policy at run time: the last observations and an instruction in, a chunk of actions out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.contract import ContractError, RobotContract
from rl_core.data.normalizer import Normalizer
from rl_core.models.film import crop
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy
from rl_core.restore import restore_contract, restore_normalizer, restore_weights
from rl_core.strap.config import BCTransformerConfig
from rl_core.strap.policy_instructions import TASK, Instructions
from rl_core.strap.policy_network import ChunkNetwork, make_network
from rl_core.training.config import ConfigError


def with_history(contract: RobotContract, context: int) -> RobotContract:
    """The contract with `context` samples of each observation channel."""
    channels = tuple(dataclasses.replace(channel, history=context) for channel in contract.observation)
    return dataclasses.replace(contract, observation=channels)


def policy_contract(config: BCTransformerConfig, contract: RobotContract, instructions: Instructions) -> RobotContract:
    """What the policy needs: its context as a history, its chunk as a horizon; an instruction where it has no default.

    Raises:
        ConfigError: the data's channels have a history already, or the contract has a condition.
    """
    past = [channel.name for channel in contract.observation if channel.history != 1]
    if past or contract.condition:
        found = f"a history in {past}" if past else f"the condition {[channel.name for channel in contract.condition]}"
        raise ConfigError(f"contract of the data: {found}, valid: channels of one step (history 1) without a condition")
    action = dataclasses.replace(contract.action, horizon=config.chunk, execute=config.execute)
    condition = (TASK,) if instructions.default is None else ()
    return dataclasses.replace(with_history(contract, config.context), action=action, condition=condition)


class ChunkPolicy(StatelessPolicy):
    """See the module. The memory it needs, its context, is in the observation; draws are of low noise (`GaussianMixture`).

    Attributes:
        instructions: what it can be told, as the condition `task`.
    """

    def __init__(
        self,
        config: BCTransformerConfig,
        contract: RobotContract,
        network: ChunkNetwork,
        normalizer: Normalizer | None,
        instructions: Instructions,
    ) -> None:
        self.config = config
        self.contract = contract
        self.network = network
        self.normalizer = normalizer
        self.known = instructions
        self.device = next(network.parameters()).device

    @property
    def instructions(self) -> tuple[str, ...]:
        """The sentences it may be told; empty for a policy of one task without words."""
        return tuple(text for text in self.known.texts if text)

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """See `Instructions.prepare`."""
        return self.known.prepare(condition)

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; channels are (n, context, ...), oldest first."""
        rows, (chunk, size) = obs.batch_size[0], (self.config.chunk, self.contract.action.size)
        observation, images = self._seen(obs)
        language = condition["language"].to(self.device).expand(rows, -1)
        mixture = self.network(observation, {name: crop(frames, self.config.crop) for name, frames in images.items()}, language)
        # One uniform number a row, for all actions of its chunk: their components are drawn together, so a chunk keeps to one mode.
        uniform = torch.stack([torch.rand((), generator=generator) for generator in state.generators])
        noise = state.normal(chunk, size).to(self.device)
        values = mixture.draw_low_noise(uniform.to(self.device).unsqueeze(1).expand(-1, chunk), noise).clamp(-1.0, 1.0)
        return ActionChunk(values=values, period_s=self.contract.action.period_s, execute=self.config.execute), state

    def _seen(self, obs: TensorDict) -> tuple[Tensor, dict[str, Tensor]]:
        """Low-dimensional channels (n, context, O), normalised, and images (n, context, H, W, C)."""
        rows, context = obs.batch_size[0], self.config.context
        parts = [torch.zeros(rows, context, 0)]
        images = {}
        for channel in self.contract.observation:
            if channel.name not in obs.keys():
                raise KeyError(f"observation lacks {channel.name!r}; it has {sorted(map(str, obs.keys()))}")
            value = obs[channel.name] if context > 1 else obs[channel.name].unsqueeze(1)
            if value.shape != (rows, context, *channel.shape):
                raise ContractError(f"channel {channel.name!r}: shape {tuple(value.shape)}, valid: {(rows, context, *channel.shape)}")
            if channel.kind == "image":
                images[channel.name] = value.to(self.device)
            else:
                parts.append(value.to(torch.float32))
        observation = torch.cat(parts, dim=-1)
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
        return observation.to(self.device), images


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> ChunkPolicy:
    """The policy of a bundle that `BCTransformerLearner.bundle` wrote.

    Raises:
        BundleError: no contract or instructions, or weights that do not fit the configuration.
        NormalizerError: statistics of other numbers.
    """
    contract, config = restore_contract(bundle), BCTransformerConfig.from_dict(bundle.config)
    instructions = Instructions.from_arrays(bundle.arrays)
    step = with_history(contract, 1)
    needed = config.normalize_observations and bool(step.low_dimensional)
    normalizer = restore_normalizer(dataclasses.replace(bundle, contract=step), needed=needed)
    network = restore_weights(make_network(config, step, instructions.vectors.shape[1]), bundle, device)
    return ChunkPolicy(config, contract, network, normalizer, instructions)
