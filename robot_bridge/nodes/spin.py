"""Spins every node of the project.

The loop calls `executor.spin_once` with a timeout: on the EventsExecutor `spin()` and `spin_once()` without one never return to
Python, take a core and ignore SIGTERM. A callback waits behind any other, so callbacks only write a mailbox.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.experimental import EventsExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robot_bridge.driver_settings import not_known
from robot_bridge.launch_runner import PARENT_VARIABLE

SPIN_TIMEOUT_S = 0.1


class NodeError(RuntimeError):
    """A node cannot go on; the message says what happened and what to do. The process ends with exit code 1."""


class Failure:
    """Mailbox through which a node's own threads end the process; the first error wins."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._error: BaseException | None = None

    def report(self, error: BaseException) -> None:
        """Makes the spin loop raise `error`."""
        if not self._event.is_set():
            self._error = error
            self._event.set()

    def raise_reported(self) -> None:
        """Raises the reported error, if there is one."""
        if self._event.is_set() and self._error is not None:
            raise self._error


def spin(node: Node, *, until: Callable[[], bool] = lambda: False, failure: Failure | None = None) -> None:
    """Runs the callbacks of `node` until the context shuts down or `until()` is true.

    Raises:
        Exception: what a callback raised, or what was reported to `failure`.
    """
    executor = EventsExecutor(context=node.context)
    executor.add_node(node)
    try:
        while node.context.ok() and not until():
            executor.spin_once(timeout_sec=SPIN_TIMEOUT_S)
            if failure is not None:
                failure.raise_reported()
    except ExternalShutdownException:
        pass
    finally:
        executor.remove_node(node)
        executor.shutdown()


class SpinThread:
    """Spins one node on an executor and a thread of its own; a context manager that ends the thread, not the node."""

    def __init__(self, node: Node, *, failure: Failure | None = None) -> None:
        self._node = node
        self._failure = failure
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"spin {node.get_name()}", daemon=True)

    def _run(self) -> None:
        try:
            spin(self._node, until=self._stop.is_set)
        except Exception as error:
            if self._failure is None:
                raise
            self._failure.report(error)

    def __enter__(self) -> SpinThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def refuse_undeclared(node: Node) -> None:
    """Refuses parameters that were given and that the node never declared: ROS ignores them in silence, a misspelt one too.

    An empty text or 0 is not given: a launch file passes every setting on, whatever the choice among them.

    Raises:
        NodeError: names them and those there are.
    """
    declared = node.get_parameters_by_prefix("")
    given = {name: parameter.value for name, parameter in node._parameter_overrides.items() if not name.startswith("qos_overrides.")}
    if unknown := sorted(name for name, value in given.items() if name not in declared and value not in ("", 0, None)):
        raise NodeError(not_known(unknown, declared))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True


def run(make_node: Callable[[], Any], args: Sequence[str] | None = None) -> int:
    """Makes one node, spins it until SIGINT, SIGTERM, an error or the end of the launch that started it, and closes it.

    The node may have `failure` (a `Failure`, for its own threads) and `close()` (called before it is destroyed).

    Returns:
        Exit code: 0 after a signal, 1 after an error, which is logged.
    """
    # The signals are taken in Python: rclpy's own handlers end the context under a running executor, which may abort the process,
    # and they leave the node no time to say goodbye.
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    parent = os.getppid()
    launch = int(os.environ.get(PARENT_VARIABLE, 0))

    def over() -> bool:
        # A launch that was killed leaves no node behind, not even one that was still importing then.
        return asked.is_set() or (os.getppid() != parent if launch == parent else bool(launch) and not _alive(launch))

    rclpy.init(args=list(args) if args is not None else None, signal_handler_options=SignalHandlerOptions.NO)
    logger = rclpy.logging.get_logger("armstack")
    node = None
    code = 0
    try:
        node = make_node()
        logger = node.get_logger()
        refuse_undeclared(node)
        spin(node, until=over, failure=getattr(node, "failure", None))
    except NodeError as error:
        logger.fatal(str(error))
        code = 1
    except Exception as error:
        logger.fatal(f"{type(error).__name__}: {error}")
        code = 1
    finally:
        if node is not None:
            close = getattr(node, "close", None)
            if close is not None:
                close()
            node.destroy_node()
        rclpy.try_shutdown()
    return code
