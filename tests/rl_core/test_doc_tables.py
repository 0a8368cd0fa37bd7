"""The tables of the docs are what results/ says."""

from __future__ import annotations

from rl_core.experiments import load_plan, stale_documents
from rl_core.experiments.runner import ROOT


def test_docs_show_the_committed_results():
    stale = [str(file.relative_to(ROOT)) for file in stale_documents()]
    assert not stale, f"tables of {stale} differ from results/; run: armstack reproduce --tables"


def test_every_plan_loads_and_its_functions_exist():
    plans = [load_plan(file.stem, ROOT) for file in sorted((ROOT / "experiments").glob("*.yaml"))]
    assert plans
    for plan in plans:
        for run in plan.runs:
            assert callable(run.load_function())
