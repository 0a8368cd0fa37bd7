"""The hierarchy at run time: the higher level asks for a subgoal every c steps, the lower one acts towards it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import Channel, RobotContract
from rl_core.models.squashed_gaussian import SquashedGaussian
from rl_core.pear.config import Level, PEARConfig
from rl_core.pear.networks import make_actor
from rl_core.pear.statistics import InputScaling
from rl_core.pear.worlds import GoalSpace, Primitives
from rl_core.policy import ActionChunk, PolicyState, flatten_observation, seeded_state
from rl_core.restore import restore_contract, restore_normalizer, restore_weights


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """How one level explores: a sample of its actor plus Gaussian noise, or with some probability a uniformly random action.

    Attributes:
        noise: standard deviation.
        random_share: probability of the random action.
    """

    noise: float
    random_share: float


class HierarchicalPolicy:
    """Implements `Policy`. State tensors a row: `decision` (n, D) of the higher level in [-1, 1], and its `age` (n,) in steps.

    Without a higher actor it is flat: the subgoal is the episode's goal. Without a lower one, scripted primitives act.

    Args:
        config: hyperparameters.
        contract: observation channels with `desired_goal` as the last one, and action.
        goal: the space of goals and subgoals.
        actors: of the levels that are learned.
        scaling: how the networks see observations and goals.
        explore: how each level explores; a level that is not named acts deterministically.
        primitives: what acts where there is no lower actor.
    """

    def __init__(
        self,
        config: PEARConfig,
        contract: RobotContract,
        goal: GoalSpace,
        actors: Mapping[Level, SquashedGaussian],
        scaling: InputScaling,
        *,
        explore: Mapping[Level, Exploration] | None = None,
        primitives: Primitives | None = None,
    ) -> None:
        self.config, self.contract, self.goal, self.scaling = config, contract, goal, scaling
        self.low, self.high = actors.get("low"), actors.get("high")
        self.explore = dict(explore or {})
        self.primitives = primitives
        self.decision_size = self.high.outputs if self.high is not None else 0

    @property
    def subgoal_channel(self) -> Channel:
        """What the numbers of `info["subgoal"]` are: those of the goal."""
        return self.contract.observation[-1]

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """No condition: the goal is an observation channel (see `rl_core.conditioned_policy` for one that is given from outside)."""
        return TensorDict({}, batch_size=[])

    def reset(self, seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset`; the first `act` decides."""
        tensors = {"decision": torch.zeros(len(seeds), self.decision_size), "age": torch.zeros(len(seeds), dtype=torch.int64)}
        return replace(seeded_state(seeds), tensors=tensors)

    def reset_rows(self, state: PolicyState, rows: Sequence[int], seeds: Sequence[int]) -> PolicyState:
        """See `Policy.reset_rows`."""
        fresh = self.reset(seeds)
        generators = list(state.generators)
        tensors = {name: values.clone() for name, values in state.tensors.items()}
        for index, row in enumerate(rows):
            generators[row] = fresh.generators[index]
            for name in tensors:
                tensors[name][row] = fresh.tensors[name][index]
        return PolicyState(generators=tuple(generators), tensors=tensors)

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; `info["subgoal"]` (n, G) is what the lower level acts towards, in the goal's units, and `info["age"]` (n,) for
        how many steps already."""
        flat = flatten_observation(self.contract, obs)
        split = flat.shape[-1] - self.goal.size
        values, state = self.step(flat[:, :split], flat[:, split:], state)
        info = {"subgoal": self.subgoal(state, flat[:, split:]), "age": state.tensors["age"] - 1}
        return ActionChunk(values=values.unsqueeze(1), period_s=self.contract.action.period_s, info=info), state

    def subgoal(self, state: PolicyState, goal: Tensor) -> Tensor:
        """(n, G) what the lower level acts towards: the decision's subgoal; `goal` itself where one of the two levels is not learned."""
        return self.goal.decode(state.tensors["decision"]) if self.high is not None and self.low is not None else goal

    @torch.no_grad()
    def step(self, observation: Tensor, goal: Tensor, state: PolicyState) -> tuple[Tensor, PolicyState]:
        """Observations (n, O) and goals (n, G) -> actions (n, A), and the state with the decisions they were made under."""
        decision, age = state.tensors["decision"], state.tensors["age"]
        if self.high is not None:
            age = age % self.config.primitive_steps
            if len(due := torch.nonzero(age == 0).flatten()):
                # Only the rows that decide draw, so that a row's numbers never depend on the others.
                deciding = tuple(state.generators[row] for row in due.tolist())
                decision = decision.clone()
                decision[due] = self._draw("high", self.high, self.scaling(observation[due], goal[due]), deciding)
        after = PolicyState(generators=state.generators, tensors={"decision": decision, "age": age + 1})
        if self.low is not None:
            inputs = self.scaling(observation, self.subgoal(after, goal))
            return self._draw("low", self.low, inputs, state.generators), after
        return self._scripted(observation, decision, age), after

    def _draw(self, level: Level, actor: SquashedGaussian, inputs: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
        """(n, outputs), on the CPU."""
        explore = self.explore.get(level)
        if explore is None:
            return actor.mode(inputs).cpu()
        size = actor.outputs
        normal = torch.stack([torch.randn(2 * size, generator=generator) for generator in generators])
        uniform = torch.stack([torch.rand(size + 1, generator=generator) for generator in generators])
        sampled = actor.sample(inputs, normal[:, :size].to(inputs.device))[0].cpu()
        noisy = (sampled + explore.noise * normal[:, size:]).clamp(-1.0, 1.0)
        return torch.where(uniform[:, :1] < explore.random_share, 2.0 * uniform[:, 1:] - 1.0, noisy)

    def _scripted(self, observation: Tensor, decision: Tensor, age: Tensor) -> Tensor:
        assert self.primitives is not None
        choices = decision_size(self.primitives) - self.primitives.arguments
        chosen = decision[:, :choices].argmax(dim=1) if choices else torch.zeros(len(decision), dtype=torch.int64)
        actions = self.primitives.act(observation.numpy(), chosen.numpy(), decision[:, choices:].numpy(), age.numpy())
        return torch.from_numpy(np.clip(actions, -1.0, 1.0).astype(np.float32))


def decision_size(primitives: Primitives) -> int:
    """Numbers in a decision among scripted primitives: a score each where there are several, and the argument."""
    return (len(primitives.names) if len(primitives.names) > 1 else 0) + primitives.arguments


def goal_arrays(goal: GoalSpace) -> dict[str, Tensor]:
    """What `policy_from_bundle` needs of the goal space."""
    arrays = {"centre": goal.centre, "half_width": goal.half_width, "threshold": np.float32(goal.threshold)}
    return {f"goal.{name}": torch.tensor(np.array(value)) for name, value in arrays.items()}


def policy_from_bundle(bundle: Bundle, device: str = "cpu", *, primitives: Primitives | None = None) -> HierarchicalPolicy:
    """The policy of a bundle that `PEARLearner.bundle` made: both levels, deterministic.

    Args:
        bundle: of method pear.
        device: torch device.
        primitives: the world's, for a bundle of the variant raps.

    Raises:
        BundleError: another method's, something missing, or raps without primitives.
    """
    if bundle.method != "pear":
        raise BundleError(f"bundle of method {bundle.method!r}, valid: pear")
    contract, config = restore_contract(bundle), PEARConfig.from_dict(bundle.config)
    names = ("centre", "half_width", "threshold")
    missing = [name for name in names if f"goal.{name}" not in bundle.arrays]
    if missing:
        raise BundleError(f"bundle of method 'pear': arrays {sorted(bundle.arrays)}, needed are {[f'goal.{name}' for name in names]}")
    centre, half_width, threshold = (bundle.arrays[f"goal.{name}"].numpy() for name in names)
    goal = GoalSpace(centre=centre, half_width=half_width, threshold=float(threshold))
    learned = config.switches.learned
    if "low" in learned:
        primitives = None
    elif primitives is None:
        raise BundleError("bundle of method 'pear', variant 'raps': its lower level is the world's scripted primitives; give `primitives`")
    outputs = {"low": contract.action.size, "high": decision_size(primitives) if primitives is not None else goal.size}
    actors = {}
    for level in learned:
        actor = make_actor(config, contract.observation_size, outputs[level])
        actors[level] = restore_weights(actor, bundle, device, prefix=f"{level}.")
    normalizer = restore_normalizer(bundle, needed=True)
    assert normalizer is not None
    statistics = normalizer.columns["observation"]
    clips = {"clip": config.observation_clip, "bound": config.normalized_clip}
    scaling = InputScaling(statistics.shift, statistics.scale, device=device, **clips)
    return HierarchicalPolicy(config, contract, goal, actors, scaling, primitives=primitives)
