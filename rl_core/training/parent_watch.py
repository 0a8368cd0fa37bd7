"""A child process that ends with the process that started it, also where that one was killed and could say nothing."""

from __future__ import annotations

import os
import signal
import threading
import time

PARENT_VARIABLE = "ARMSTACK_PARENT"
_POLL_S = 0.5


def with_parent(env: dict[str, str]) -> dict[str, str]:
    """`env` for a child that calls `end_with_parent`."""
    return {**env, PARENT_VARIABLE: str(os.getpid())}


def end_with_parent() -> None:
    """From now on this process gets SIGTERM, and so saves its work, once the process that started it `with_parent` is gone."""
    parent = os.environ.get(PARENT_VARIABLE)
    if parent is None or parent != str(os.getppid()):
        return

    def watch() -> None:
        while str(os.getppid()) == parent:
            time.sleep(_POLL_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
