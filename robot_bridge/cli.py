"""`armstack COMMAND ...`: finds the command's module, parses its arguments with tyro and turns errors into clear messages."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Imported only when asked for, so that `armstack --help` and `armstack doctor` answer at once.
COMMANDS = {
    "demo": "demonstrations -> DAC -> ROS 2 arm -> report, in one go",
    "collect": "record demonstrations with the scripted experts",
    "corpus": "record demonstrations of many tasks, to retrieve from, and few of the targets",
    "retrieve": "find pieces of a large corpus that resemble parts of a few demonstrations",
    "find": "find clips of recordings by what happens in them",
    "train": "train a policy from a dataset or in a world",
    "pretrain": "explore a world without a reward, for tasks that come later",
    "solve": "a policy for a reward or a goal from what was explored, in seconds",
    "finetune": "let a solved task's policy learn on from its rewards",
    "eval": "success rate and return of a policy, in-process or over ROS 2",
    "replay": "play a dataset open loop through the command filter",
    "view": "make an HTML page of a dataset's episodes",
    "convert": "write a dataset in another format; says what that loses",
    "merge": "put the episodes of several datasets into one",
    "split": "share the episodes of a dataset out to two",
    "trim": "cut the pauses at the start and the end of episodes",
    "resample": "bring a dataset to another rate, or to an even one",
    "filter": "keep the episodes that succeed, are long enough, ...",
    "export": "turn a bundle into one with a faster runtime, for deployment",
    "calibrate": "measure the joints of a servo arm by moving them by hand",
    "calibrate-camera": "measure a camera's lens and where it is, from views of a board",
    "teleop": "move an arm by keyboard, SpaceMouse or leader arm; record demonstrations and corrections",
    "launch": "run a ROS 2 launch file",
    "safety-report": "limits of an arm, where each comes from, what it does when the process dies",
    "fault-table": "does an arm hold under every fault? injects them over ROS 2 and judges the bag",
    "reproduce": "run the missing experiments of a method and refresh its tables",
    "aux": "methods beside the policy: data, training and evaluation of what says what is in view",
    "bench": "measure ours and the peer side by side",
    "doctor": "versions, conflicts, GL and ROS; checks a dataset, bundle or environment",
}

GO_ON = {"demo", "collect", "corpus", "reproduce", "find", "aux data"}
"""Commands that leave out what they have finished when they are called again; others say themselves what they kept."""


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return (
        f"usage: armstack COMMAND [options]\n\n{lines}\n\n`armstack COMMAND --help` explains a command. ARMSTACK_DEBUG=1 shows tracebacks."
    )


@contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does, through its `finally` blocks: what it started ends with it."""

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit status (2 for a wrong call or bad input)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help", "help"):
        sys.stdout.write(_usage() + "\n")
        return 0
    name = argv[0]
    if name not in COMMANDS:
        sys.stderr.write(f"armstack: no command {name!r}; commands: {', '.join(COMMANDS)}\n")
        return 2
    from rl_core.errors import ArmstackError
    from rl_core.training.parent_watch import end_with_parent

    end_with_parent()
    try:
        with _unwound_by_sigterm():
            command = importlib.import_module(f"robot_bridge.commands.{name.replace('-', '_')}")
            return int(command.main(argv[1:]) or 0)
    except BrokenPipeError:  # whoever read the output, such as `head`, has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (ArmstackError, OSError) as error:
        if os.environ.get("ARMSTACK_DEBUG"):
            raise
        sys.stderr.write(f"armstack {name}: {error}\n")
        return 2
    except KeyboardInterrupt:
        kept = "; what is finished is kept, the same command goes on from there" if {name, " ".join(argv[:2])} & GO_ON else ""
        sys.stderr.write(f"armstack {name}: interrupted{kept}\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
