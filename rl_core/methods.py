"""METHODS: the only list of policy learning methods in code. Modules of a method are imported when it is used.

A method gives a configuration (`rl_core.training.config.Config`), a learner
`XLearner(config, contract, *, device, seed, data)` and `policy_from_bundle(bundle, device)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rl_core.bundle import Bundle, BundleError
from rl_core.conditioned_policy import ConditionedPolicy, as_observed
from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset
from rl_core.errors import ArmstackError
from rl_core.policy import Policy
from rl_core.training.config import Config
from rl_core.training.protocols import Learner, Source


class UnknownMethod(ArmstackError):
    """A method that is not registered; lists those that are."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """One entry of `METHODS`; names are `module:attribute`.

    Attributes:
        name: CLI name and `Bundle.method`.
        summary: one line for `--help`.
        kind: `offline` (learns from a dataset) or `online` (learns in a world; its learner has `explore()`).
        config: configuration class.
        policy: function that rebuilds the policy of a bundle.
        learner: learner class.
        export: function Bundle -> Bundle of the same policy in the runtime for deployment; empty = none but torch.
        source: function that makes its batches from a dataset; whole episodes or transitions.
        source_fields: fields of the configuration that `source` is given too.
        conditioned: the policy has a condition of its own (`Policy.prepare`), instead of a goal among its observations.
        select: function Dataset -> Dataset that chooses what is trained on; empty = all of it.
        updates: preset -> gradient steps.
    """

    name: str
    summary: str
    config: str
    learner: str
    policy: str
    kind: Literal["offline", "online"] = "offline"
    export: str = ""
    source: str = "rl_core.training.sources:transition_source"
    source_fields: tuple[str, ...] = ()
    conditioned: bool = False
    select: str = ""
    updates: Mapping[str, int] = field(default_factory=dict)

    @property
    def config_class(self) -> type[Config]:
        """The configuration class; `config_class.presets()` are the named ones."""
        return _import(self.config)

    def default_updates(self, preset: str = "default") -> int:
        """Gradient steps of a preset; a preset without its own takes the default's."""
        return self.updates.get(preset, self.updates["default"])


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="dac",
            summary="Diffusion Actor-Critic, offline RL (arXiv 2405.20555)",
            config="rl_core.dac.config:DACConfig",
            learner="rl_core.dac.learner:DACLearner",
            policy="rl_core.dac.policy:policy_from_bundle",
            export="rl_core.dac.export:export_bundle",
            updates={"default": 2_000_000, "cpu": 20_000, "demo": 20_000, "bandit": 20_000},
        ),
        Method(
            name="contractive",
            summary="contractive dynamical policies: stable imitation with a certificate (arXiv 2412.07544)",
            config="rl_core.contractive.config:ContractiveConfig",
            learner="rl_core.contractive.learner:ContractiveLearner",
            policy="rl_core.contractive.policy:policy_from_bundle",
            source="rl_core.training.sources:rollout_source",
            updates={"default": 15_000, "cpu": 3_000, "continuous": 2_000},
        ),
        Method(
            name="strap",
            summary="BC transformer on demonstrations and on sub-trajectories retrieved for them (arXiv 2412.15182)",
            config="rl_core.strap.config:BCTransformerConfig",
            learner="rl_core.strap.learner:STRAPLearner",
            policy="rl_core.strap.policy:policy_from_bundle",
            source="rl_core.strap.chunk_windows:chunk_source",
            source_fields=("context", "chunk"),
            conditioned=True,
            updates={"default": 60_000, "cpu": 4_000},
        ),
        Method(
            name="bc_transformer",
            summary="STRAP's policy on a dataset alone: language-conditioned, GMM head, action chunks",
            config="rl_core.strap.config:BCTransformerConfig",
            learner="rl_core.strap.learner:BCTransformerLearner",
            policy="rl_core.strap.policy:policy_from_bundle",
            source="rl_core.strap.chunk_windows:chunk_source",
            source_fields=("context", "chunk"),
            conditioned=True,
            updates={"default": 60_000, "cpu": 4_000},
        ),
        Method(
            name="bc",
            summary="behaviour cloning: deterministic, Gaussian or GMM head",
            config="rl_core.baselines.bc:BCConfig",
            learner="rl_core.baselines.bc:BCLearner",
            policy="rl_core.baselines.bc:policy_from_bundle",
            updates={"default": 100_000, "cpu": 20_000, "demo": 10_000},
        ),
        Method(
            name="bc_best_half",
            summary="behaviour cloning of the half of the episodes with the highest return",
            config="rl_core.baselines.bc:BCConfig",
            learner="rl_core.baselines.bc_best_half:BestHalfBCLearner",
            policy="rl_core.baselines.bc:policy_from_bundle",
            select="rl_core.baselines.bc_best_half:best_half",
            updates={"default": 100_000, "cpu": 20_000, "demo": 10_000},
        ),
        Method(
            name="diffusion_bc",
            summary="behaviour cloning with a diffusion policy",
            config="rl_core.baselines.diffusion_bc:DiffusionBCConfig",
            learner="rl_core.baselines.diffusion_bc:DiffusionBCLearner",
            policy="rl_core.baselines.diffusion_bc:policy_from_bundle",
            updates={"default": 100_000, "cpu": 20_000, "demo": 10_000},
        ),
        Method(
            name="velocity_bc",
            summary="regression of a motion's velocities with an MLP",
            config="rl_core.baselines.velocity_bc:VelocityBCConfig",
            learner="rl_core.baselines.velocity_bc:VelocityBCLearner",
            policy="rl_core.baselines.velocity_bc:policy_from_bundle",
            source="rl_core.training.sources:rollout_source",
            updates={"default": 10_000, "cpu": 3_000},
        ),
        Method(
            name="snds",
            summary="stable neural dynamics: velocities projected on a Lyapunov function's decrease (arXiv 2001.06116)",
            config="rl_core.baselines.snds:SNDSConfig",
            learner="rl_core.baselines.snds:SNDSLearner",
            policy="rl_core.baselines.snds:policy_from_bundle",
            source="rl_core.training.sources:rollout_source",
            updates={"default": 10_000, "cpu": 3_000},
        ),
        Method(
            name="sds_ef",
            summary="Euclideanizing flows: velocities of a bent straight line (arXiv 2005.13143)",
            config="rl_core.baselines.sds_ef:SDSEFConfig",
            learner="rl_core.baselines.sds_ef:SDSEFLearner",
            policy="rl_core.baselines.sds_ef:policy_from_bundle",
            source="rl_core.training.sources:rollout_source",
            updates={"default": 10_000, "cpu": 3_000},
        ),
        Method(
            name="sac",
            summary="Soft Actor-Critic in a world, by stable-baselines3",
            kind="online",
            config="rl_core.baselines.sb3:SACConfig",
            learner="rl_core.baselines.sb3:SACLearner",
            policy="rl_core.baselines.sb3_policy:policy_from_bundle",
            updates={"default": 100_000},
        ),
        Method(
            name="td3",
            summary="Twin Delayed DDPG in a world, by stable-baselines3",
            kind="online",
            config="rl_core.baselines.sb3:TD3Config",
            learner="rl_core.baselines.sb3:TD3Learner",
            policy="rl_core.baselines.sb3_policy:policy_from_bundle",
            updates={"default": 100_000},
        ),
    )
}


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
    return _import(select)(dataset) if select else dataset


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
    return _import(entry.learner)(config, contract, device=device, seed=seed, data=dataset)


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
    source: Source = _import(entry.source)(dataset, contract or dataset.contract, batch_size, seed=seed, weights=weights, **further)
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
        return _import(export)(bundle)
    return replace(_import(export)(replace(bundle, contract=as_observed(bundle.contract))), contract=bundle.contract)


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
    build = _import(entry.policy)
    if bundle.contract is None or not bundle.contract.condition or entry.conditioned:
        return build(bundle, device)
    return ConditionedPolicy(build(replace(bundle, contract=as_observed(bundle.contract)), device), bundle.contract)


def _import(name: str) -> Any:
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)
