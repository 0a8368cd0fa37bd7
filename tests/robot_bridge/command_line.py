"""What tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PLAN = ("--plan.episodes", "4", "--plan.horizon", "12")
"""Four episodes are two shares: two processes have something to do."""
TINY_BC = ("--preset", "cpu", "--config.hidden", "8", "--config.batch-size", "8")
TINY_DAC = (
    *("--preset", "demo", "--config.actor-hidden", "8", "8", "--config.critic-hidden", "8", "8", "--config.batch-size", "8"),
    *("--config.heads", "2", "--config.next-actions", "2", "--config.action-candidates", "3"),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command left: exit status, both streams, and with `--json` the object on the last line."""

    status: int
    out: str
    err: str

    @property
    def figures(self) -> dict[str, Any]:
        """The JSON object on standard output's last line."""
        return json.loads(self.out.splitlines()[-1])


Cli = Callable[..., Outcome]
