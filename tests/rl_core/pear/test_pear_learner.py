"""Both levels' updates, and every variant."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rl_core.errors import ArmstackError
from rl_core.pear.config import VARIANTS, PEARConfig
from rl_core.pear.learner import PEARLearner
from rl_core.pear.level import LevelLearner, Rows, value_bounds
from rl_core.pear.source import PEARSource
from rl_core.training.config import ConfigError
from rl_core.training.protocols import Learner, Source
from tests.rl_core.pear.point_world import PointWorlds, ScriptedPointWorlds, tiny

SIZES = {"inputs": 5, "action": 2}


def rows(count: int = 12, expert: int = 4, seed: int = 0) -> Rows:
    draw = torch.Generator().manual_seed(seed)
    state, following = torch.randn(count, 5, generator=draw), torch.randn(count, 5, generator=draw)
    action = torch.rand(count, 2, generator=draw) * 2 - 1
    reward = -torch.ones(count)
    return Rows(state=state, action=action, reward=reward, terminal=torch.zeros(count), next_state=following, expert=expert)


def make(folder: Path, worlds_class: type[PointWorlds] = ScriptedPointWorlds, **changes: object) -> tuple[PEARLearner, PEARSource]:
    config = tiny(**changes)
    worlds = worlds_class(config.rows)
    learner = PEARLearner(config, worlds.contract, worlds.goal, primitives=worlds.primitives)
    demonstrations = worlds.demonstrations(range(config.demonstrations)) if config.uses_demonstrations else []
    return learner, PEARSource(learner, worlds, demonstrations, folder, seed=0)


def weights(learner: PEARLearner) -> dict[str, torch.Tensor]:
    parts = {level: part.actor.state_dict() | part.critic.state_dict() for level, part in learner.levels.items()}
    return {f"{level}.{name}": value.clone() for level, part in parts.items() for name, value in part.items()}


@pytest.mark.parametrize("variant", [*VARIANTS, "pear, bc", "rpl, bc", "pear, normalized", "pear, margin at both levels"])
def test_every_variant_learns_from_its_own_episodes(variant: str, tmp_path: Path) -> None:
    name, _, further = variant.partition(", ")
    more = {"bc": {"imitation": "bc"}, "normalized": {"threshold": "normalized"}, "margin at both levels": {"margin_high": 1e-3}, "": {}}
    learner, source = make(tmp_path, variant=name, **more[further])
    assert isinstance(learner, Learner) and isinstance(source, Source)
    before = weights(learner)
    for _ in range(3):
        metrics = learner.update(source.next_batch())
        assert all(torch.isfinite(torch.as_tensor(value)) for value in metrics.values())
    after = weights(learner)
    changed = {key for key in before if not torch.equal(before[key], after[key])}
    switches = VARIANTS[name]
    assert {key.split(".")[0] for key in changed} == set(switches.learned)
    expected = {f"loss/actor_{level}" for level in switches.learned}
    expected |= {f"loss/critic_{level}" for level in switches.learned if switches.reinforces}
    if switches.imitates:
        term = "irl" if switches.reinforces and further != "bc" else "bc"
        expected |= {f"{group}_{level}" for group in (f"loss/{term}", "bound/divergence", "bound/factor") for level in switches.learned}
    if switches.relabeling != "none":
        expected.add("curriculum/segment_length")
    if switches.reinforces and len(switches.learned) == 2:
        expected.add("curriculum/hit_rate")
    assert expected <= metrics.keys()
    assert ("curriculum/segment_length" in metrics) == (switches.relabeling != "none")
    assert any(key.startswith("loss/discriminator") for key in metrics) == ("loss/irl_low" in expected or switches.discriminator_reward)


@pytest.mark.parametrize("scale", [1e3, -1e3])
def test_targets_of_a_diverged_critic_stay_among_the_values_there_can_be(scale: float) -> None:
    config = tiny(gamma=0.9)
    level = LevelLearner(config, "low", **SIZES)
    with torch.no_grad():
        level.critic_target.net.biases[-1].fill_(scale)
    targets = level.critic_targets(rows())
    assert targets.min() >= -10.0 and targets.max() <= 0.0
    assert torch.allclose(targets, torch.full((12,), 0.0 if scale > 0 else -10.0))


def test_targets_are_the_soft_bellman_backup() -> None:
    config = tiny(gamma=0.9, entropy=0.2)
    level = LevelLearner(config, "low", **SIZES)
    batch = rows()
    state = level.generator.get_state()
    targets = level.critic_targets(batch)
    level.generator.set_state(state)
    noise = torch.randn(12, 2, generator=level.generator)
    with torch.no_grad():
        action, log_prob = level.actor.sample(batch.next_state, noise)
        value = level.critic_target(batch.next_state, action).min(0).values - 0.2 * log_prob
    assert torch.allclose(targets, (-1.0 + 0.9 * value).clamp(-10.0, 0.0))
    assert ((targets > -10.0) & (targets < 0.0)).any()


def test_misses_widen_the_values_of_the_higher_level_alone() -> None:
    config = tiny(variant="hier_neg", gamma=0.9, miss_penalty=2.0)
    assert value_bounds(config, "high") == pytest.approx((-30.0, 0.0))
    assert value_bounds(config, "low") == pytest.approx((-10.0, 0.0))


def test_cloning_reaches_the_actor_only_in_the_rows_that_the_q_filter_keeps() -> None:
    """A critic that prefers the demonstrated action where the first state number is positive, and the actor's elsewhere."""
    config = tiny(imitation="bc", il_weight=1.0)
    level = LevelLearner(config, "low", **SIZES)
    batch = rows()
    state, expert = batch.state[8:], batch.action[8:]

    def critic(state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        closeness = -(action - expert).square().sum(-1) * torch.sign(state[:, 0])
        return torch.stack([closeness, closeness])

    level.critic = critic  # type: ignore[assignment]
    loss, figures = level._imitation(batch)
    kept = state[:, 0] > 0
    assert 0 < int(kept.sum()) < 4
    assert float(figures["demos/kept"]) == pytest.approx(kept.float().mean())
    found = torch.autograd.grad(loss, list(level.actor.parameters()))
    wanted = torch.autograd.grad((level.actor.mode(state[kept]) - expert[kept]).square().sum(), list(level.actor.parameters()))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, wanted, strict=True))

    level.critic = lambda state, action: torch.zeros(2, len(state))  # type: ignore[assignment]
    loss, _ = level._imitation(batch)
    assert all((gradient == 0).all() for gradient in torch.autograd.grad(loss, list(level.actor.parameters())))


