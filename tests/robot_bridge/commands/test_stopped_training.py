"""Ctrl-C while training, as a user does it: in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from rl_core.bundle import bundle_sha256
from tests.robot_bridge.command_line import TINY_BC, Cli

ROOT = Path(__file__).parents[3]

# The command itself, but that it stands still at its first line of metrics until the test has sent its signal.
STOPPABLE = """
import sys
from rl_core.training.metrics import MetricsLog
from robot_bridge.cli import main
write = MetricsLog.write
def write_and_wait(self, step, values):
    write(self, step, values)
    print("at", step, flush=True)
    sys.stdin.readline()
MetricsLog.write = write_and_wait
sys.exit(main(sys.argv[1:]))
"""


def test_resume_is_resume_after_ctrl_c(cli: Cli, data: Path, tmp_path: Path) -> None:
    """The stopped run exits with 130, keeps a checkpoint, and ends with the weights of a run that was never stopped."""
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    settings = ("--dataset", str(data), *TINY_BC, "--updates", "300", "--json")
    command = [sys.executable, "-c", STOPPABLE, "train", "bc", "--run-dir", str(cut), *settings]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at 100\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate("go on\n", timeout=60)
    assert process.returncode == 130, err
    assert '"finished": false' in out and '"stop_signal": 2' in out and not (cut / "bundle").exists()
    assert "same command with --resume" in " ".join((out + err).split()) and "bundle: " not in out + err  # it has none yet

    refused = cli("train", "bc", "--run-dir", cut, *settings)
    assert refused.status == 2 and "already holds this run up to step" in refused.err
    assert cli("train", "bc", "--run-dir", cut, *settings, "--resume").figures["step"] == 300
    assert cli("train", "bc", "--run-dir", whole, *settings).figures["finished"]
    assert bundle_sha256(cut / "bundle") == bundle_sha256(whole / "bundle")
