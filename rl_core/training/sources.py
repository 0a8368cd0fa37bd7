"""Sources: the samplers of `rl_core.data` over a fixed dataset, and OnlineSource, which owns worlds and a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.episode_replay import EpisodeReplay
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import EpochSampler, RolloutSampler, Sampler, UniformSampler
from rl_core.data.samplers.windows import gather_windows
from rl_core.data.weights import transition_weights
from rl_core.policy import ActionChunk, Policy, PolicyState, StatelessPolicy
from rl_core.training.rollout import ChannelHistory, Step, rollout
from rl_core.training.seeding import derive_seed
from rl_core.training.worlds import MakeEnv


def transition_source(
    dataset: Dataset, contract: RobotContract, batch_size: int, *, seed: int, weights: Mapping[str, float] | None = None
) -> Sampler:
    """Transitions of `dataset`: in shuffled epochs without replacement, or by the weights of their episodes."""
    replay = ReplayBuffer.from_dataset(dataset, contract)
    sampler_seed = derive_seed(seed, "sampler")
    if weights is None:
        return EpochSampler(replay, batch_size=batch_size, seed=sampler_seed)
    return UniformSampler(replay, batch_size=batch_size, seed=sampler_seed, weights=transition_weights(dataset, weights))


class RolloutEpochs(Sampler):
    """Whole episodes, each once an epoch: all of them in their order where a batch holds them, otherwise shuffled anew each epoch.

    A batch has the keys of a transition with a time axis, (B, L, ...), `mask` (B, L), 1 inside the episode, and `length` (B,); shorter
    episodes repeat their last step.

    Args:
        replay: all data; it must not grow.
        batch_size: episodes in a batch, at most; the last batch of an epoch may be smaller.
        seed: seed of the generator.
    """

    def __init__(self, replay: EpisodeReplay, *, batch_size: int, seed: int) -> None:
        super().__init__(batch_size, seed)
        self.replay = replay
        self._order = np.arange(len(replay))
        self._position = 0

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`; at most as many episodes as are left in the epoch."""
        if self._position == 0 and count < len(self._order):
            self._order = self.rng.permutation(len(self._order))
        chosen = self._order[self._position : self._position + count]
        self._position = (self._position + len(chosen)) % len(self._order)
        with self.replay.lock:
            first, steps, _ = self.replay.spans()
            batch = gather_windows(self.replay, first[chosen], steps[chosen], np.zeros(len(chosen), np.int64), int(steps[chosen].max()))
        batch["length"] = torch.from_numpy(steps[chosen])
        return batch

    def state_dict(self) -> dict[str, Any]:
        """See `Sampler.state_dict`."""
        return {**super().state_dict(), "order": self._order.tolist(), "position": self._position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Sampler.load_state_dict`; raises DatasetError when there are other episodes than at the checkpoint."""
        if len(state["order"]) != len(self.replay):
            raise DatasetError(f"the checkpoint's epochs run over {len(state['order'])} episodes, this dataset has {len(self.replay)}")
        super().load_state_dict(state)
        self._order, self._position = np.array(state["order"]), int(state["position"])


def rollout_source(
    dataset: Dataset, contract: RobotContract, batch_size: int, *, seed: int, weights: Mapping[str, float] | None = None
) -> Sampler:
    """Whole episodes of `dataset`: in epochs without replacement, or by their weights."""
    replay = EpisodeReplay.from_dataset(dataset, contract, weights=weights)
    sampler_seed = derive_seed(seed, "sampler")
    if weights is None:
        return RolloutEpochs(replay, batch_size=batch_size, seed=sampler_seed)
    return RolloutSampler(replay, batch_size=batch_size, seed=sampler_seed)


def transition_columns(contract: RobotContract) -> dict[str, int]:
    """Columns of a replay of transitions."""
    observation, action = contract.observation_size, contract.action.size
    return {"observation": observation, "action": action, "reward": 1, "terminal": 1, "next_observation": observation}


class RandomPolicy(StatelessPolicy):
    """Actions uniform in [-1, 1], each row from its own generator."""

    def __init__(self, contract: RobotContract) -> None:
        self.contract = contract

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        size = self.contract.action.size
        values = torch.stack([torch.rand((1, size), generator=generator) for generator in state.generators]) * 2 - 1
        return ActionChunk(values=values, period_s=self.contract.action.period_s), state


class OnlineSource:
    """Steps worlds and fills a replay before each batch.

    Episodes run in rounds of `n_envs`, episode k resetting its world and its exploration with f(seed, k); a round ends when
    all of its episodes have. A checkpoint is possible only there (`at_checkpoint`): a world's state cannot be saved in
    general, but the next round depends on its number alone, so a resumed run goes on to the bit. The replay is saved as
    append-only shards beside the checkpoints.

    Args:
        make_env: makes one world.
        explore: gives the policy that collects the next round, e.g. `learner.policy`; it may share the learner's weights.
        contract: the policy's contract, which says what is stored.
        sampler: draws batches from `replay`.
        replay: has `transition_columns(contract)`.
        replay_dir: where its shards go.
        seed: seed of the whole run.
        n_envs: worlds stepped in turn.
        steps_per_batch: world steps before each batch.
        random_steps: world steps at the start in rounds with random actions, before the first batch.
        rewards: False stores 0 (reward-free pre-training).
    """

    def __init__(
        self,
        make_env: MakeEnv,
        explore: Callable[[], Policy],
        contract: RobotContract,
        sampler: Sampler,
        replay: ReplayBuffer,
        replay_dir: str | Path,
        *,
        seed: int,
        n_envs: int = 1,
        steps_per_batch: int = 1,
        random_steps: int = 1_000,
        rewards: bool = True,
    ) -> None:
        if list(replay.columns.widths) != list(transition_columns(contract)):
            raise DatasetError(f"replay has columns {list(replay.columns.widths)}, valid: {list(transition_columns(contract))}")
        self.envs = [make_env() for _ in range(n_envs)]
        self.explore, self.contract, self.sampler, self.replay = explore, contract, sampler, replay
        self.replay_dir = Path(replay_dir)
        self.seed, self.steps_per_batch, self.random_steps, self.rewards = seed, steps_per_batch, random_steps, rewards
        self.episodes = 0
        self._owed = 0
        self._round: Iterator[Step] | None = None
        self._running = 0
        self._histories = [ChannelHistory(contract) for _ in self.envs]
        self._fresh = [True] * n_envs

    @property
    def at_checkpoint(self) -> bool:
        """Between two rounds."""
        return self._round is None

    def next_batch(self) -> TensorDict:
        """Steps the worlds `steps_per_batch` times and draws a batch.

        At the end of a round the rest of the steps is left to the next call, so that there is a moment for a checkpoint.
        """
        while self.replay.added < self.random_steps:
            self._step()
        self._owed += self.steps_per_batch
        while self._owed > 0:
            self._step()
            self._owed -= 1
            if self._round is None and self._owed < self.steps_per_batch:
                break
        return self.sampler.next_batch()

    def _step(self) -> None:
        if self._round is None:
            seeds = [derive_seed(self.seed, "episode", self.episodes + i) for i in range(len(self.envs))]
            policy = RandomPolicy(self.contract) if self.replay.added < self.random_steps else self.explore()
            self._round = rollout(policy, self.envs, seeds)
            self._running = len(self.envs)
            self._fresh = [True] * len(self.envs)
        step = next(self._round)
        history = self._histories[step.row]
        if self._fresh[step.row]:
            history.start(step.before)
        before = history.flat()
        history.push(step.observation)
        self.replay.add(
            observation=before,
            action=np.asarray(step.info.get("action_applied", step.action), np.float32),
            reward=step.reward if self.rewards else 0.0,
            terminal=float(step.terminated),
            next_observation=history.flat(),
        )
        self._fresh[step.row] = step.done
        if step.done:
            self.episodes += 1
            self._running -= 1
            if self._running == 0:
                self._round = None

    def state_dict(self) -> dict[str, Any]:
        """Counters and sampler; also brings the replay's shards on disk up to date.

        Raises:
            RuntimeError: in the middle of a round.
        """
        if not self.at_checkpoint:
            raise RuntimeError("an OnlineSource can be saved only between rounds (at_checkpoint)")
        self.replay.save(self.replay_dir)
        return {"episodes": self.episodes, "owed": self._owed, "replay": self.replay.state_dict(), "sampler": self.sampler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value and the replay as it was then."""
        saved = ReplayBuffer.load(self.replay_dir, added=state["replay"]["added"])
        if saved.rows.shape != self.replay.rows.shape:
            raise DatasetError(f"{self.replay_dir}: replay of shape {saved.rows.shape}, this run's is {self.replay.rows.shape}")
        self.replay.rows[:] = saved.rows
        self.replay.added = saved.added
        self.sampler.load_state_dict(state["sampler"])
        self.episodes, self._owed, self._round = state["episodes"], state["owed"], None

    def close(self) -> None:
        """Closes the worlds."""
        for env in self.envs:
            env.close()