def test_without_the_filter_every_row_is_cloned() -> None:
    level = LevelLearner(tiny(imitation="bc", q_filter=False), "low", **SIZES)
    batch = rows()
    loss, _ = level._imitation(batch)
    assert torch.allclose(loss, (level.actor.mode(batch.state[8:]) - batch.action[8:]).square().sum())


def test_the_actor_ignores_demonstrations_without_imitation_weight() -> None:
    actors = []
    for action in (-1.0, 1.0):
        level = LevelLearner(tiny(imitation="bc", il_weight=0.0), "low", **SIZES)
        batch = rows()
        batch.action[8:] = action
        level._update_actor(batch)
        actors.append(torch.nn.utils.parameters_to_vector(level.actor.parameters()))
    assert torch.equal(*actors)


def test_the_margin_term_lowers_replayed_values_against_demonstrated_ones() -> None:
    gaps = []
    for weight in (0.0, 1.0):
        level = LevelLearner(tiny(margin_low=weight, critic_lr=1e-2), "low", **SIZES)
        batch = rows()
        for _ in range(20):
            level._update_critic(batch)
        with torch.no_grad():
            replay = level.critic(batch.state[:8], level.actor.mode(batch.state[:8])).mean()
            gaps.append(float(level.critic(batch.state[8:], batch.action[8:]).mean() - replay))
    assert gaps[1] > gaps[0] + 1.0


def test_an_adversary_learns_to_tell_and_the_actor_to_be_taken_for_the_demonstrator() -> None:
    level = LevelLearner(tiny(imitation="irl", rl_weight=0.0, il_weight=1.0, discriminator_lr=3e-3, actor_lr=1e-3), "low", **SIZES)
    batch = rows(count=40, expert=36)
    batch.action[4:] = 0.8
    before = (level.actor.mode(batch.state[4:]) - 0.8).abs().mean()
    for _ in range(150):
        level.update(batch)
    after = (level.actor.mode(batch.state[4:]) - 0.8).abs().mean()
    assert after < 0.5 * before


