"""Recording on several processes, and the plan that a folder was recorded by."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rl_core.data.atomic import write_atomically
from rl_core.errors import ArmstackError

PLAN_FILE = "plan.json"


def require_same_plan(folder: Path, wanted: Mapping[str, Any]) -> None:
    """Checks that the folder holds nothing, or what was recorded by this plan.

    Raises:
        ArmstackError: it holds another plan's; names each difference.
    """
    file = folder / PLAN_FILE
    if not file.is_file():
        return
    held = json.loads(file.read_text())
    differences = [f"{name}: there {held.get(name)!r}, asked for {wanted[name]!r}" for name in wanted if held.get(name) != wanted[name]]
    if differences:
        raise ArmstackError(f"{folder}: holds another collection; {'; '.join(differences)}; give a new folder")


def keep_plan(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes the plan beside the episodes, once."""
    if not (folder / PLAN_FILE).is_file():
        with write_atomically(folder / PLAN_FILE) as file:
            file.write((json.dumps(facts, indent=1) + "\n").encode())


def record_shares(record: Callable[..., int], shares: Iterable[tuple[Any, ...]], processes: int, progress: Callable[[int], None]) -> None:
    """Calls `record(*share)` for every share on a pool of processes; `progress` is told what each returns, as soon as it does.

    Raises:
        Exception: what `record` raised; shares that had not begun are dropped.
    """
    # spawn, not fork: the caller may hold torch or rclpy threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            for future in as_completed([pool.submit(record, *share) for share in shares]):
                progress(future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)  # else every share would still be recorded before the block is left
            raise


def _end_with_parent() -> None:
    """Ends this worker with the process that started it, however that one ended: after a SIGKILL nobody else would."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()  # a pipe that closes with the parent
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
