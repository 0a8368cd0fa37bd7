"""A method that knows only observations, given part of them as a condition."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.conditioned_policy import ConditionedPolicy, ConditionError, with_condition
from rl_core.contract import Action, Channel, ContractMismatch, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.methods import export_bundle, get_method, load_policy, make_learner

CONTRACT = RobotContract(
    robot="hand",
    observation=(
        Channel(name="eef_pos", names=("x", "y"), unit="m"),
        Channel(name="goal_pos", names=("x", "y"), unit="m"),
        Channel(name="goal_quat", kind="quaternion"),
    ),
    action=Action(names=("x", "y"), meaning="delta", space="end_effector", scale=(0.1, 0.1), units=("m", "m")),
)
GOAL = {"goal_pos": np.array([0.3, -0.2]), "goal_quat": np.array([0.0, 0.0, 0.0, 1.0])}


def _bundle(method: str) -> Bundle:
    rng = np.random.default_rng(0)
    sizes = {"eef_pos": 2, "goal_pos": 2, "goal_quat": 4}
    episodes = tuple(
        Episode(
            observations={name: rng.standard_normal((9, size)).astype(np.float32) for name, size in sizes.items()},
            actions=rng.uniform(-1, 1, (8, 2)).astype(np.float32),
            rewards=rng.standard_normal(8).astype(np.float32),
            terminal=False,
            truncated=True,
            stamps_ns=np.arange(9) * 50_000_000,
        )
        for _ in range(3)
    )
    small = {"hidden": (16,)} if method == "bc" else {"actor_hidden": (16,), "critic_hidden": (16,)}
    config = get_method(method).config_class.preset("cpu").override(**small)
    return make_learner(method, config, Dataset(contract=CONTRACT, episodes=episodes), seed=0).bundle()


@pytest.mark.parametrize("method", ["bc", "dac"])
def test_it_acts_as_the_policy_inside_whose_observation_holds_the_condition(method: str, tmp_path: Path) -> None:
    inside = _bundle(method)
    folder = with_condition(inside, ["goal_pos", "goal_quat"]).save(tmp_path / "bundle")
    policy, unconditioned = load_policy(folder), load_policy(inside)
    assert [channel.name for channel in policy.contract.observation] == ["eef_pos"]
    assert [channel.name for channel in policy.contract.condition] == ["goal_pos", "goal_quat"]
    positions = torch.tensor([[0.1, 0.2], [0.5, 0.6]])
    goals = {name: torch.tensor(value, dtype=torch.float32).expand(2, -1) for name, value in GOAL.items()}
    nothing = TensorDict({}, [])
    expected, _ = unconditioned.act(TensorDict({"eef_pos": positions, **goals}, [2]), nothing, unconditioned.reset([1, 2]))
    found, _ = policy.act(TensorDict({"eef_pos": positions}, [2]), policy.prepare(GOAL), policy.reset([1, 2]))
    assert torch.equal(found.values, expected.values)
    elsewhere, _ = policy.act(
        TensorDict({"eef_pos": positions}, [2]), policy.prepare({**GOAL, "goal_pos": np.array([-2.0, 2.0])}), policy.reset([1, 2])
    )
    assert not torch.equal(elsewhere.values, found.values)


def test_an_exported_policy_keeps_its_condition() -> None:
    exported = load_policy(export_bundle(with_condition(_bundle("dac"), ["goal_pos", "goal_quat"])))
    assert isinstance(exported, ConditionedPolicy)
    chunk, _ = exported.act(TensorDict({"eef_pos": torch.zeros(1, 2)}, [1]), exported.prepare(GOAL), exported.reset([0]))
    assert torch.isfinite(chunk.values).all()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"goal_quat": None}, "goal_quat: missing, found ['goal_pos']"),
        ({"goal_pos": [0.1]}, "goal_pos: [0.1"),
        ({"goal_pos": [0.1, np.nan]}, "2 finite numbers for ('x', 'y')"),
        ({"goal_quat": [0.0, 0.0, 1.0, 1.0]}, "goal_quat: norm 1.4142, valid: 1 (x, y, z, w)"),
    ],
)
def test_a_condition_that_cannot_be_acted_on_is_refused_by_channel(changed: dict[str, object], says: str) -> None:
    policy = load_policy(with_condition(_bundle("bc"), ["goal_pos", "goal_quat"]))
    condition = {name: value for name, value in {**GOAL, **changed}.items() if value is not None}
    with pytest.raises(ConditionError, match=re.escape(says)):
        policy.prepare(condition)


def test_only_the_last_channels_can_become_the_condition() -> None:
    bundle = _bundle("bc")
    for channels in (["goal_pos"], ["goal_quat", "goal_pos"], [], ["eef_pos", "goal_pos", "goal_quat"]):
        with pytest.raises(ConditionError, match="the last of the observation channels"):
            with_condition(bundle, channels)


def test_who_offers_no_goal_is_told_so() -> None:
    need = load_policy(with_condition(_bundle("bc"), ["goal_quat"])).contract
    with pytest.raises(ContractMismatch, match="condition.goal_quat: needed, but only"):
        need.accepts(CONTRACT)
