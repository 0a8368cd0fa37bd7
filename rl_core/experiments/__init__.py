"""Experiments: the runs behind a method's results, done once and shown in the docs.

`experiments/METHOD.yaml` lists them, `reproduce` does the missing ones, `results/METHOD/RUN.json` keeps what they found, and
`generate_tables` writes the tables of the docs from that.
"""

from rl_core.experiments.plan import ExperimentError, Plan, Run, load_plan
from rl_core.experiments.runner import Report, reproduce
from rl_core.experiments.tables import generate_tables, stale_documents

__all__ = ["ExperimentError", "Plan", "Report", "Run", "generate_tables", "load_plan", "reproduce", "stale_documents"]
