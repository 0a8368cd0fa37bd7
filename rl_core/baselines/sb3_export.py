"""Exports actors of stable-baselines3's SAC and TD3 to bundles, with the observation statistics they were trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from rl_core.baselines.sb3_policy import ActorConfig
from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.data.normalizer import ColumnStatistics, Normalizer
from rl_core.errors import ArmstackError

_ACTIVATIONS: dict[type[nn.Module], str] = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.ELU: "elu"}


class ExportError(ArmstackError):
    """A model that cannot be exported; says what was found and what would be valid."""


def export_sb3(model: Any, contract: RobotContract, *, vec_normalize: Any | None = None) -> Bundle:
    """The actor of a trained model as a bundle.

    Args:
        model: `stable_baselines3.SAC` or `TD3` with an `MlpPolicy`, or a `MultiInputPolicy` over the contract's channels.
        contract: what the numbers mean. For a flat observation space its channels, in order, are the observation; for a
            dict space they are matched by name. Policy values -1..1 span the model's action box.
        vec_normalize: the `VecNormalize` the model was trained behind; None where there was none.

    Raises:
        ExportError: another algorithm, another network, or sizes and names that differ from the contract's.
    """
    algorithm = type(model).__name__.lower()
    if algorithm not in ("sac", "td3"):
        raise ExportError(f"model is a {type(model).__name__}, valid: SAC, TD3")
    if getattr(model, "use_sde", False):
        raise ExportError("model explores with gSDE (use_sde=True), valid: use_sde=False")
    if model.action_space.shape != (contract.action.size,):
        raise ExportError(f"model gives actions {model.action_space.shape}, the contract has {contract.action.names}")
    layers = list(model.actor.latent_pi) + [model.actor.mu] if algorithm == "sac" else list(model.actor.mu)[:-1]
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    activations = {type(layer) for layer in layers} - {nn.Linear}
    if len(activations) != 1 or next(iter(activations)) not in _ACTIVATIONS:
        found = sorted(kind.__name__ for kind in activations)
        raise ExportError(f"actor has layers {found} between the linear ones, valid: one of ReLU, Tanh, ELU")
    order = _input_order(model.observation_space, contract)
    weights: dict[str, Tensor] = {}
    for index, layer in enumerate(linear):
        weights[f"layers.{index}.weight"] = layer.weight.detach()[:, order] if index == 0 else layer.weight.detach()
        weights[f"layers.{index}.bias"] = layer.bias.detach()
    normalizes = vec_normalize is not None and vec_normalize.norm_obs
    facts = {
        "algorithm": algorithm,
        "hidden": [layer.out_features for layer in linear[:-1]],
        "activation": _ACTIVATIONS[next(iter(activations))],
        "clip": float(vec_normalize.clip_obs) if normalizes and vec_normalize is not None else None,
    }
    normalizer = _normalizer(vec_normalize, contract, order) if normalizes else None
    return Bundle(
        kind="policy",
        method=algorithm,
        config=ActorConfig.from_dict(facts).to_dict(),
        contract=contract,
        normalizer=normalizer.to_dict() if normalizer is not None else None,
        weights={name: tensor.cpu() for name, tensor in weights.items()},
    )


def _input_order(space: spaces.Space, contract: RobotContract) -> Tensor:
    """(S,) position in the model's input of each entry of the contract's flat observation."""
    size = contract.observation_size
    if isinstance(space, spaces.Dict):
        sizes = {name: int(np.prod(part.shape or ())) for name, part in space.spaces.items()}
        wanted = {channel.name: channel.size * channel.history for channel in contract.low_dimensional}
        if sizes != wanted:
            raise ExportError(f"model observes {sizes}, the contract's channels are {wanted}; valid: equal names and sizes")
        starts = dict(zip(sizes, np.cumsum([0, *sizes.values()])[:-1], strict=True))
        return torch.as_tensor(np.concatenate([starts[name] + np.arange(width) for name, width in wanted.items()]))
    if space.shape != (size,):
        raise ExportError(f"model observes {space.shape}, the contract has {size} numbers: {contract.observation_names}")
    return torch.arange(size)


def _normalizer(vec_normalize: Any, contract: RobotContract, order: Tensor) -> Normalizer:
    """VecNormalize's running mean and variance under the contract's names."""
    statistics = vec_normalize.obs_rms
    parts: Sequence[Any] = list(statistics.values()) if isinstance(statistics, dict) else [statistics]
    if isinstance(statistics, dict) and list(statistics) != list(vec_normalize.observation_space.spaces):
        channels = list(vec_normalize.observation_space.spaces)
        raise ExportError(f"VecNormalize keeps statistics of {list(statistics)}, valid: all of {channels}")
    mean = np.concatenate([np.ravel(part.mean) for part in parts])[order.numpy()]
    variance = np.concatenate([np.ravel(part.var) for part in parts])[order.numpy()]
    size = contract.action.size
    observation = ColumnStatistics(
        names=contract.observation_names,
        mode="mean_std",
        shift=mean.astype(np.float32),
        scale=np.sqrt(variance + vec_normalize.epsilon).astype(np.float32),
    )
    action = ColumnStatistics(
        names=contract.action.names, mode="identity", shift=np.zeros(size, np.float32), scale=np.ones(size, np.float32)
    )
    return Normalizer({"observation": observation, "action": action})
