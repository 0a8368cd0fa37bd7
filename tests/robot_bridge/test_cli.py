"""What `armstack` says when it is stopped."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys

import pytest

from robot_bridge import cli


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (("aux", "train", "manifold"), "armstack aux: interrupted\n"),
        (("aux", "data", "manifold"), "armstack aux: interrupted; what is finished is kept, the same command goes on from there\n"),
        (("collect",), "armstack collect: interrupted; what is finished is kept, the same command goes on from there\n"),
        (("doctor",), "armstack doctor: interrupted\n"),
    ],
)
def test_only_what_goes_on_says_so(
    call: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module(f"robot_bridge.commands.{call[0]}"), "main", interrupted)
    assert cli.main(list(call)) == 130 and capsys.readouterr().err == says


def test_commands_that_go_on_are_commands() -> None:
    assert {each.split()[0] for each in cli.GO_ON} <= set(cli.COMMANDS)


def test_a_reader_that_has_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "robot_bridge.cli", "reproduce", "--help"], stdout=write, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, b"")
