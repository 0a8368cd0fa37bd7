"""Simulators of others that speak a vendor's own network protocol, each in a process of its own, as a real controller is."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BIN = Path(__file__).parents[3] / ".venv-sims/bin"
_LOGGED = Path(__file__).with_name("sim_side")
_HOSTS = itertools.count(2)
_START_S = 90.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _own_host() -> str:
    """A loopback address of this process: the simulators' ports are fixed, their addresses are not."""
    pid = os.getpid()
    return f"127.{64 + (pid >> 8) % 128}.{pid % 256}.{next(_HOSTS)}"


@contextmanager
def simulator(program: str, ready: str, *arguments: str, host_option: str, logged: str, log: Path | None) -> Iterator[str]:
    """Runs `program` until it says `ready`; gives its address. Skips the test where it is not installed.

    With `log`, the script `logged` runs it and writes there where the simulated joints are (see `sim_side`).
    """
    if not (_BIN / program).exists():
        pytest.skip(f"{program} is not installed: make sims")
    host = _own_host()
    command = [str(_BIN / program)] if log is None else [str(_BIN / "python"), str(_LOGGED / logged), str(log)]
    process = subprocess.Popen(
        [*command, host_option, host, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    output: list[str] = []
    said = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            if ready in line:
                said.set()
        said.set()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        assert said.wait(_START_S) and process.poll() is None, "".join(output)
        yield host
    finally:
        process.kill()
        process.wait()
        thread.join(5.0)


@contextmanager
def franky_sim(log: Path | None = None) -> Iterator[str]:
    """A Franka FR3 with hand."""
    options = ("--simulator", "mujoco")
    with simulator("franky-sim", "Connect to the server", *options, host_option="--hostname", logged="franky_logged.py", log=log) as host:
        yield host


@contextmanager
def trossen_sim(log: Path | None = None) -> Iterator[str]:
    """A WidowX AI follower."""
    options = ("--ws-port", str(_free_port()))
    with simulator("trossen-arm-sim", "ollision", *options, host_option="--host", logged="trossen_logged.py", log=log) as host:
        yield host
