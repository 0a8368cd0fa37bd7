"""Rebuilding a policy from its bundle: contract, weights and statistics, each refused with a clear error where it does not fit."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import RobotContract
from rl_core.data.normalizer import Normalizer

Module = TypeVar("Module", bound=nn.Module)


def restore_contract(bundle: Bundle) -> RobotContract:
    """The contract the policy was trained for.

    Raises:
        BundleError: the bundle has none.
    """
    if bundle.contract is None:
        raise BundleError(f"bundle of method {bundle.method!r}: field contract is null, valid: the contract a policy was trained for")
    return bundle.contract


def restore_weights(module: Module, bundle: Bundle, device: str = "cpu", *, prefix: str = "") -> Module:
    """`module` with the bundle's weights whose names start with `prefix`, on `device`, without gradients.

    Raises:
        BundleError: names or shapes differ; names them.
    """
    weights = {name.removeprefix(prefix): tensor for name, tensor in bundle.weights.items() if name.startswith(prefix)}
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise BundleError(f"weights.safetensors does not fit the configuration: {error}") from error
    return module.requires_grad_(False).to(device)


def restore_normalizer(bundle: Bundle, *, needed: bool) -> Normalizer | None:
    """The bundle's statistics, checked against its contract; None where it has none.

    Raises:
        BundleError: none, though `needed`.
        NormalizerError: not statistics of the contract's numbers.
    """
    if bundle.normalizer is not None:
        return Normalizer.from_dict(bundle.normalizer, contract=bundle.contract)
    if needed:
        raise BundleError(f"bundle of method {bundle.method!r}: field normalizer is null, but the policy was trained on normalised numbers")
    return None
