"""Runs a launch file where `launch_ros` is absent: starts its processes, passes signals on, and keeps the first failure's exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from robot_bridge.launch_file import LaunchError, ProcessSpec, launch_arguments, read_launch_file
from robot_bridge.launch_places import NODES, find_launch_file
from robot_bridge.ros_environment import prepare_ros_environment

__all__ = ["Launch", "LaunchError", "find_launch_file", "launch", "main", "parse_arguments"]

PARENT_VARIABLE = "ARMSTACK_LAUNCH_PID"
"""Tells a node which process launched it; should that be killed, the node ends by itself (`robot_bridge.nodes.spin`)."""
SIGTERM_AFTER_S = 5.0
SIGKILL_AFTER_S = 5.0


def parse_arguments(arguments: Sequence[str]) -> dict[str, str]:
    """`["task:=lift"]` -> `{"task": "lift"}`.

    Raises:
        LaunchError: an entry without `:=`.
    """
    pairs = {}
    for argument in arguments:
        name, separator, value = argument.partition(":=")
        if not separator or not name:
            raise LaunchError(f"launch argument {argument!r}, valid: NAME:=VALUE")
        pairs[name] = value
    return pairs


def _to_stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Launch:
    """The running processes of a launch file; a context manager that ends them.

    Attributes:
        processes: name -> process, in the file's order.
        first_failure: (name, exit code) of the first process that ended with a failure before it was told to end.
    """

    def __init__(
        self, specs: Sequence[ProcessSpec], *, env: Mapping[str, str] | None = None, emit: Callable[[str], None] = _to_stdout
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._env = dict(os.environ if env is None else env)
        self._emit = emit
        self._ending = False
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.exit_codes: dict[str, int] = {}
        self.first_failure: tuple[str, int] | None = None

    def start(self) -> None:
        """Starts all processes.

        Raises:
            LaunchError: an executable that cannot be started; those started before are ended.
        """
        for spec in self._specs.values():
            try:
                # a session of its own: Ctrl-C reaches the nodes once, from here
                process = subprocess.Popen(
                    spec.command,
                    env={**self._env, "PYTHONUNBUFFERED": "1", PARENT_VARIABLE: str(os.getpid()), **spec.env},
                    cwd=spec.cwd,
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                )
            except OSError as error:
                self.stop()
                raise LaunchError(f"{spec.name}: {' '.join(spec.command)} cannot be started: {error}") from error
            self.processes[spec.name] = process
            thread = threading.Thread(target=self._follow, args=(spec, process), name=f"launch {spec.name}", daemon=True)
            self._threads.append(thread)
            thread.start()
            self._emit(f"[launch] {spec.name}: started with pid {process.pid}")

    def _follow(self, spec: ProcessSpec, process: subprocess.Popen[str]) -> None:
        # a reader of its own: a grandchild that holds the pipe open must not hide that the process is dead
        reader = threading.Thread(target=self._pass_output_on, args=(spec, process), daemon=True)
        reader.start()
        code = process.wait()
        reader.join(1.0)
        with self._changed:
            self.exit_codes[spec.name] = code
            if not self._ending:
                how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
                self._emit(f"[launch] {spec.name}: {how}")
                self._emit_consequence(spec)
                if code != 0 and self.first_failure is None:
                    self.first_failure = (spec.name, code)
            self._changed.notify_all()

    def _emit_consequence(self, spec: ProcessSpec) -> None:
        running = [name for name in self._specs if name not in self.exit_codes]
        if not running:
            return
        if spec.shutdown_on_exit:
            self._emit(f"[launch] without {spec.name} nothing goes on; shutting down {', '.join(running)}")
        elif "policy_node" in spec.command:
            self._emit(f"[launch] without {spec.name} the arm holds; {', '.join(running)} still running (Ctrl-C ends the launch)")

    def _pass_output_on(self, spec: ProcessSpec, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._emit(f"[{spec.name}] {line.rstrip()}")

    def over(self) -> bool:
        """True once all processes ended, or one whose end ends the launch did."""
        return len(self.exit_codes) == len(self._specs) or any(self._specs[name].shutdown_on_exit for name in self.exit_codes)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the launch is over; False where `timeout_s` passed first."""
        with self._changed:
            return self._changed.wait_for(self.over, timeout_s)

    def stop(self) -> None:
        """SIGINT to all that run, SIGTERM after 5 s, SIGKILL after 5 s more; returns when all ended."""
        with self._changed:
            self._ending = True
        for number, patience in ((signal.SIGINT, SIGTERM_AFTER_S), (signal.SIGTERM, SIGKILL_AFTER_S), (signal.SIGKILL, None)):
            running = [process for process in self.processes.values() if process.poll() is None]
            for process in running:
                process.send_signal(number)
            deadline = None if patience is None else time.monotonic() + patience
            for process in running:
                try:
                    process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self._emit(f"[launch] pid {process.pid} still runs {patience} s after {number.name}")
        for thread in self._threads:
            thread.join()

    @property
    def exit_code(self) -> int:
        """Exit code of the first failure, as a shell gives it (128 + signal); 0 where there was none."""
        if self.first_failure is None:
            return 0
        code = self.first_failure[1]
        return code if code > 0 else 128 - code

    def __enter__(self) -> Launch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def launch(name: str | Path, arguments: Mapping[str, str], *, emit: Callable[[str], None] = _to_stdout) -> int:
    """Runs launch file `name` (a path, or a name `find_launch_file` knows) until it is over or SIGINT or SIGTERM comes.

    Returns:
        Exit code of the first failure, else 0.

    Raises:
        LaunchError: the file cannot be run.
        RosEnvironmentError: it starts nodes of this package, and ROS cannot be used here.
    """
    specs = read_launch_file(find_launch_file(str(name)), arguments)
    if any(NODES.intersection(spec.command) for spec in specs):
        prepare_ros_environment()
    asked = threading.Event()
    previous = {number: signal.signal(number, lambda *_: asked.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Launch(specs, emit=emit) as running:
            while not asked.is_set() and not running.wait(0.2):
                pass
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return running.exit_code


def main(argv: Sequence[str]) -> int:
    """`FILE [name:=value ...] [--show-args]`: runs a launch file, or says what arguments it takes.

    Returns:
        Exit code of the first failure, else 0.

    Raises:
        LaunchError: the file cannot be run; names what would be valid.
    """
    options = [argument for argument in argv if argument.startswith("-")]
    words = [argument for argument in argv if not argument.startswith("-")]
    unknown = [option for option in options if option not in ("-s", "--show-args")]
    if unknown or not words:
        raise LaunchError(f"launch {' '.join(argv)}: valid: FILE [name:=value ...] [--show-args]")
    file = find_launch_file(words[0])
    if options:
        for argument in launch_arguments(file):
            needed = "needed" if argument.default is None else f"default: {argument.default!r}"
            choices = f", one of {', '.join(argument.choices)}" if argument.choices else ""
            _to_stdout(f"  {argument.name}  {argument.description} ({needed}{choices})")
        return 0
    return launch(file, parse_arguments(words[1:]))
