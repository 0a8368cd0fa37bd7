"""Is the skill value right? Q_M of random skills at the start of an episode beside the return that the skills then have."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.bundle import Bundle, BundleError
from rl_core.dvfb.config import DVFBConfig
from rl_core.dvfb.goals import reached_goal
from rl_core.dvfb.inference import inference_from_bundle
from rl_core.dvfb.losses import inverse_covariance, skill_value
from rl_core.dvfb.networks import ForwardNet
from rl_core.dvfb.policy import DVFBPolicy
from rl_core.dvfb.solving import blind_skill
from rl_core.methods import load_policy
from rl_core.restore import restore_contract, restore_weights
from rl_core.training.rollout import ChannelHistory, rollout
from rl_core.training.seeding import derive_seed
from rl_core.training.worlds import MakeEnv


def calibrate(bundle: Bundle, make_env: MakeEnv, *, skills: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predicted and measured, (skills,) each, one episode a skill without noise.

    Predicted: min_h F_h(s, z, a) . z at the first state s, a = pi(s, z). Measured: sum_t gamma^t r_z(s_t+1), r_z being the reward that z
    asks for, B^T (E B B^T)^-1 z over the states that the bundle carries (phi . z for successor features). What would come after the
    episode's end is not measured: gamma^T of it.

    Args:
        bundle: of the pre-training.
        make_env: makes one world.
        skills: how many, from the prior.
        seed: of skills and episodes.

    Raises:
        BundleError: another method's, or one without states.
    """
    if bundle.method != "dvfb":
        raise BundleError(f"bundle of method {bundle.method!r} has no skill value, valid: dvfb")
    config, contract, policy = DVFBConfig.from_dict(bundle.config), restore_contract(bundle), load_policy(bundle)
    assert isinstance(policy, DVFBPolicy)
    inference = inference_from_bundle(bundle)
    f = restore_weights(ForwardNet(config, contract.observation_size, contract.action.size), bundle, "cpu", prefix="f.")
    scale = torch.eye(config.z_dim) if config.variant == "sf_laplacian" else inverse_covariance(inference.features)
    predicted, measured, env = [], [], make_env()
    try:
        for index in range(skills):
            z = blind_skill(bundle, derive_seed(seed, "calibration", index))
            history, states = ChannelHistory(contract), list[NDArray[np.float32]]()
            for step in rollout(policy, [env], [derive_seed(seed, "calibration episode", index)], condition={"skill": z}):
                if not states:
                    history.start(step.before)
                    states.append(history.flat())
                history.push(step.observation)
                states.append(history.flat())
            seen = torch.from_numpy(np.stack(states))
            with torch.no_grad():
                first, skill = seen[:1], z.unsqueeze(0)
                predicted.append(float(skill_value(f(first, skill, policy.actor(first, skill)), skill).amin()))
                rewards = inference.b(reached_goal(config.goal, seen[:-1], seen[1:])) @ scale @ z
            measured.append(float((config.gamma ** torch.arange(len(rewards)) * rewards).sum()))
    finally:
        env.close()
    return np.array(predicted), np.array(measured)
