"""Goal spaces, demonstrations, and worlds that contradict themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from rl_core.pear.worlds import Demonstration, GoalSpace, GoalWorldError, check_goal_worlds, make_goal_worlds
from rl_core.training.worlds import WorldError
from tests.rl_core.pear.point_world import PointWorlds, line
from tests.rl_core.pear.test_pear_source import POINT

SPACE = GoalSpace(centre=np.array([1.0, 2.0, 0.42]), half_width=np.array([0.5, 2.0, 0.0]), threshold=0.1)


def test_goals_and_units_are_each_others_inverse_and_a_fixed_dimension_stays() -> None:
    unit = np.array([[-1.0, 0.5, 0.0], [1.0, 0.0, 0.0]], np.float32)
    assert np.allclose(SPACE.decode(unit), [[0.5, 3.0, 0.42], [1.5, 2.0, 0.42]])
    assert np.allclose(SPACE.encode(SPACE.decode(unit)), unit, atol=1e-6)
    assert np.allclose(SPACE.decode(np.array([0.0, 0.0, 1.0], np.float32)), [1.0, 2.0, 0.42])
    assert SPACE.encode(np.array([99.0, -99.0, 0.5], np.float32)).tolist() == [1.0, -1.0, 0.0]
    tensor = torch.from_numpy(unit)
    assert torch.allclose(SPACE.encode(SPACE.decode(tensor)), tensor, atol=1e-6)


def test_reached_is_a_distance_with_its_border_inside() -> None:
    goal = np.zeros((3, 3), np.float32)
    achieved = np.array([[0.06, 0.08, 0.0], [0.07, 0.08, 0.0], [0.0, 0.0, 0.0]], np.float32) * (1 - 1e-6)
    assert SPACE.reached(achieved, goal).tolist() == [True, False, True]
    assert SPACE.reward(achieved, goal).tolist() == [0.0, -1.0, 0.0]


@pytest.mark.parametrize(
    "changes", [{"half_width": np.array([-1.0, 1.0, 1.0])}, {"half_width": np.ones(2)}, {"threshold": 0.0}, {"centre": np.full(3, np.nan)}]
)
def test_goal_spaces_that_contradict_themselves_are_refused(changes: dict[str, object]) -> None:
    values = {"centre": SPACE.centre, "half_width": SPACE.half_width, "threshold": 0.1}
    with pytest.raises(GoalWorldError, match="goal space"):
        GoalSpace(**{**values, **changes})


def test_demonstrations_that_contradict_themselves_are_refused() -> None:
    good = line(4, seed=7)
    values = {name: getattr(good, name) for name in ("seed", "observation", "achieved", "actions", "goal")}
    with pytest.raises(GoalWorldError, match="seed 7: shapes"):
        Demonstration(**{**values, "actions": good.actions[:-1]})
    with pytest.raises(GoalWorldError, match="seed 7: achieved has numbers that are not finite"):
        Demonstration(**{**values, "achieved": np.full_like(good.achieved, np.nan)})


def test_worlds_are_found_by_name_with_as_many_rows_as_asked() -> None:
    worlds = make_goal_worlds(POINT, 3, horizon=8)
    assert worlds.n == 3 and worlds.horizon == 8 and len(worlds.reset([1, 2, 3])["observation"]) == 3


def test_worlds_without_goals_are_refused_by_name() -> None:
    with pytest.raises(WorldError, match="Pendulum-v1.*has no goals"):
        make_goal_worlds("Pendulum-v1", 1)


def test_a_contract_whose_last_channel_is_not_the_goal_is_refused() -> None:
    worlds = PointWorlds(1)
    worlds.contract = PointWorlds.contract.select(["position", "desired_goal", "bias"])
    with pytest.raises(GoalWorldError, match="last observation channel: 'bias' of size 1, valid: 'desired_goal' of size 2"):
        check_goal_worlds(worlds)
    channel = dataclasses.replace(PointWorlds.contract.channel("position"), history=2)
    worlds.contract = dataclasses.replace(PointWorlds.contract, observation=(channel, PointWorlds.contract.observation[-1]))
    with pytest.raises(GoalWorldError, match="position"):
        check_goal_worlds(worlds)
