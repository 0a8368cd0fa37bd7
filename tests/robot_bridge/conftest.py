"""The command line, called in this process, and one small dataset and two bundles that its tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from robot_bridge.cli import main
from tests.robot_bridge.command_line import PLAN, TINY_BC, TINY_DAC, Cli, Outcome


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """cli("train", "bc", ...): runs `armstack train bc ...` here."""
    monkeypatch.delenv("ARMSTACK_DEBUG", raising=False)

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:  # tyro ends this way
            status = end.code if isinstance(end.code, int) else 1
        streams = capsys.readouterr()
        return Outcome(status=status, out=streams.out, err=streams.err)

    return run


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `armstack collect` records, by one process."""
    folder = tmp_path_factory.mktemp("collected") / "lift"
    assert main(["collect", "--out", str(folder), *PLAN, "--processes", "1"]) == 0
    return folder


@pytest.fixture(scope="session")
def bc(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folder of a small BC policy."""
    folder = tmp_path_factory.mktemp("bc")
    assert main(["train", "bc", "--dataset", str(data), "--run-dir", str(folder), *TINY_BC, "--updates", "5"]) == 0
    return folder


@pytest.fixture(scope="session")
def dac(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folder of a small DAC policy."""
    folder = tmp_path_factory.mktemp("dac")
    assert main(["train", "dac", "--dataset", str(data), "--run-dir", str(folder), *TINY_DAC, "--updates", "5"]) == 0
    return folder
