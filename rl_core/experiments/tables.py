"""Tables of the docs, generated from results/ between the lines `<!-- results:METHOD:TABLE -->` and `<!-- end -->`.

Indented marks (code blocks) are left alone.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from rl_core.experiments.code_hash import run_hash
from rl_core.experiments.plan import ExperimentError, Plan, Table, load_plan
from rl_core.experiments.results import Result, read_result
from rl_core.experiments.runner import ROOT

_BLOCK = re.compile(r"^(<!-- results:(?P<method>[\w.-]+):(?P<table>[\w.-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL | re.MULTILINE)
_OPEN = re.compile(r"^<!-- results:", re.MULTILINE)


def generate_tables(root: Path = ROOT) -> list[Path]:
    """Rewrites the tables of README.md and docs/**/*.md; returns the files that changed."""
    changed = []
    for file, wanted in _documents(root):
        if file.read_text() != wanted:
            file.write_text(wanted)
            changed.append(file)
    return changed


def stale_documents(root: Path = ROOT) -> list[Path]:
    """Files whose tables are not what `generate_tables` would write."""
    return [file for file, wanted in _documents(root) if file.read_text() != wanted]


def _documents(root: Path) -> Iterator[tuple[Path, str]]:
    for file in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = file.read_text() if file.is_file() else ""
        if not _OPEN.search(text):
            continue
        if len(_OPEN.findall(text)) != len(_BLOCK.findall(text)):
            raise ExperimentError(f"{file}: a table mark without its end, valid: <!-- results:METHOD:TABLE --> ... <!-- end -->")
        yield file, _BLOCK.sub(lambda m: f"{m[1]}{render_table(m['method'], m['table'], root)}{m[5]}", text)


def render_table(method: str, name: str, root: Path = ROOT) -> str:
    """One table as Markdown: mean ± standard error over the runs of each group.

    A row with a result of other code than today's names the commit it is from; a group without results says so.

    Raises:
        ExperimentError: no such plan or table.
    """
    plan = load_plan(method, root)
    if name not in plan.tables:
        raise ExperimentError(f"experiments/{method}.yaml: no table {name!r}, valid: {', '.join(plan.tables) or 'none'}")
    table = plan.tables[name]
    groups = table.groups or tuple(dict.fromkeys(run.group for run in plan.runs))
    lines = [[table.row, *table.columns.values(), "runs"], ["---"] * (len(table.columns) + 2)]
    lines += [_row(plan, table, group, root) for group in groups]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _row(plan: Plan, table: Table, group: str, root: Path) -> list[str]:
    runs = [run for run in plan.runs if run.group == group]
    results: list[Result] = []
    old_commits: set[str] = set()
    for run in runs:
        result = read_result(run, root)
        if result is None:
            continue
        results.append(result)
        if result.hash != run_hash(run, root):
            old_commits.add(result.commit or "unknown")
    label = group + (f" (from commit {', '.join(sorted(old_commits))})" if old_commits else "")
    count = f"{len(results)}" if len(results) == len(runs) else f"{len(results)} of {len(runs)}"
    if not results:
        return [label, *["not run yet"] * len(table.columns), count]
    return [label, *(_cell([r.figures.get(c) for r in results], table.digits) for c in table.columns), count]


def _cell(values: list[float | None], digits: int) -> str:
    numbers = [float(value) for value in values if value is not None]
    if not numbers:
        return "none"  # the runs gave no such figure, e.g. because they diverged
    mean = statistics.fmean(numbers)
    if len(numbers) == 1:
        return f"{mean:.{digits}g}"
    error = statistics.stdev(numbers) / len(numbers) ** 0.5
    return f"{mean:.{digits}g} ± {error:.2g}"
