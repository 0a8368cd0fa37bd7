"""Which discovered skill serves a reward, from states that were seen without it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import RobotContract
from rl_core.dvfb.inference import RewardFunction, labels, regressed_skill
from rl_core.dvfb.networks import Actor
from rl_core.dvfb.policy import SKILL, DVFBPolicy
from rl_core.dvfb.skill_discovery.config import SkillDiscoveryConfig
from rl_core.dvfb.skill_discovery.objectives import APS, CIC, DIAYN, make_objective
from rl_core.dvfb.states import CarriedStates
from rl_core.restore import restore_contract, restore_weights
from rl_core.training.seeding import numpy_generator

CANDIDATES = 256
"""Skills among which CIC's inference chooses."""


class DiscoveredSkills:
    """Infers skills from carried states, as `rl_core.dvfb.inference.SkillInference` does for F and B.

    Args:
        config: of the training.
        contract: names the numbers of an observation.
        objective: the trained representation.
        states: N transitions without rewards.
    """

    def __init__(self, config: SkillDiscoveryConfig, contract: RobotContract, objective: DIAYN | CIC | APS, states: CarriedStates) -> None:
        self.contract, self.states = contract, states
        self._shares: Tensor | None = None
        device = next(objective.parameters()).device
        observation, next_observation = states.observation.to(device), states.next_observation.to(device)
        with torch.no_grad():
            if isinstance(objective, APS):
                self._features = objective.features(next_observation).cpu()
            else:
                self.skills = candidates(config)
                self._shares = objective.logits(observation, next_observation, self.skills.to(device)).softmax(-1).cpu()

    def from_rewards(self, rewards: Tensor) -> Tensor:
        """z (d,): APS's by regression, else of the candidate c with the largest sum_i r_i p(c | i) / sum_i p(c | i)."""
        if self._shares is None:
            return regressed_skill(self._features, rewards)
        return self.skills[int((rewards @ self._shares / self._shares.sum(0)).argmax())]

    def from_function(self, reward: RewardFunction) -> Tensor:
        """z (d,) from a reward function."""
        return self.from_rewards(labels(reward, self.states))


def candidates(config: SkillDiscoveryConfig) -> Tensor:
    """Skills to choose from (C, d): all of DIAYN's, a fixed draw of CIC's."""
    if config.algorithm == "diayn":
        return config.z_dim**0.5 * torch.eye(config.z_dim)
    rng = numpy_generator(0, "candidates")
    return torch.from_numpy(np.stack([config.draw(rng) for _ in range(CANDIDATES)]))


def discovered_from_bundle(bundle: Bundle, device: str = "cpu") -> DiscoveredSkills:
    """Inference with the states that a bundle carries.

    Raises:
        BundleError: one without states, or weights that do not fit.
    """
    contract, config = restore_contract(bundle), SkillDiscoveryConfig.from_dict(bundle.config)
    objective = restore_weights(make_objective(config, contract.observation_size), bundle, device, prefix="objective.")
    return DiscoveredSkills(config, contract, objective, CarriedStates.from_bundle(bundle))


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> DVFBPolicy:
    """The policy of a bundle that `SkillDiscoveryLearner.bundle` made, told a skill, or of one task.

    Raises:
        BundleError: a skill that is missing, or weights that do not fit.
    """
    contract, config = restore_contract(bundle), SkillDiscoveryConfig.from_dict(bundle.config)
    actor = restore_weights(Actor(config, contract.observation_size, contract.action.size), bundle, device, prefix="actor.")
    skill = bundle.arrays.get(SKILL)
    if not contract.condition and skill is None:
        raise BundleError(f"bundle of method {bundle.method!r} without a condition: no array {SKILL!r}, valid: ({config.z_dim},)")
    return DVFBPolicy(contract, actor, skill=None if contract.condition else skill)
