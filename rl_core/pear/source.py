"""PEAR's source: relabels the demonstrations every p episodes, runs episodes, and mixes both into each level's batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from rl_core.data.episode import DatasetError
from rl_core.data.episode_replay import EpisodeReplay
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import HindsightSampler, UniformSampler
from rl_core.pear.collection import Episodes, collect, decisions_of
from rl_core.pear.config import Level, PEARConfig
from rl_core.pear.hindsight import higher_batch
from rl_core.pear.learner import PEARLearner
from rl_core.pear.relabeling import fixed_ends, goal_rows, higher_rows, mean_segment_length, segment_ends, threshold_of
from rl_core.pear.worlds import Array, Demonstration, GoalSpace, GoalWorlds
from rl_core.training.seeding import derive_seed

COLUMNS = ("observation", "action", "reward", "terminal", "next_observation")
RECENT = 100
"""Episodes that the figures of the collection are taken over."""


class PEARSource:
    """Implements `Source`. Before the first of each `rows * updates_per_episode` batches: relabel if due, then one episode a row.

    A batch holds for each learned level `low`, `high` the rows of a transition, `observation` = [observation, achieved, goal], with
    `expert` 1 in the demonstrations' rows, which are the last ones; and `figures` of the collection, for the log. Episode k resets its
    world with f(seed, k). A checkpoint is possible after the last batch of an episode; replays are saved as append-only shards.

    Args:
        learner: explores, values what is reachable, and is shown what was seen.
        worlds: of `config.rows` rows.
        demonstrations: see `GoalWorlds.demonstrations`; may be empty where the variant uses none.
        replay_dir: where the replays' shards go.
        seed: of the whole run.

    Raises:
        DatasetError: no demonstrations, or ones of other sizes than the world's.
    """

    def __init__(
        self, learner: PEARLearner, worlds: GoalWorlds, demonstrations: Sequence[Demonstration], replay_dir: str | Path, *, seed: int
    ) -> None:
        self.learner, self.worlds, self.seed = learner, worlds, seed
        self.config: PEARConfig = learner.config
        self.replay_dir = Path(replay_dir)
        self.demonstrations = list(demonstrations) if self.config.uses_demonstrations else []
        self.episodes = 0
        self.ends: list[list[int]] = []
        self._left = 0
        self._hits: deque[float] = deque(maxlen=RECENT)
        self._successes: deque[bool] = deque(maxlen=RECENT)
        if self.config.uses_demonstrations:
            require_demonstrations(self.demonstrations, worlds)
        self.replays, self.samplers = self._replays()
        self.experts = self._experts()

    def _replays(self) -> tuple[dict[Level, EpisodeReplay], dict[Level, HindsightSampler]]:
        config, worlds = self.config, self.worlds
        decisions, steps = decisions_of(config, worlds.horizon)
        width = self.learner.contract.observation_size + worlds.goal.size
        replays, samplers = {}, {}
        if config.switches.reinforces:
            for level, part in self.learner.levels.items():
                columns = {"observation": width, "action": part.actor.outputs, "reward": 1}
                longest = steps if level == "low" else decisions
                further = {"tested": 0} if level == "high" else {}
                replays[level] = EpisodeReplay(max(config.replay_size, longest + 1), {**columns, **further})
                samplers[level] = hindsight_sampler(replays[level], worlds.goal, config, seed=derive_seed(self.seed, "sampler", level))
        return replays, samplers

    def _experts(self) -> dict[Level, HindsightSampler | UniformSampler]:
        if not self.demonstrations:
            return {}
        config, demonstrations = self.config, self.demonstrations
        space = self.worlds.goal
        # The statistics begin with the demonstrations, and D_L never changes: all states, their goals of the future.
        goals = [demonstration.goal[None] for demonstration in demonstrations]
        achieved = [demonstration.achieved for demonstration in demonstrations]
        self.learner.observe(np.concatenate([d.observation for d in demonstrations]), np.concatenate([*achieved, *goals]))
        steps = sum(len(demonstration) + 1 for demonstration in demonstrations)
        columns = {"observation": goal_rows(demonstrations[0]).shape[1], "action": demonstrations[0].actions.shape[1], "reward": 1}
        lower = EpisodeReplay(steps + 1, columns)
        for demonstration in demonstrations:
            reward = space.reward(demonstration.achieved[1:], demonstration.goal)
            values = {"observation": goal_rows(demonstration), "action": demonstration.actions, "reward": reward}
            lower.add_episode(values, terminal=False)
        experts: dict[Level, HindsightSampler | UniformSampler] = {}
        experts["low"] = hindsight_sampler(lower, space, config, seed=derive_seed(self.seed, "expert", "low"))
        if "high" in config.switches.learned:
            ends = fixed_ends(demonstrations, config.primitive_steps)
            experts["high"] = UniformSampler(
                self._higher_demonstrations(ends), batch_size=config.expert_rows, seed=derive_seed(self.seed, "expert", "high")
            )
        return experts

    @property
    def at_checkpoint(self) -> bool:
        """All batches of the last episode were given."""
        return self._left == 0

    def next_batch(self) -> TensorDict:
        """See the class."""
        if self._left == 0:
            self._relabel_if_due()
            self._run_episodes()
            self._left = self.config.rows * self.config.updates_per_episode
        self._left -= 1
        figures = {name: torch.tensor(value) for name, value in self.figures().items()}
        levels = {level: self._batch(level) for level in self.learner.levels}
        return TensorDict({**levels, "figures": TensorDict(figures, batch_size=[])}, batch_size=[])

    def _batch(self, level: Level) -> TensorDict:
        config = self.config
        parts = []
        if config.switches.reinforces:
            own = self.samplers[level].sample(config.batch_size - (config.expert_rows if self.experts else 0))
            parts.append(higher_batch(own, self.worlds.goal, config) if level == "high" else own)
        if self.experts:
            parts.append(self.experts[level].sample(config.expert_rows if config.switches.reinforces else config.batch_size))
        values = {name: torch.cat([part[name] for part in parts]) for name in COLUMNS}
        values["expert"] = torch.zeros(len(values["reward"]))
        if self.experts:
            values["expert"][len(values["expert"]) - len(parts[-1]) :] = 1.0
        return TensorDict(values, batch_size=[len(values["reward"])])

    def _relabel_if_due(self) -> None:
        """Rebuilds D_g with what the lower level can do now, before episodes 0, p, 2 p, ..."""
        config = self.config
        due = self.episodes == 0 if config.rebuild_every == 0 else self.episodes % config.rebuild_every == 0
        if config.switches.relabeling == "none" or not due:
            return
        if config.switches.relabeling == "adaptive":
            reachable, ahead = threshold_of(config)
            values, cap = self.learner.lower_value, config.primitive_steps
            self._use_ends(segment_ends(self.demonstrations, values, reachable, cap=cap, ahead=ahead))
        else:
            self._use_ends(fixed_ends(self.demonstrations, config.primitive_steps))

    def _use_ends(self, ends: list[list[int]]) -> None:
        self.ends = ends
        sampler = self.experts["high"]
        assert isinstance(sampler, UniformSampler)
        sampler.replay = self._higher_demonstrations(ends)

    def _higher_demonstrations(self, ends: Sequence[Sequence[int]]) -> ReplayBuffer:
        every = self.config.switches.relabeling == "windows"
        rows = higher_rows(self.demonstrations, ends, self.worlds.goal, every_state=every)
        widths = {name: values.shape[1] if values.ndim > 1 else 0 for name, values in rows.items()}
        replay = ReplayBuffer(len(rows["reward"]), widths)
        replay.extend(rows)
        return replay

    def _run_episodes(self) -> None:
        config = self.config
        first, self.episodes = self.episodes, self.episodes + config.rows
        if not config.switches.reinforces:
            return
        tested = config.switches.hindsight_actions and first // config.rows % config.subgoal_test_every == config.subgoal_test_every - 1
        seeds = [derive_seed(self.seed, "episode", first + row) for row in range(config.rows)]
        episodes = collect(self.worlds, self.learner.explore(lower=not tested), seeds)
        for row in range(config.rows):
            self._store(episodes, row, tested)
        self.learner.observe(_flat(episodes.observation), _flat(episodes.achieved, episodes.subgoals, episodes.goal[None]))
        self._hits += episodes.hits.mean(axis=0).tolist()
        self._successes += episodes.success.tolist()

    def _store(self, episodes: Episodes, row: int, tested: bool) -> None:
        if "high" in self.replays:
            values = episodes.higher(row)
            marks = np.full(len(values["reward"]), float(tested), np.float32)
            self.replays["high"].add_episode({**values, "tested": marks}, terminal=False)
        if "low" in self.replays:
            for segment in episodes.lower(row):
                self.replays["low"].add_episode(segment, terminal=False)

    def figures(self) -> dict[str, float]:
        """Episodes so far; success and subgoals hit over the last 100 of them, exploring; mean length of the demonstrations' segments."""
        figures = {"collect/episodes": float(self.episodes)}
        if self._successes:
            figures["collect/success_rate"] = float(np.mean(self._successes))
        if self._hits and self.learner.config.switches.learned == ("low", "high"):
            figures["curriculum/hit_rate"] = float(np.mean(self._hits))
        if self.ends:
            figures["curriculum/segment_length"] = mean_segment_length(self.ends)
        return figures

    def state_dict(self) -> dict[str, Any]:
        """Counters, samplers, the demonstrations' segments and the figures; also brings the replays' shards up to date.

        Raises:
            RuntimeError: in the middle of an episode's batches.
        """
        if not self.at_checkpoint:
            raise RuntimeError("a PEARSource can be saved only after the last batch of an episode (at_checkpoint)")
        for level, replay in self.replays.items():
            replay.save(self.replay_dir / level)
        return {
            "episodes": self.episodes,
            "ends": [list(row) for row in self.ends],
            "hits": list(self._hits),
            "successes": list(self._successes),
            "replays": {level: replay.state_dict() for level, replay in self.replays.items()},
            "samplers": {level: sampler.state_dict() for level, sampler in self.samplers.items()},
            "experts": {level: sampler.state_dict() for level, sampler in self.experts.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit, and the replays as they were then."""
        self.episodes, self._left = int(state["episodes"]), 0
        self._hits, self._successes = deque(state["hits"], maxlen=RECENT), deque(state["successes"], maxlen=RECENT)
        if state["ends"]:
            self._use_ends([list(row) for row in state["ends"]])
        for level, sampler in self.samplers.items():
            self.replays[level] = EpisodeReplay.load(self.replay_dir / level, added=state["replays"][level]["added"])
            sampler.replay = self.replays[level]
            sampler.load_state_dict(state["samplers"][level])
        for level, expert in self.experts.items():
            expert.load_state_dict(state["experts"][level])


def hindsight_sampler(replay: EpisodeReplay, space: GoalSpace, config: PEARConfig, *, seed: int) -> HindsightSampler:
    """Hindsight goals for rows whose `observation` is [observation, achieved, goal]."""
    size = space.size

    def achieved(observation: Array) -> Array:
        return observation[:, -2 * size : -size]

    def with_goal(observation: Array, goal: Array) -> Array:
        return np.concatenate([observation[:, :-size], goal], axis=1)

    return HindsightSampler(
        replay,
        achieved=achieved,
        with_goal=with_goal,
        reward=space.reward,
        batch_size=config.batch_size,
        seed=seed,
        relabelled=config.relabelled_goals,
    )


def require_demonstrations(demonstrations: Sequence[Demonstration], worlds: GoalWorlds) -> None:
    """Checks that there are demonstrations and that their sizes are the world's.

    Raises:
        DatasetError: names the first one that does not fit.
    """
    if not demonstrations:
        raise DatasetError("demonstrations: none, valid: at least one (or a variant without: hier, hier_neg, hac, raps, flat)")
    wanted = (worlds.contract.observation_size - worlds.goal.size, worlds.goal.size, worlds.contract.action.size)
    for demonstration in demonstrations:
        found = (demonstration.observation.shape[1], demonstration.achieved.shape[1], demonstration.actions.shape[1])
        if found != wanted:
            raise DatasetError(f"demonstration of seed {demonstration.seed}: (O, G, A) = {found}, valid: the world's {wanted}")


def _flat(*parts: Array) -> Array:
    """(..., D) each -> (N, D)."""
    return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
