"""Trainer: the one training loop. It knows a Learner, a Source and an Evaluator, and nothing of methods.

A run's folder:

    config.json      what was asked for; another configuration is refused
    checkpoints/     see rl_core.training.checkpoint
    metrics.jsonl    one line a logged step; tensorboard/ the same
    curve.png        learning curve, beside pictures of the learner's own where it draws any
    bundle/          the trained policy
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rl_core.errors import ArmstackError
from rl_core.training.checkpoint import CheckpointStore
from rl_core.training.config import TrainerConfig
from rl_core.training.curves import draw_learning_curve
from rl_core.training.metrics import MetricsLog, read_metrics
from rl_core.training.progress import Progress
from rl_core.training.protocols import Drawer, Evaluator, Learner, Source
from rl_core.training.seeding import capture_rng, preserved_rng, restore_rng, seed_everything
from rl_core.training.signals import StopSignals


class TrainingError(ArmstackError):
    """A run that cannot start or go on; says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        step: updates made so far.
        finished: all updates were made and the bundle was written.
        stop_signal: signal number that stopped it, 0 where none did.
        metrics: the last figures of each name.
        bundle: folder of the policy; None for a stopped run.
        seconds: wall time of this call.
    """

    step: int
    finished: bool
    stop_signal: int
    metrics: Mapping[str, float]
    bundle: Path | None
    seconds: float

    @property
    def exit_code(self) -> int:
        """What a shell expects: 0, 130 after SIGINT, 143 after SIGTERM."""
        return 128 + self.stop_signal if self.stop_signal else 0


class Trainer:
    """Trains a learner on a source.

    Args:
        learner: the method.
        source: where batches come from. One with `at_checkpoint` (online: between episodes) is saved only where that is true.
        config: length, intervals, seed, device.
        run_dir: the run's folder.
        evaluator: judges the policy every `config.eval_every` updates and at the end.
        description: further JSON-able facts of the run (method, its configuration, dataset), kept in `config.json`.
        data_fingerprint: of the data, for the bundle.
        parents: hashes of bundles that training started from, for the bundle.
    """

    def __init__(
        self,
        learner: Learner,
        source: Source,
        config: TrainerConfig,
        run_dir: str | Path,
        *,
        evaluator: Evaluator | None = None,
        description: Mapping[str, Any] | None = None,
        data_fingerprint: str = "",
        parents: tuple[str, ...] = (),
    ) -> None:
        self.learner = learner
        self.source = source
        self.config = config
        self.run_dir = Path(run_dir)
        self.evaluator = evaluator
        self.description = {"trainer": config.to_dict(), **(description or {})}
        self.data_fingerprint = data_fingerprint
        self.parents = parents
        self.checkpoints = CheckpointStore(self.run_dir / "checkpoints")
        self._stop_requested = False
        self._latest: dict[str, float] = {}

    def stop(self) -> None:
        """Asks a running `run` to save a checkpoint and return; may be called from any thread or signal handler."""
        self._stop_requested = True

    def run(self, *, resume: bool = False) -> TrainingResult:
        """Trains to `config.updates`.

        Args:
            resume: go on from the newest checkpoint of `run_dir` (from the start where there is none); `config.updates` may be more
                than before.

        Raises:
            TrainingError: `run_dir` belongs to another configuration, or to a run that was not to be resumed; or a metric
                became NaN or infinite (the last checkpoint stays).
        """
        started = time.monotonic()
        self._claim_folder(resume)
        torch.set_num_threads(self.config.threads)
        seed_everything(self.config.seed)
        step = self._restore() if resume else 0
        metrics_log = MetricsLog(self.run_dir, resume_from=step)
        self._latest = {name: value for row in read_metrics(self.run_dir) for name, value in row.items() if name != "step"}
        try:
            with StopSignals(self.stop) as signals, Progress(self.config.updates, step) as progress:
                step = self._loop(step, metrics_log, progress)
        finally:
            metrics_log.close()
        draw_learning_curve(read_metrics(self.run_dir), self.run_dir / "curve.png")
        finished = step >= self.config.updates
        if finished and isinstance(self.learner, Drawer):
            self.learner.draw(self.run_dir)
        bundle = self._save_bundle() if finished else None
        return TrainingResult(
            step=step,
            finished=finished,
            stop_signal=0 if finished else signals.received,
            metrics=dict(self._latest),
            bundle=bundle,
            seconds=time.monotonic() - started,
        )

    def _loop(self, step: int, metrics_log: MetricsLog, progress: Progress) -> int:
        config = self.config
        on_cpu = torch.device(config.device).type == "cpu"
        checkpoint_due = False
        window_start, window_step = time.monotonic(), step
        while step < config.updates:
            metrics = self.learner.update(self.source.next_batch())
            step += 1
            last = step == config.updates
            checkpoint_due |= step % config.checkpoint_every == 0 or last or self._stop_requested
            log_now = step % config.log_every == 0 or last
            save_now = checkpoint_due and getattr(self.source, "at_checkpoint", True)
            # Reading a value waits for the device; on the CPU that costs nothing, so every update is checked there.
            if on_cpu or log_now or save_now:
                self._check_finite(metrics, step)
            row: dict[str, float] = {}
            if log_now:
                row = {name: float(value) for name, value in metrics.items()}
                row["time/updates_per_s"] = (step - window_step) / max(time.monotonic() - window_start, 1e-9)
                window_start, window_step = time.monotonic(), step
            if self.evaluator is not None and (last or config.eval_every and step % config.eval_every == 0):
                paused = time.monotonic()
                with preserved_rng():
                    row.update(self.evaluator.evaluate(self.learner.policy(), step))
                window_start += time.monotonic() - paused
            if row:
                metrics_log.write(step, row)
                self._latest.update(row)
            progress.update(step, self._latest)
            if save_now:
                self._save(step)
                checkpoint_due = False
                if self._stop_requested:
                    break
        return step

    def _check_finite(self, metrics: Mapping[str, float | Tensor], step: int) -> None:
        for name, value in metrics.items():
            if not math.isfinite(value):
                kept = self.checkpoints.steps()
                where = f"the checkpoint of step {kept[-1]} is kept in {self.checkpoints.folder}" if kept else "there is no checkpoint yet"
                causes = "numbers in the dataset that are not finite (armstack doctor DATASET), or a learning rate too high"
                raise TrainingError(f"{name} is {float(value)} at step {step}; {where}. Usual causes: {causes}")

    def _save(self, step: int) -> None:
        self.checkpoints.save(step, {"learner": self.learner.state_dict(), "source": self.source.state_dict(), "rng": capture_rng()})

    def _restore(self) -> int:
        checkpoint = self.checkpoints.load_newest()
        if checkpoint is None:
            return 0
        self.learner.load_state_dict(checkpoint.state["learner"])
        self.source.load_state_dict(checkpoint.state["source"])
        restore_rng(checkpoint.state["rng"])
        return checkpoint.step

    def _claim_folder(self, resume: bool) -> None:
        """Writes config.json, or checks that the folder's one asks for the same run."""
        file = self.run_dir / "config.json"
        wanted = json.loads(json.dumps(self.description))
        if file.is_file():
            found = json.loads(file.read_text())
            if resume and found.get("trainer", {}).get("updates", math.inf) < self.config.updates:
                found["trainer"]["updates"] = self.config.updates  # a longer run begins with the same updates
            if found != wanted:
                differences = "\n".join(f"  - {line}" for line in _differences("", found, wanted))
                raise TrainingError(f"{self.run_dir} holds a run with another configuration:\n{differences}\nGive another run folder.")
            if not resume and self.checkpoints.steps():
                last = self.checkpoints.steps()[-1]
                raise TrainingError(f"{self.run_dir} already holds this run up to step {last}; resume it or give another run folder")
        elif self.checkpoints.steps():
            raise TrainingError(f"{self.run_dir} holds checkpoints but no config.json; give another run folder")
        self.run_dir.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".json.part")
        part.write_text(json.dumps(wanted, indent=1, sort_keys=True) + "\n")
        part.replace(file)

    def _save_bundle(self) -> Path:
        bundle = self.learner.bundle()
        # Times stay out: equal runs give equal bundles, down to the hash.
        figures = {name: value for name, value in self._latest.items() if not name.startswith("time/")}
        bundle = dataclasses.replace(
            bundle, metrics={**bundle.metrics, **figures}, data_fingerprint=self.data_fingerprint, parents=self.parents
        )
        return bundle.save(self.run_dir / "bundle")


def _differences(where: str, found: Any, wanted: Any) -> list[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        lines = []
        for key in sorted(set(found) | set(wanted)):
            lines += _differences(f"{where}.{key}".lstrip("."), found.get(key), wanted.get(key))
        return lines
    return [] if found == wanted else [f"{where}: the folder has {found!r}, asked for {wanted!r}"]
