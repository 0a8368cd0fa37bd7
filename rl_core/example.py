"""How the programs in `examples/` end: by a line and no traceback where the user can act, or by Ctrl-C, also in the middle of an import.

It imports nothing that takes time, so that it can be imported first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rl_core.errors import ArmstackError


def _say_interrupted() -> None:
    sys.stderr.write(f"{Path(sys.argv[0]).name}: interrupted\n")
    sys.stderr.flush()


def _end(number: int, frame: FrameType | None) -> None:
    _say_interrupted()
    os._exit(128 + number)


def take_interrupts() -> None:
    """From here on, until `running`, Ctrl-C ends the program at once: within an import a KeyboardInterrupt is a long traceback, or lost."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background of a script
        signal.signal(signal.SIGINT, _end)


@contextmanager
def running() -> Iterator[None]:
    """What the program does. ARMSTACK_DEBUG=1 shows the traceback of an error."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except (ArmstackError, OSError) as error:
        if os.environ.get("ARMSTACK_DEBUG"):
            raise
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from error
    except KeyboardInterrupt:
        _say_interrupted()
        raise SystemExit(128 + signal.SIGINT) from None
