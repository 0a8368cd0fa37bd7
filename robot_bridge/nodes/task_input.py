"""TaskInput: the newest `task`, which tells a language-conditioned policy what to do.

Language never moves the arm by itself: a task is JSON with known fields, and its instruction must be, word for word, one that the policy
was trained with. What this node cannot see to, a limit of speed or force, is refused instead of passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from std_msgs.msg import String

from rl_core.policy import Policy
from robot_bridge.nodes.messages import MessageError

TOPIC = "task"
FIELDS = ("id", "skill", "object", "target", "instruction", "speed", "force", "confirmed_by")
_ELSEWHERE = {"speed": "publish safety/speed_scale, which the arm follows", "force": "set the arm's own limit, max_force"}


def read_task(text: str, instructions: Sequence[str]) -> str:
    """The instruction of a message on `task`.

    Raises:
        MessageError: no JSON object, an unknown field, a limit, or an instruction the policy does not know; says what would be valid.
    """
    try:
        task = json.loads(text)
    except ValueError as error:
        raise MessageError(f"{TOPIC}: not JSON: {error}") from error
    if not isinstance(task, dict):
        raise MessageError(f"{TOPIC}: {type(task).__name__}, valid: a JSON object with the field instruction")
    if unknown := sorted(task.keys() - set(FIELDS)):
        raise MessageError(f"{TOPIC}: fields {unknown}, valid: {', '.join(FIELDS)}")
    for field, instead in _ELSEWHERE.items():
        if task.get(field) is not None:
            raise MessageError(f"{TOPIC}: {field} {task[field]!r}, valid: none; {instead}")
    return known_instruction(task.get("instruction"), instructions, f"{TOPIC}: instruction")


def known_instruction(said: Any, instructions: Sequence[str], where: str) -> str:
    """`said`, if the policy knows it; raises MessageError that begins with `where` and lists what it knows."""
    if not isinstance(said, str) or said not in instructions:
        raise MessageError(f"{where} {said!r}, valid: one the policy was trained with, {list(instructions)}")
    return said


class TaskInput:
    """What the policy shall do, as its user last said it. A task that is refused also ends the one before: the user wanted another.

    Args:
        policy: may have `instructions`, the sentences it knows; without a default of its own, its contract asks for the condition `task`.
        first: an instruction that holds until another comes; empty for the policy's default.

    Attributes:
        instructions: the sentences it knows; empty for a policy that is not told anything.
        value: the instruction in force; None for the policy's default.
        missing: why there is none to act on; empty where there is.

    Raises:
        MessageError: `first` is not one of the policy's.
    """

    def __init__(self, policy: Policy, first: str = "") -> None:
        self.instructions: tuple[str, ...] = tuple(getattr(policy, "instructions", ()))
        self.value: str | None = known_instruction(first, self.instructions, "parameter instruction:") if first else None
        needed = any(channel.name == TOPIC for channel in policy.contract.condition)
        said = f'{{"instruction": ...}} with one of {list(self.instructions)}'
        self.missing = f"{TOPIC}: nothing received; publish {said}" if needed and self.value is None else ""

    @property
    def condition(self) -> Mapping[str, str]:
        """For `Policy.prepare`."""
        return {} if self.value is None else {TOPIC: self.value}

    def receive(self, message: String) -> None:
        """Takes a task; raises MessageError for one that cannot be meant (`read_task`)."""
        self.value = None
        try:
            self.value, self.missing = read_task(message.data, self.instructions), ""
        except MessageError as error:
            self.missing = f"the last task was refused: {error}"
            raise
