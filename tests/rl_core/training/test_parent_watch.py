"""A parent that is killed takes its children with it; they get SIGTERM and so can save their work."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CHILD = """
import signal, sys, time
from rl_core.training.parent_watch import end_with_parent
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
end_with_parent()
print("up", flush=True)
time.sleep(20)
print("nobody said that the parent is gone", flush=True)
"""
PARENT = f"""
import os, subprocess, sys
from rl_core.training.parent_watch import with_parent
subprocess.Popen([sys.executable, "-c", {CHILD!r}], env=with_parent(dict(os.environ))).wait()
"""


def test_a_killed_parent_leaves_no_child_behind():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert parent.stdout is not None and parent.stdout.readline() == "up\n"
    parent.kill()
    assert parent.stdout.readline() == "saved\n"  # read from the pipe that the child holds; its end closes it
    assert parent.stdout.read() == ""
