"""Limits and settings refuse what cannot be meant."""

import math

import numpy as np
import pytest

from robot_bridge.control.limits import ArmLimits, LimitsError, panda_limits
from robot_bridge.control.settings import FilterSettings, SettingsError
from tests.robot_bridge.control.rig import bench_limits


def test_json_round_trip() -> None:
    assert ArmLimits.from_json(panda_limits().to_json()) == panda_limits()


@pytest.mark.parametrize("text", ("{", "[]", '{"names": ["a"]}', '{"nonsense": 1}'))
def test_unreadable_json_is_a_named_error(text: str) -> None:
    with pytest.raises(LimitsError):
        ArmLimits.from_json(text)


def test_bounds_that_contradict_are_refused() -> None:
    for change in (
        {"position_min": (3.0, -2.0, 0.0)},
        {"workspace_min": (3.0, 0.0, 0.0)},
        {"stop_acceleration": (1.0, 8.0, 4.0)},
        {"stop_jerk": (1.0, 8.0, 4.0)},
        {"velocity": (1.0, 1.0)},
        {"names": ("a", "a", "gripper")},
    ):
        with pytest.raises(LimitsError):
            bench_limits(**change)


def test_panda_braking_bound_holds_for_any_acceleration_it_may_start_from() -> None:
    """With a_0 > 0 braking takes a_0/j_stop (1 + a_0 / 2 a_stop) longer than v/a_stop + a_stop/j_stop: less than a control period."""
    limits = panda_limits()
    a, a_stop, j_stop = (np.array(getattr(limits, name)) for name in ("acceleration", "stop_acceleration", "stop_jerk"))
    assert (a / j_stop * (1 + a / (2 * a_stop)) < FilterSettings().control_period_s).all()


@pytest.mark.parametrize("field", ("control_period_s", "policy_period_s", "max_command_age_s", "max_observation_age_s", "ramp_s"))
def test_settings_refuse_nan_zero_and_negative(field: str) -> None:
    for bad in (math.nan, 0.0, -1.0, math.inf):
        with pytest.raises(SettingsError, match=field):
            FilterSettings(**{field: bad})


def test_a_command_counts_for_two_policy_periods_by_default() -> None:
    assert FilterSettings(policy_period_s=0.04).command_age_s == 0.08
    assert FilterSettings(max_command_age_s=0.3).command_age_s == 0.3
