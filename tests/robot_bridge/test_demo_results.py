"""What the demo must show, asserted over the committed results of `armstack reproduce demo`. A missing run fails."""

import statistics

import pytest

from rl_core.experiments import load_plan
from rl_core.experiments.results import read_result
from rl_core.experiments.runner import ROOT

pytestmark = pytest.mark.slow


def success(group: str) -> dict[int, float]:
    """Seed -> success in percent."""
    found = {run.seed: read_result(run, ROOT) for run in load_plan("demo", ROOT).runs if run.group == group}
    missing = [seed for seed, result in found.items() if result is None]
    assert found and not missing, f"results/demo lacks seeds {missing} of {group}; run `armstack reproduce demo`"
    return {seed: float(result.figures["success_percent"]) for seed, result in found.items() if result is not None}


def test_dac_beats_cloning_on_the_mixed_demonstrations() -> None:
    """By 15 points also at the lower end of the difference's interval (one standard error)."""
    dac, cloning = success("DAC"), success("BC")
    differences = [dac[seed] - cloning[seed] for seed in dac]
    error = statistics.stdev(differences) / len(differences) ** 0.5
    assert statistics.fmean(differences) - error >= 15.0
