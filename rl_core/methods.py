"""What is made of a method by its name: learner, batches, policy of a bundle. `rl_core.method_list.METHODS` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rl_core.bundle import Bundle, BundleError
from rl_core.conditioned_policy import ConditionedPolicy, as_observed
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.errors import ArmstackError
from rl_core.method_list import METHODS, Method, import_attribute
from rl_core.policy import Policy
from rl_core.training.config import Config
from rl_core.training.protocols import Learner, Source


class UnknownMethod(ArmstackError):
    """A method that is not registered; lists those that are."""


def get_method(name: str) -> Method:
    """The entry `name`.

    Raises:
        UnknownMethod: lists the registered ones.
    """
    if name not in METHODS:
        raise UnknownMethod(f"method {name!r}, valid: {', '.join(METHODS)}")
    return METHODS[name]


def offline_methods() -> tuple[str, ...]:
    """Names of the methods that learn from a dataset."""
    return tuple(name for name, method in METHODS.items() if method.kind == "offline")


def training_data(method: str, dataset: Dataset) -> Dataset:
    """The episodes `method` trains on."""
    select = get_method(method).select
    return import_attribute(select)(dataset) if select else dataset


def make_learner(
    method: str,
    config: Config,
    dataset: Dataset | None = None,
    *,
    contract: RobotContract | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> Learner:
    """The learner of a method.

    Args:
        method: name in `METHODS`.
        config: of the method's `config_class`.
        dataset: what it will be trained on (see `training_data`); None for online methods.
        contract: observation channels and action of the policy; the dataset's own if None.
        seed: seed of initial weights and noise.
        device: torch device.

    Raises:
        UnknownMethod: not registered; lists those that are.
    """
    entry = get_method(method)
    if type(config) is not entry.config_class:
        raise TypeError(f"method {method!r} takes {entry.config_class.__name__}, found {type(config).__name__}")
    contract = contract or (dataset.contract if dataset is not None else None)
    if contract is None:
        raise ValueError("make_learner needs a dataset or a contract")
    return import_attribute(entry.learner)(config, contract, device=device, seed=seed, data=dataset)


def make_source(
    method: str,
    config: Config,
    dataset: Dataset,
    *,
    contract: RobotContract | None = None,
    seed: int = 0,
    weights: Mapping[str, float] | None = None,
) -> Source:
    """Batches of an offline method: what its `source` makes of `dataset`, `config.batch_size` at a time.

    Args:
        weights: episode uuid -> weight (see `rl_core.data.weights`); None = all transitions (or whole episodes) alike, in
            shuffled epochs without replacement.
    """
    entry, batch_size = get_method(method), config.to_dict()["batch_size"]
    further = {name: getattr(config, name) for name in entry.source_fields}
    source: Source = import_attribute(entry.source)(
        dataset, contract or dataset.contract, batch_size, seed=seed, weights=weights, **further
    )
    return source


def export_bundle(bundle: Bundle) -> Bundle:
    """The same policy in its method's runtime for deployment.

    Raises:
        BundleError: no policy bundle, or a method without such a runtime; lists those with one.
        UnknownMethod: made by a method this Armstack does not have; lists those it has.
    """
    if bundle.kind != "policy":
        raise BundleError(f"bundle of kind {bundle.kind!r}, valid: policy")
    export = get_method(bundle.method).export
    if not export:
        valid = ", ".join(name for name, method in METHODS.items() if method.export)
        raise BundleError(f"bundle of method {bundle.method!r} has no runtime but torch and is deployed as it is; valid: {valid}")
    if bundle.contract is None or not bundle.contract.condition:
        return import_attribute(export)(bundle)
    return replace(import_attribute(export)(replace(bundle, contract=as_observed(bundle.contract))), contract=bundle.contract)


def load_policy(bundle: str | Path | Bundle, *, device: str = "cpu") -> Policy:
    """The policy of a bundle, from its folder or in memory.

    Raises:
        BundleError: no policy bundle, damaged, or weights that do not fit.
        UnknownMethod: made by a method this Armstack does not have; lists those it has.
    """
    if not isinstance(bundle, Bundle):
        bundle = Bundle.load(bundle)
    if bundle.kind != "policy":
        raise BundleError(f"bundle of kind {bundle.kind!r}, valid: policy")
    entry = get_method(bundle.method)
    build = import_attribute(entry.policy)
    if bundle.contract is None or not bundle.contract.condition or entry.conditioned:
        return build(bundle, device)
    return ConditionedPolicy(build(replace(bundle, contract=as_observed(bundle.contract)), device), bundle.contract)
