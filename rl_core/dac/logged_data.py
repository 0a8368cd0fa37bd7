"""Datasets in the manner of D4RL for worlds whose files cannot be fetched: logged from a short SAC run.

Levels: `random`; `medium`, SAC when it first reached a third of its final score; `medium-replay`, all that SAC collected until then;
`expert`, SAC at the end; `medium-expert`, half of each. Policies are logged with their exploration, as D4RL did (arXiv 2004.07219,
section 5).
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler
from rl_core.methods import get_method, make_learner
from rl_core.policy import Policy
from rl_core.training.evaluation import evaluate
from rl_core.training.rollout import rollout
from rl_core.training.seeding import derive_seed, seed_everything
from rl_core.training.sources import OnlineSource, RandomPolicy, transition_columns
from rl_core.training.worlds import contract_of, make_world

MEDIUM_SHARE = 1 / 3
LEVELS = ("random", "medium", "medium-replay", "expert", "medium-expert")


class EpisodeRecorder(gymnasium.Wrapper):
    """Appends every finished episode to `episodes`."""

    def __init__(self, env: gymnasium.Env, episodes: list[Episode]) -> None:
        super().__init__(env)
        self.episodes = episodes
        self._seed: int | None = None
        self._observations: list[Any] = []
        self._actions: list[NDArray[np.float32]] = []
        self._rewards: list[float] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seed, self._observations, self._actions, self._rewards = seed, [observation], [], []
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observations.append(observation)
        self._actions.append(np.asarray(action, np.float32))
        self._rewards.append(float(reward))
        if terminated or truncated:
            self.episodes.append(self._episode(terminated, truncated))
        return observation, reward, terminated, truncated, info

    def _episode(self, terminated: bool, truncated: bool) -> Episode:
        contract: RobotContract = contract_of(self.env)
        return Episode(
            observations={c.name: np.stack([o[c.name] for o in self._observations]).astype(np.float32) for c in contract.observation},
            actions=np.stack(self._actions),
            rewards=np.asarray(self._rewards, np.float32),
            terminal=bool(terminated),
            truncated=bool(truncated and not terminated),
            stamps_ns=np.arange(len(self._observations), dtype=np.int64) * round(contract.action.period_s * 1e9),
            meta={"seed": self._seed},
        )


@dataclass(frozen=True, kw_only=True)
class LoggedData:
    """The datasets of one world on disk.

    Attributes:
        folder: holds `LEVEL.hdf5` and `returns.json`.
        returns: mean return of the random policy, of SAC at the medium point and at the end (without exploration), and how many
            updates SAC made until each.
    """

    folder: Path
    returns: Mapping[str, float]

    def dataset(self, level: str) -> Dataset:
        """The episodes of a level of `LEVELS`."""
        return read_dataset(self.folder / f"{level}.hdf5")

    def score(self, mean_return: float) -> float:
        """100 (R - R_random) / (R_expert - R_random)."""
        return 100.0 * (mean_return - self.returns["random"]) / (self.returns["expert"] - self.returns["random"])


def logged_data(
    world: str, folder: Path, *, updates: int, overrides: Mapping[str, Any], probe_every: int, episodes: int, seed: int
) -> LoggedData:
    """The datasets of `world` in `folder`; SAC is trained and logged where they do not exist yet.

    Args:
        updates: SAC's gradient steps.
        overrides: fields of SAC's configuration.
        probe_every: updates between two judgements of SAC, of which the medium policy is chosen.
        episodes: logged of each policy.
        seed: decides everything.
    """
    file = folder / "returns.json"
    if not file.is_file():
        part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _log(world, part, updates, overrides, probe_every, episodes, seed)
        try:
            os.rename(part, folder)
        except OSError:  # another process was first; equal seeds give equal data
            shutil.rmtree(part)
    return LoggedData(folder=folder, returns=json.loads(file.read_text()))


@dataclass(frozen=True, kw_only=True)
class _Probe:
    step: int
    mean_return: float
    weights: dict[str, Any]
    episodes: int


def _log(world: str, folder: Path, updates: int, overrides: Mapping[str, Any], probe_every: int, episodes: int, seed: int) -> None:
    seed_everything(seed)
    contract = contract_of(make_world(world))
    learner: Any = make_learner("sac", get_method("sac").config_class().override(**overrides), contract=contract, seed=seed)
    config = learner.config
    collected: list[Episode] = []
    replay = ReplayBuffer(max(updates + config.random_steps, 1), transition_columns(contract))
    source = OnlineSource(
        lambda: EpisodeRecorder(make_world(world), collected),
        learner.explore,
        contract,
        UniformSampler(replay, batch_size=config.batch_size, seed=derive_seed(seed, "sampler")),
        replay,
        folder,
        seed=seed,
        random_steps=config.random_steps,
        steps_per_batch=config.steps_per_update,
    )
    judge = partial(_mean_return, world, first_seed=800_000, episodes=10)
    random_return = judge(RandomPolicy(contract))
    probes: list[_Probe] = []
    for step in range(1, updates + 1):
        learner.update(source.next_batch())
        if step % probe_every == 0:
            probes.append(
                _Probe(step=step, mean_return=judge(learner.policy()), weights=copy.deepcopy(learner.state_dict()), episodes=len(collected))
            )
    source.close()
    expert = probes[-1]
    wanted = random_return + MEDIUM_SHARE * (expert.mean_return - random_return)
    medium = next((probe for probe in probes if probe.mean_return >= wanted), expert)
    levels = {"random": _record(world, RandomPolicy(contract), episodes, 700_000), "medium-replay": collected[: medium.episodes]}
    for index, (name, probe) in enumerate((("medium", medium), ("expert", expert))):
        learner.load_state_dict(probe.weights)
        levels[name] = _record(world, learner.explore(), episodes, 710_000 + 10_000 * index)
    levels["medium-expert"] = levels["medium"][: episodes // 2] + levels["expert"][: episodes // 2]
    for name in LEVELS:
        write_dataset(Dataset(contract=contract, episodes=tuple(levels[name]), source=f"{world} {name}"), folder / f"{name}.hdf5")
    returns = {
        "random": _mean_return(world, RandomPolicy(contract), first_seed=810_000, episodes=50),
        "medium": medium.mean_return,
        "expert": _mean_return(world, learner.policy(), first_seed=810_000, episodes=50),
        "medium_updates": medium.step,
        "expert_updates": expert.step,
    }
    (folder / "returns.json").write_text(json.dumps(returns, indent=1) + "\n")


def _mean_return(world: str, policy: Policy, *, first_seed: int, episodes: int) -> float:
    seeds = range(first_seed, first_seed + episodes)
    return evaluate(policy, lambda: make_world(world), seeds, n_envs=min(10, episodes)).return_mean


def _record(world: str, policy: Policy, episodes: int, first_seed: int) -> list[Episode]:
    recorded: list[Episode] = []
    envs = [EpisodeRecorder(make_world(world), recorded) for _ in range(10)]
    for _ in rollout(policy, envs, range(first_seed, first_seed + episodes)):
        pass
    return sorted(recorded, key=lambda episode: int(episode.meta["seed"]))
