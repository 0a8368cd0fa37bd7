"""The root of the errors a user can act on; the command line prints their message without a traceback."""

from collections.abc import Sequence


class ArmstackError(ValueError):
    """Names the file or field at fault, what was found, and what would be valid."""


class ContractError(ArmstackError):
    """A contract that contradicts itself; the message names the field, what was found and what is valid."""


class ContractMismatch(ArmstackError):
    """Two contracts that do not fit; the message prints both sides of each difference."""

    def __init__(self, needed_by: str, offered_by: str, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        lines = "\n".join(f"  - {difference}" for difference in differences)
        super().__init__(f"{needed_by} does not fit {offered_by}:\n{lines}")
