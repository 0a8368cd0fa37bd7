"""Checkup: what is in a dataset, and what is wrong with it. Nothing here changes a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rl_core.data.checkup.episodes import check_channels, check_counts, check_endings, check_success
from rl_core.data.checkup.motion import check_angles, check_idle, still_steps
from rl_core.data.checkup.pictures import check_pictures
from rl_core.data.checkup.report import CheckReport, Finding
from rl_core.data.checkup.timing import check_ages, check_gaps, check_rate, check_stamps
from rl_core.data.checkup.values import check_actions, check_constant, check_finite, check_quaternions, check_ranges
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.training_data import require_trainable

__all__ = ["CheckReport", "Finding", "check_dataset", "still_steps"]

Check = Callable[[Dataset, dict[str, Any]], Finding]
"""Looks at a dataset, adds its numbers to the figures and says what they mean."""

CHECKS: tuple[Check, ...] = (
    check_counts,
    check_finite,
    check_quaternions,
    check_stamps,
    check_rate,
    check_ages,
    check_gaps,
    check_constant,
    check_ranges,
    check_actions,
    check_angles,
    check_idle,
    check_pictures,
    check_endings,
    check_success,
)


def check_dataset(dataset: Dataset) -> CheckReport:
    """Looks at every number and every picture of `dataset`."""
    figures: dict[str, Any] = {"episodes": len(dataset), "steps": dataset.steps}
    if not dataset.steps:
        empty = Finding(subject="counts", level="error", found=f"no transitions in {len(dataset)} episodes", advice="record some")
        return CheckReport(findings=(empty,), figures=figures)
    channels = check_channels(dataset, figures)
    if channels.level == "error":
        return CheckReport(findings=(channels,), figures=figures)
    findings = [check(dataset, figures) for check in CHECKS]
    if all(finding.level != "error" for finding in findings):
        try:
            require_trainable(dataset)
        except DatasetError as error:
            findings.append(Finding(subject="training", level="error", found=str(error)))
    return CheckReport(findings=tuple(findings), figures=figures)
