"""What the run folder keeps, so that a training that was stopped goes on: checkpoints of the DDPM, the finished DDPM, and the sweep.

All of it is disposable, and named by a hash of everything that it was made from: other data or settings begin anew beside it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from rl_core.data.atomic import write_atomically
from rl_core.training.checkpoint import CheckpointError, CheckpointStore
from rl_core.training.signals import StopSignals
from robot_bridge.auxiliary.monitoring.manifold.bundled_prior import ddpm_of, ddpm_weights
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig, DDPMTraining, PixelPrior
from robot_bridge.auxiliary.monitoring.manifold.sweep import Level
from robot_bridge.auxiliary.told_progress import time_left

Say = Callable[[str], None]
_CHECKPOINT_S = 60.0
_LINES = 10


def digest_of(*parts: str | NDArray[np.uint8]) -> str:
    """A name for what is made from settings, as text, and crops."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else f"{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:32]


def kept_ddpm(folder: Path, crops: NDArray[np.uint8], config: DDPMConfig, *, seed: int, say: Say) -> PixelPrior:
    """The DDPM of these crops, settings and seed: read from `folder`, or trained, on from its checkpoint, and kept there.

    Raises:
        KeyboardInterrupt: Ctrl-C; a checkpoint was written.
        SystemExit: the same of SIGTERM.
    """
    name = f"ddpm-{digest_of(f'{config.sha256()} {seed}', crops)}"
    file, store = folder / f"{name}.safetensors", CheckpointStore(folder / f"{name}.checkpoints")
    if file.is_file():
        try:
            prior = ddpm_of(load_file(file), config)
            say(f"the DDPM is there already: {file}")
            return prior
        except (SafetensorError, RuntimeError, KeyError):
            file.unlink()
    training = DDPMTraining(crops, config, seed)
    try:
        if (kept := store.load_newest()) is not None:
            training.load_state_dict(kept.state)
            say(f"the DDPM goes on from update {training.updates} of {config.updates}")
    except CheckpointError as error:
        say(f"{error}\nthe DDPM is trained from the beginning")
        shutil.rmtree(store.folder)
    _run(training, store, say)
    prior = training.prior()
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(file) as opened:
        opened.write(save(ddpm_weights(prior)))
    shutil.rmtree(store.folder, ignore_errors=True)
    say(f"the DDPM is kept as {file}")
    return prior


def kept_sweep(folder: Path, digest: str, make: Callable[[], Sequence[Level]], say: Say) -> list[Level]:
    """The levels that `make` gives, or those that it gave for an equal digest before."""
    file = folder / f"sweep-{digest}.json"
    try:
        found = [Level(**level) for level in json.loads(file.read_text())]
        say(f"the sweep of alpha is there already: {file}")
        return found
    except (OSError, ValueError, TypeError):
        levels = list(make())
    with write_atomically(file) as opened:
        opened.write(json.dumps([asdict(level) for level in levels]).encode())
    return levels


def _run(training: DDPMTraining, store: CheckpointStore, say: Say) -> None:
    """The updates that are left, with a bar on a terminal, and a line now and then."""
    total, begun, kept = training.config.updates, time.monotonic(), time.monotonic()
    first, told, lost = training.updates, max(total // _LINES, 1), 0.0
    console = Console(stderr=True)
    columns = (TextColumn("training the DDPM"), BarColumn(), MofNCompleteColumn(), TextColumn("updates"), TimeRemainingColumn())
    with StopSignals(lambda: None) as signals, Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, completed=first)
        while training.updates < total:
            lost += training.update()
            now, done = time.monotonic(), training.updates
            bar.update(task, completed=done)
            if done % told == 0:
                left = time_left(now - begun, done - first, total - first)
                say(f"update {done}/{total}  loss {lost / min(told, done - first):.4f}  {left} left")
                lost = 0.0
            if signals.received or (now - kept > _CHECKPOINT_S and done < total):
                store.save(done, training.state_dict())
                kept = now
            if signals.received:
                break
    if signals.received:
        say(f"update {training.updates} of {total} is kept; the same command goes on from there")
        raise KeyboardInterrupt if signals.received == signal.SIGINT else SystemExit(128 + signals.received)
