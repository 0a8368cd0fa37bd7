"""Programs of `examples/` end in a line, by Ctrl-C or by what the user can act on."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rl_core.training import run as run_module

ROOT = Path(__file__).parents[2]
INTERRUPT = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
TAKE = "from rl_core.example import running, take_interrupts; take_interrupts()"
TAKES_SECONDS = ["contractive_draw", "generated_frames", "goal_reaching", "own_data", "radar_people", "separation"]


def run(program: Path, folder: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """A program that imports from `folder` first, as in a terminal: whoever runs the tests in the background has Ctrl-C ignored."""
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", **changes}
    heard = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, [sys.executable, sys.argv[1]])"
    command = [sys.executable, "-c", heard, str(program)]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def run_lines(folder: Path, *lines: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """A program `shown.py` of these lines."""
    (folder / "shown.py").write_text("\n".join(lines))
    return run(folder / "shown.py", folder, **changes)


def test_ctrl_c_within_an_import_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "heavy.py").write_text(f"try:\n    {INTERRUPT}\nexcept KeyboardInterrupt:\n    pass")
    ended = run_lines(tmp_path, TAKE, "import heavy", "print('went on')")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "shown.py: interrupted\n")


def test_ctrl_c_while_it_works_unwinds_it(tmp_path: Path) -> None:
    works = ("    try:", f"        {INTERRUPT}", "    finally:", "        print('cleaned up')")
    ended = run_lines(tmp_path, TAKE, "with running():", *works)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "cleaned up\n", "shown.py: interrupted\n")


@pytest.mark.parametrize("error", ["ArmstackError('--out: is a file, valid: a folder')", "OSError('--out: is a file, valid: a folder')"])
def test_what_the_user_can_act_on_is_a_line(tmp_path: Path, error: str) -> None:
    lines = ("from rl_core.errors import ArmstackError", TAKE, "with running():", f"    raise {error}")
    ended = run_lines(tmp_path, *lines)
    assert (ended.returncode, ended.stderr) == (1, "shown.py: --out: is a file, valid: a folder\n")
    assert "Traceback" in run_lines(tmp_path, *lines, ARMSTACK_DEBUG="1").stderr


def test_ctrl_c_that_is_ignored_stays_so(tmp_path: Path) -> None:
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    ended = run_lines(tmp_path, ignored, TAKE, "with running():", f"    {INTERRUPT}", "    print('went on')")
    assert (ended.returncode, ended.stdout) == (0, "went on\n")


@pytest.mark.parametrize("name", TAKES_SECONDS)
def test_examples_take_interrupts_before_they_import_anything_else(name: str, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(INTERRUPT)
    ended = run(ROOT / f"examples/{name}.py", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + signal.SIGINT, "", f"{name}.py: interrupted\n")


def test_training_that_was_stopped_is_no_failed_assertion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "train", lambda *_, **__: SimpleNamespace(bundle=None, exit_code=130))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "examples/own_data.py"))["main"](tmp_path)
    assert ended.value.code == 130
