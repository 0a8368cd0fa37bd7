"""One run in a process of its own: `python -m rl_core.experiments.worker ROOT METHOD RUN RUN_DIR` writes RUN_DIR/figures.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rl_core.experiments.plan import load_plan
from rl_core.training.parent_watch import end_with_parent


def main(arguments: list[str]) -> None:
    """Does the run; a function that was stopped by a signal raises SystemExit and leaves no figures."""
    end_with_parent()
    root, method, name, run_dir = Path(arguments[0]), arguments[1], arguments[2], Path(arguments[3])
    run = load_plan(method, root).run(name)
    figures = run.load_function()(dict(run.config), run.seed, run_dir)
    part = run_dir / "figures.json.part"
    part.write_text(json.dumps(figures))
    part.replace(run_dir / "figures.json")


if __name__ == "__main__":
    main(sys.argv[1:])
