"""FilterSettings: the times and rules by which the command filter judges what it receives."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rl_core.errors import ArmstackError


class SettingsError(ArmstackError):
    """A setting that cannot be meant; names the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class FilterSettings:
    """All durations are in seconds.

    Attributes:
        control_period_s: time between two outputs.
        policy_period_s: time between two commands.
        max_command_age_s: a command counts no longer than this after receipt; None: two policy periods.
        max_observation_age_s: older observations may not be acted on.
        stamp_window_s: stamps further than this in the past or the future are refused.
        max_chunk_s: a chunk is executed no longer than this on one observation.
        ramp_s: a start reaches full speed after this time.
        required_guards: guards that must be heard (see `Holds`).
        required_estops: buttons that must be heard (see `EStop`).
        separation_required: whether a silent speed scale holds the arm.
    """

    control_period_s: float = 0.01
    policy_period_s: float = 0.05
    max_command_age_s: float | None = None
    max_observation_age_s: float = 0.2
    stamp_window_s: float = 5.0
    max_chunk_s: float = 2.0
    ramp_s: float = 0.25
    required_guards: tuple[str, ...] = ()
    required_estops: tuple[str, ...] = ()
    separation_required: bool = False

    def __post_init__(self) -> None:
        for field in (
            "control_period_s",
            "policy_period_s",
            "max_command_age_s",
            "max_observation_age_s",
            "stamp_window_s",
            "max_chunk_s",
            "ramp_s",
        ):
            value = getattr(self, field)
            if value is None and field == "max_command_age_s":
                continue
            if not (math.isfinite(value) and value > 0):
                raise SettingsError(f"{field}: {value}, valid: a finite number above 0")
        if self.control_period_s > self.policy_period_s:
            raise SettingsError(f"control_period_s {self.control_period_s} is longer than policy_period_s {self.policy_period_s}")

    @property
    def command_age_s(self) -> float:
        """How long a command counts after receipt at most."""
        return 2 * self.policy_period_s if self.max_command_age_s is None else self.max_command_age_s
