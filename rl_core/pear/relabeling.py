"""Adaptive relabelling: the lower level's critic says how far along a demonstration it can get, and that state becomes the subgoal.

From index t of a demonstration, the values q_j = min_h Q_h(s_t, phi(s_j), pi(s_t, phi(s_j))) of s_t itself and of all later states are
asked for; the subgoal is the last state before the first one whose value is below the threshold, at least t + 1 and at most t + c. Then t
moves there. All demonstrations are walked together, one batched forward pass a segment; nothing is rolled out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rl_core.pear.config import PEARConfig
from rl_core.pear.worlds import Array, Demonstration, GoalSpace

ValueFunction = Callable[[Array, Array], Array]
"""Observations (B, O) and goals (B, G) -> values (B,)."""

Reachable = Callable[[Array, Array, NDArray[np.bool_]], NDArray[np.bool_]]
"""Value of the state itself as a goal (B,), values of later states (B, J), which of them there are (B, J) -> within reach (B, J)."""


def within_steps(config: PEARConfig) -> Reachable:
    """Within reach: q >= q_0 - (1 - gamma^c) / (1 - gamma) - margin: a little below c steps of -1 before being there, which has value q_0.

    q_0 <= 0 is 0 in theory. SAC's critic charges what the policy lacks in entropy, on the way and at the goal, for ever, and a learned
    critic lags behind; both lower all values alike, so that without q_0 a good lower level would seem to reach nothing.
    """
    steps = (1.0 - config.gamma**config.primitive_steps) / (1.0 - config.gamma)
    return lambda here, values, there: values >= (np.minimum(here, 0.0) - steps - config.threshold_margin)[:, None]


def above_percent(percent: int) -> Reachable:
    """Within reach: int(100 (1 - q / q_min)) >= percent, q_min being the lowest value over the whole future.

    The anchor above is 0, the value of a goal that is reached already. With percent = 0 everything is within reach.
    """

    def reachable(here: Array, values: Array, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        below_zero = np.minimum(values, 0.0)
        lowest = np.where(there, below_zero, 0.0).min(axis=1, keepdims=True)
        share = np.divide(below_zero, lowest, out=np.zeros_like(below_zero), where=lowest < 0.0)
        return np.floor(100.0 * (1.0 - share)) >= percent

    return reachable


def threshold_of(config: PEARConfig) -> tuple[Reachable, int | None]:
    """The rule of a configuration, and how many later states it must see (None = all)."""
    if config.threshold == "absolute":
        return within_steps(config), config.primitive_steps
    return above_percent(config.threshold_percent), None


def segment_ends(
    demonstrations: Sequence[Demonstration], values: ValueFunction, reachable: Reachable, *, cap: int, ahead: int | None = None
) -> list[list[int]]:
    """For each demonstration the indices of its subgoals, rising, the last one its last state.

    Args:
        demonstrations: at least one.
        values: of the lower level.
        reachable: turns values into what is within reach.
        cap: c, longest segment.
        ahead: how many later states `reachable` must see, at least `cap`; None = all of them.
    """
    last = np.array([len(demonstration) for demonstration in demonstrations])
    ends: list[list[int]] = [[] for _ in demonstrations]
    now = np.zeros(len(demonstrations), np.int64)
    while len(active := np.flatnonzero(now < last)):
        window = int((last - now).max()) if ahead is None else min(ahead, int((last - now).max()))
        asked = now[active, None] + np.arange(window + 1)
        there = asked[:, 1:] <= last[active, None]
        asked = np.minimum(asked, last[active, None])
        states = np.stack([demonstrations[i].observation[now[i]] for i in active])
        goals = np.stack([demonstrations[i].achieved[index] for i, index in zip(active, asked, strict=True)])
        q = values(np.repeat(states, window + 1, axis=0), goals.reshape(-1, goals.shape[-1])).reshape(asked.shape)
        within = reachable(q[:, 0], q[:, 1:], there) & there
        # argmin finds the first False; a row without one reaches everything that is there.
        steps = np.where(within.all(axis=1), window, within.argmin(axis=1))
        now[active] += np.clip(steps, 1, np.minimum(cap, last[active] - now[active]))
        for i in active:
            ends[i].append(int(now[i]))
    return ends


def fixed_ends(demonstrations: Sequence[Demonstration], cap: int) -> list[list[int]]:
    """Segments of c steps, whatever the lower level can do; the last one may be shorter."""
    return [[*range(cap, len(demonstration), cap), len(demonstration)] for demonstration in demonstrations]


def mean_segment_length(ends: Sequence[Sequence[int]]) -> float:
    """Steps in a segment, over all demonstrations."""
    return sum(row[-1] for row in ends) / sum(len(row) for row in ends)


def higher_rows(
    demonstrations: Sequence[Demonstration], ends: Sequence[Sequence[int]], goal: GoalSpace, *, every_state: bool = False
) -> dict[str, Array]:
    """D_g as columns of transitions: from each state of a segment to the segment's end, which is the subgoal.

    An `observation` row is [observation, achieved, g*]; `action` the subgoal in [-1, 1]; the reward is that of the subgoal's own state.

    Args:
        demonstrations, ends: see `segment_ends`.
        goal: the goal space.
        every_state: relay policy learning: every later state of a state's segment is a subgoal of it, not the last one alone.
    """
    columns: dict[str, list[Array]] = {"observation": [], "action": [], "reward": [], "next_observation": []}
    for demonstration, row in zip(demonstrations, ends, strict=True):
        end = np.repeat(row, np.diff([0, *row]))
        begin = np.arange(len(demonstration))
        if every_state:
            repeats = end - begin
            begin = np.repeat(begin, repeats)
            end = begin + 1 + np.arange(len(begin)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        full = goal_rows(demonstration)
        columns["observation"].append(full[begin])
        columns["action"].append(goal.encode(demonstration.achieved[end]))
        columns["reward"].append(goal.reward(demonstration.achieved[end], demonstration.goal))
        columns["next_observation"].append(full[end])
    rows = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {**rows, "terminal": np.zeros(len(rows["reward"]), np.float32)}


def goal_rows(demonstration: Demonstration) -> Array:
    """(T + 1, O + 2 G): [observation, achieved, g*] of every state."""
    goals = np.broadcast_to(demonstration.goal, demonstration.achieved.shape)
    return np.concatenate([demonstration.observation, demonstration.achieved, goals], axis=1)
