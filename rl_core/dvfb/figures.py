"""What exploration and skills are judged by, beside returns: cells visited, spread of states, spread of actions over skills."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.data.replay import ReplayBuffer
from rl_core.dvfb.inference import goal_columns
from rl_core.dvfb.policy import DVFBPolicy
from rl_core.dvfb.solving import blind_skill
from rl_core.dvfb.states import CarriedStates
from rl_core.methods import load_policy
from rl_core.restore import restore_contract
from rl_core.training.seeding import derive_seed

PARTICLES, NEIGHBOUR = 2000, 12
"""States of the particle entropy, and which neighbour's distance is taken."""
SKILLS = 16
"""Skills over which the spread of actions is taken."""


def coverage(points: Tensor, low: Sequence[float], high: Sequence[float], cells: int) -> float:
    """Share of a box's cells^k cells that points (n, k) lie in; points outside of it do not count."""
    size = len(low)
    edges = np.asarray(low), np.asarray(high)
    places = (points.double().numpy() - edges[0]) / (edges[1] - edges[0])
    inside = places[((places >= 0) & (places <= 1)).all(1)]
    index = np.minimum((inside * cells).astype(np.int64), cells - 1)
    return len(np.unique(index, axis=0)) / cells**size


def visited(bundle: Bundle, replay: ReplayBuffer, channel: str) -> Tensor:
    """All values (n, k) of an observation channel in a replay of a bundle's world, in the order they were added."""
    states = CarriedStates.from_replay(replay, len(replay), size=restore_contract(bundle).observation_size)
    return states.next_observation[:, goal_columns(restore_contract(bundle), channel)]


def particle_entropy(bundle: Bundle, replay: ReplayBuffer) -> float:
    """`log_spread` of 2000 states of the replay."""
    return log_spread(CarriedStates.from_replay(replay, PARTICLES, size=restore_contract(bundle).observation_size).next_observation)


def log_spread(states: Tensor) -> float:
    """Mean log distance of states (n, D) to their 12th neighbour: up to constants their entropy. Compare sets of one size only."""
    distances = torch.cdist(states, states).topk(min(NEIGHBOUR, len(states) - 1) + 1, largest=False).values[:, -1]
    return float(distances.clamp(min=1e-6).log().mean())


def action_spread(bundle: Bundle, seed: int) -> float:
    """Mean deviation of an action's numbers over skills, at carried states: 0 where the policy ignores z."""
    policy = load_policy(bundle)
    assert isinstance(policy, DVFBPolicy)
    states = CarriedStates.from_bundle(bundle).observation[:256]
    skills = [blind_skill(bundle, derive_seed(seed, "spread", k)) for k in range(SKILLS)]
    with torch.no_grad():
        actions = torch.stack([policy.actor(states, skill.expand(len(states), -1)) for skill in skills])
    return float(actions.std(0).mean())
