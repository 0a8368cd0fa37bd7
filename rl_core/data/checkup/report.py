"""What a checkup reports."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report: about what, how grave, what was found, what to do."""

    subject: str
    level: Literal["ok", "warning", "error"]
    found: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """`check_dataset`'s result.

    Attributes:
        findings: in the order of the checks; an error is what training refuses.
        figures: JSON-able numbers behind them.
    """

    findings: tuple[Finding, ...]
    figures: dict[str, Any]

    @property
    def trainable(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.level != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"trainable": self.trainable, "findings": [asdict(finding) for finding in self.findings], "figures": self.figures}

    def to_json(self) -> str:
        """JSON text."""
        return json.dumps(self.to_dict(), sort_keys=True)
