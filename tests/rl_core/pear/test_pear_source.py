"""Collection, relabelling on time, what each level is given, and resume."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

from rl_core.bundle import bundle_sha256
from rl_core.data.episode import DatasetError
from rl_core.pear.collection import collect, decisions_of
from rl_core.pear.hindsight import higher_batch
from rl_core.pear.learner import PEARLearner
from rl_core.pear.relabeling import fixed_ends
from rl_core.pear.source import PEARSource
from rl_core.pear.training import train_in_goal_world
from rl_core.pear.worlds import GoalWorldEnv
from rl_core.training.config import ConfigError, TrainerConfig
from tests.rl_core.pear.point_world import PointWorlds, tiny
from tests.rl_core.pear.test_pear_learner import make

POINT = "armstack-test/PointGoal-v0"
gymnasium.register(POINT, entry_point=lambda **kwargs: GoalWorldEnv(partial(PointWorlds, **kwargs)))


@pytest.mark.parametrize(("every", "due"), [(3, [0, 3, 6]), (0, [0]), (1, [0, 1, 2, 3, 4, 5, 6])])
def test_demonstrations_are_relabelled_only_at_multiples_of_p(every: int, due: list[int], tmp_path: Path) -> None:
    learner, source = make(tmp_path, rebuild_every=every, updates_per_episode=2)
    seen, last = [], source.experts["high"].replay
    for batch in range(14):
        source.next_batch()
        if source.experts["high"].replay is not last:
            assert batch % 2 == 0  # before the episode's batches, not between them
            seen.append(batch // 2)
            last = source.experts["high"].replay
    assert seen == due


def test_the_first_relabelling_by_an_untrained_critic_gives_windows_of_c(tmp_path: Path) -> None:
    learner, source = make(tmp_path, primitive_steps=4, gamma=0.99)
    source.next_batch()
    assert source.ends == fixed_ends(source.demonstrations, 4)


def test_a_lower_level_that_reaches_nothing_is_given_segments_of_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, source = make(tmp_path, rebuild_every=1, updates_per_episode=1)
    first = source.next_batch()["figures"]["curriculum/segment_length"]

    def nothing_but_where_it_is(observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return np.where(np.isclose(observation[:, :2], goal).all(axis=1), 0.0, -99.0)

    monkeypatch.setattr(learner, "lower_value", nothing_but_where_it_is)
    second = source.next_batch()["figures"]["curriculum/segment_length"]
    assert first > 2.0 and second == 1.0


def test_batches_end_with_the_demonstrations_rows(tmp_path: Path) -> None:
    learner, source = make(tmp_path)
    batch = source.next_batch()
    for level in ("low", "high"):
        part = batch[level]
        assert part["expert"].tolist() == [0.0] * 48 + [1.0] * 16
        space = source.worlds.goal
        achieved, goal = part["next_observation"][:, 3:5].numpy(), part["next_observation"][:, 5:].numpy()
        # The reward of every row is that of its own goal, relabelled or not, replayed or demonstrated.
        assert np.array_equal(part["reward"].numpy(), space.reward(achieved, goal))
        assert torch.equal(part["observation"][:, 5:], part["next_observation"][:, 5:])
    expert = batch["high"][48:]
    subgoal = source.worlds.goal.decode(expert["action"])
    assert torch.allclose(subgoal, expert["next_observation"][:, 3:5], atol=1e-5)


def test_variants_without_demonstrations_fill_their_batches_alone(tmp_path: Path) -> None:
    learner, source = make(tmp_path, variant="hier")
    batch = source.next_batch()
    assert batch["low"]["expert"].sum() == 0 and batch["high"].batch_size == torch.Size([64])


def test_a_goal_of_the_lower_level_holds_for_its_c_steps_alone(tmp_path: Path) -> None:
    learner, source = make(tmp_path, variant="hier")
    source.next_batch()
    low, high = source.replays["low"], source.replays["high"]
    assert len(low) == 3 and len(high) == 1  # an episode a subgoal
    episodes = collect(PointWorlds(2), learner.explore(), [5, 6])
    segments = list(episodes.lower(1))
    assert [len(segment["action"]) for segment in segments] == [4, 4, 4]
    for decision, segment in enumerate(segments):
        assert np.allclose(segment["observation"][:, 5:], episodes.subgoals[decision, 1])
        assert np.array_equal(segment["observation"][:, :3], episodes.observation[4 * decision : 4 * decision + 5, 1])
    higher = episodes.higher(1)
    assert np.array_equal(higher["observation"][:, :3], episodes.observation[::4, 1])
    assert np.array_equal(higher["reward"], episodes.space.reward(episodes.achieved[4::4, 1], episodes.goal[1]))
    assert np.allclose(episodes.space.decode(higher["action"]), episodes.subgoals[:, 1])


def test_episodes_of_a_row_do_not_depend_on_the_other_rows(tmp_path: Path) -> None:
    learner, _ = make(tmp_path, variant="hier")
    both, alone = collect(PointWorlds(2), learner.explore(), [5, 6]), collect(PointWorlds(1), learner.explore(), [6])
    assert np.allclose(both.observation[:, 1], alone.observation[:, 0], atol=1e-6)
    assert not np.allclose(both.actions[:, 0], both.actions[:, 1])


def test_a_missed_subgoal_costs_the_higher_level(tmp_path: Path) -> None:
    config = tiny(variant="hier_neg", miss_penalty=0.5)
    batch = missed_and_hit()
    wanted = batch["reward"] - torch.tensor([0.5, 0.0, 0.5, 0.0])
    assert torch.equal(higher_batch(batch, PointWorlds.goal, config)["reward"], wanted)


def test_hindsight_actions_and_tested_subgoals() -> None:
    """Rows: missed, hit, missed under test, hit under test."""
    config = tiny(variant="hac", primitive_steps=4)
    batch = missed_and_hit()
    before, reward = batch["action"].clone(), batch["reward"].clone()
    result = higher_batch(batch, PointWorlds.goal, config)
    achieved = PointWorlds.goal.encode(batch["next_observation"][:, 3:5])
    assert torch.equal(result["action"][2], before[2]) and torch.equal(result["action"][[0, 1, 3]], achieved[[0, 1, 3]])
    assert result["reward"].tolist() == [reward[0], reward[1], -4.0, reward[3]]
    assert result["terminal"].tolist() == [0.0, 0.0, 1.0, 0.0]


def missed_and_hit():
    from tensordict import TensorDict

    achieved = torch.tensor([[0.6, 0.3]] * 4)
    action = PointWorlds.goal.encode(achieved + torch.tensor([[0.5], [0.05], [0.5], [0.05]]))
    following = torch.cat([achieved, torch.ones(4, 1), achieved, torch.ones(4, 2)], dim=1)
    values = {
        "observation": torch.zeros_like(following),
        "action": action,
        "reward": torch.tensor([-1.0, -1.0, 0.0, 0.0]),
        "terminal": torch.zeros(4),
        "next_observation": following,
        "tested": torch.tensor([0.0, 0.0, 1.0, 1.0]),
    }
    return TensorDict(values, batch_size=[4])


def test_every_third_episode_of_hac_tests_its_subgoals(tmp_path: Path) -> None:
    learner, source = make(tmp_path, variant="hac", updates_per_episode=1, subgoal_test_every=3)
    for _ in range(6):
        source.next_batch()
    high = source.replays["high"]
    first, steps, _ = high.spans()
    tested = high.gather(first)["tested"].tolist()
    assert tested == [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]


def test_cloning_alone_steps_no_world(tmp_path: Path) -> None:
    learner, source = make(tmp_path, variant="bc")
    source.worlds.reset = None  # type: ignore[assignment]
    batch = source.next_batch()
    assert batch["low"]["expert"].tolist() == [1.0] * 64


def test_decisions_fit_into_the_horizon() -> None:
    assert decisions_of(tiny(primitive_steps=4), 14) == (3, 4)
    assert decisions_of(tiny(variant="flat"), 14) == (1, 14)
    with pytest.raises(ConfigError, match=r"primitive_steps: 20, valid: 1 .. the world's horizon \(14\)"):
        decisions_of(tiny(primitive_steps=20), 14)


def test_missing_demonstrations_are_named(tmp_path: Path) -> None:
    worlds = PointWorlds(1)
    learner = PEARLearner(tiny(), worlds.contract, worlds.goal)
    with pytest.raises(DatasetError, match="demonstrations: none, valid: at least one"):
        PEARSource(learner, worlds, [], tmp_path, seed=0)


def test_statistics_count_demonstrations_and_what_was_seen(tmp_path: Path) -> None:
    learner, source = make(tmp_path)
    shown = [d.observation for d in source.demonstrations]
    assert learner.observations.count == sum(map(len, shown))
    assert np.allclose(learner.observations.mean, np.concatenate(shown).mean(axis=0), atol=1e-6)
    source.next_batch()
    assert learner.observations.count == sum(map(len, shown)) + 13
    scaled = learner.scaling(torch.from_numpy(np.concatenate(shown)), torch.zeros(learner.observations.count - 13, 2))
    assert scaled.abs().max() <= 5.0 and torch.isfinite(scaled).all()


def run(folder: Path, updates: int, *, resume: bool = False, **changes: object):
    values = {"rebuild_every": 2, "replay_size": 60, "updates_per_episode": 2, **changes}
    trainer = TrainerConfig(updates=updates, log_every=2, checkpoint_every=4, seed=3)
    return train_in_goal_world(
        tiny(**values), trainer, folder, world=POINT, world_kwargs={}, seeds=[1, 2, 3], description={"method": "pear"}, resume=resume
    )


@pytest.mark.parametrize("changes", [{"imitation": "irl", "rows": 2}, {"variant": "hac"}])
def test_a_resumed_run_ends_with_the_same_bits(changes: dict[str, object], tmp_path: Path) -> None:
    """The replays are so small that they have wrapped around when the run is cut."""
    whole = run(tmp_path / "whole", 24, **changes)
    run(tmp_path / "cut", 12, **changes)
    cut = run(tmp_path / "cut", 24, resume=True, **changes)
    assert whole.finished and cut.finished and whole.bundle and cut.bundle
    assert bundle_sha256(whole.bundle) == bundle_sha256(cut.bundle)


def test_other_settings_give_other_runs_with_figures_of_the_curriculum(tmp_path: Path) -> None:
    one, two = run(tmp_path / "one", 4), run(tmp_path / "two", 4, gamma=0.9)
    assert bundle_sha256(one.bundle) != bundle_sha256(two.bundle)
    assert {"eval/success_rate", "eval/hit_rate", "curriculum/segment_length"} <= one.metrics.keys()


def test_a_checkpoint_in_the_middle_of_an_episode_is_refused(tmp_path: Path) -> None:
    learner, source = make(tmp_path)
    source.next_batch()
    with pytest.raises(RuntimeError, match="after the last batch of an episode"):
        source.state_dict()