def test_discriminator_as_reward_tells_the_replay_from_the_demonstrations() -> None:
    level = LevelLearner(tiny(variant="discriminator_ac", discriminator_lr=1e-2), "low", **SIZES)
    batch = rows()
    for _ in range(100):
        level._update_discriminator(batch)
    with torch.no_grad():
        score = level.discriminator(batch.state, batch.action)
    assert score[8:].mean() > 0.5 and score[:8].mean() < -0.5
    # With a target critic of 0 the target is the discriminator's reward, clipped to what it was trained towards.
    with torch.no_grad():
        for parameter in level.critic_target.parameters():
            parameter.zero_()
    level.config = level.config.override(entropy=0.0)
    assert torch.allclose(level.critic_targets(batch), score.clamp(-1.0, 1.0))


def test_targets_move_once_an_episode_by_what_polyak_does_not_keep(tmp_path: Path) -> None:
    learner, source = make(tmp_path, variant="hier", updates_per_episode=3, polyak_kept=0.8)
    level = learner.levels["low"]
    start = [parameter.clone() for parameter in level.critic_target.parameters()]
    for _ in range(2):
        learner.update(source.next_batch())
        assert all(torch.equal(a, b) for a, b in zip(start, level.critic_target.parameters(), strict=True))
    learner.update(source.next_batch())
    for old, new, online in zip(start, level.critic_target.parameters(), level.critic.parameters(), strict=True):
        assert torch.allclose(new, 0.8 * old + 0.2 * online)
    assert not all(torch.equal(a, b) for a, b in zip(start, level.critic_target.parameters(), strict=True))


def test_the_value_asked_for_relabelling_is_the_lower_of_both_critics_at_the_deterministic_action(tmp_path: Path) -> None:
    learner, source = make(tmp_path)
    learner.update(source.next_batch())
    worlds = PointWorlds(6)
    seen = worlds.reset(range(6))
    observation, goal = torch.from_numpy(seen["observation"]), torch.from_numpy(seen["desired_goal"])
    found = learner.lower_value(seen["observation"], seen["desired_goal"])
    level = learner.levels["low"]
    state = learner.scaling(observation, goal)
    with torch.no_grad():
        both = level.critic(state, torch.tanh(level.actor(state)[0]))
    assert torch.allclose(torch.from_numpy(found), torch.minimum(both[0], both[1]))
    assert not torch.allclose(both[0], both[1])
    assert (found == learner.lower_value(seen["observation"], seen["desired_goal"])).all()  # nothing is drawn


def test_scripted_primitives_are_asked_for_by_name() -> None:
    with pytest.raises(ArmstackError, match="variant 'raps' needs a world with scripted primitives"):
        PEARLearner(tiny(variant="raps"), PointWorlds.contract, PointWorlds.goal)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "hierarchical"}, "valid: 'pear'"),
        ({"rebuild_every": 10, "rows": 4}, "rebuild_every: 10, valid: a multiple of rows"),
        ({"expert_rows": 64}, "expert_rows: 64, valid: below batch_size"),
        ({"gamma": 1.0}, "gamma: 1.0"),
        ({"threshold_percent": 101}, "threshold_percent: 101"),
        ({"primitive_steps": 0}, "primitive_steps: 0, valid: 1 or more"),
        ({"random_share": 1.5}, "random_share: 1.5"),
    ],
)
def test_settings_that_cannot_be_used_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny(**changes)


def test_presets_keep_the_weight_of_imitation_a_row() -> None:
    paper, cpu = PEARConfig.preset("paper"), PEARConfig.preset("cpu")
    assert paper == PEARConfig() and paper.hidden == (512, 512, 512) and cpu.hidden == (256, 256) and cpu.batch_size == 256
    assert cpu.il_weight * cpu.expert_rows == pytest.approx(paper.il_weight * paper.expert_rows)
    assert cpu.margin_low * cpu.batch_size == pytest.approx(paper.margin_low * paper.batch_size)
