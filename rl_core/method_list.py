"""METHODS: the only list of policy learning methods in code. Modules of a method are imported when it is used.

A method gives a configuration (`rl_core.training.config.Config`), a learner
`XLearner(config, contract, *, device, seed, data)` and `policy_from_bundle(bundle, device)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rl_core.training.config import Config


@dataclass(frozen=True, kw_only=True)
class Method:
    """One entry of `METHODS`; names are `module:attribute`.

    Attributes:
        name: CLI name and `Bundle.method`.
        summary: one line for `--help`.
        kind: `offline` (learns from a dataset), `online` (learns in a world; its learner has `explore()`), or `reward_free` (so, for no
            task).
        config: configuration class.
        policy: function that rebuilds the policy of a bundle.
        learner: learner class.
        export: function Bundle -> Bundle of the same policy in the runtime for deployment; empty = none but torch.
        source: function that makes its batches from a dataset; whole episodes or transitions.
        source_fields: fields of the configuration that `source` is given too.
        conditioned: the policy has a condition of its own (`Policy.prepare`), instead of a goal among its observations.
        train: function that trains an online method which has a source of its own; empty = a replay of transitions (`OnlineSource`).
        select: function Dataset -> Dataset that chooses what is trained on; empty = all of it.
        updates: preset -> gradient steps.
    """

    name: str
    summary: str
    config: str
    learner: str
    policy: str
    kind: Literal["offline", "online", "reward_free"] = "offline"
    export: str = ""
    source: str = "rl_core.training.sources:transition_source"
    source_fields: tuple[str, ...] = ()
    conditioned: bool = False
    train: str = ""
    select: str = ""
    updates: Mapping[str, int] = field(default_factory=dict)

    @property
    def config_class(self) -> type[Config]:
        """The configuration class; `config_class.presets()` are the named ones."""
        return import_attribute(self.config)

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
            name="pear",
            summary="two levels of SAC on demonstrations relabelled by the lower one's critic, in a goal world (arXiv 2306.06394)",
            kind="online",
            config="rl_core.pear.config:PEARConfig",
            learner="rl_core.pear.learner:PEARLearner",
            policy="rl_core.pear.policy:policy_from_bundle",
            train="rl_core.pear.training:train_in_goal_world",
            updates={"default": 21_000, "cpu": 15_000},
        ),
        Method(
            name="dvfb",
            summary="dual-value forward-backward representation: reward-free pre-training, tasks solved zero-shot (ICLR 2025)",
            kind="reward_free",
            config="rl_core.dvfb.config:DVFBConfig",
            learner="rl_core.dvfb.learner:DVFBLearner",
            policy="rl_core.dvfb.policy:policy_from_bundle",
            conditioned=True,
            updates={"default": 1_000_000, "paper": 1_000_000, "cpu": 25_000},
        ),
        Method(
            name="skill_discovery",
            summary="DIAYN, CIC and APS: reward-free skills, one of them chosen for a task afterwards",
            kind="reward_free",
            config="rl_core.dvfb.skill_discovery.config:SkillDiscoveryConfig",
            learner="rl_core.dvfb.skill_discovery.learner:SkillDiscoveryLearner",
            policy="rl_core.dvfb.skill_discovery.inference:policy_from_bundle",
            conditioned=True,
            updates={"default": 1_000_000, "cpu": 25_000},
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


def import_attribute(name: str) -> Any:
    """What `module:attribute` names."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)
