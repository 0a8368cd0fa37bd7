from __future__ import annotations

import io
import json
import signal

import pytest
import torch
from rich.console import Console

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.training.checkpoint import CheckpointStore
from rl_core.training.config import TrainerConfig
from rl_core.training.metrics import read_metrics
from rl_core.training.progress import Progress
from rl_core.training.trainer import Trainer, TrainingError
from tests.rl_core.training.toy import ToyLearner, ToySource

CONFIG = TrainerConfig(updates=200, log_every=10, checkpoint_every=40)


class CountingEvaluator:
    """Draws from the global generators, as a careless evaluation would."""

    def __init__(self):
        self.steps = []

    def evaluate(self, policy, step):
        self.steps.append(step)
        return {"eval/return_mean": float(torch.rand(()))}


def run(run_dir, *, config=CONFIG, stop_at=0, resume=False, evaluator=None, seed=0):
    learner = ToyLearner(seed)
    trainer = Trainer(learner, ToySource(on_batch=lambda k: trainer.stop() if k == stop_at else None), config, run_dir, evaluator=evaluator)
    return learner, trainer.run(resume=resume)


def test_resume_is_resume(tmp_path):
    whole, result = run(tmp_path / "whole")
    _, stopped = run(tmp_path / "cut", stop_at=100)
    assert (stopped.step, stopped.finished, stopped.bundle) == (100, False, None)
    # Another seed for the fresh learner: all that counts must come from the checkpoint.
    resumed, finished = run(tmp_path / "cut", resume=True, seed=9)
    assert finished.finished and finished.step == 200
    assert torch.equal(whole.weights(), resumed.weights())
    assert bundle_sha256(result.bundle) == bundle_sha256(finished.bundle)
    drop = {"time/updates_per_s"}
    rows = [[{k: v for k, v in row.items() if k not in drop} for row in read_metrics(tmp_path / name)] for name in ("whole", "cut")]
    assert rows[0] == rows[1]
    assert [row["step"] for row in rows[0]] == list(range(10, 201, 10))


def test_resume_after_a_kill_repeats_from_the_last_checkpoint(tmp_path):
    whole, _ = run(tmp_path / "whole")

    def die(k):
        if k == 95:
            raise KeyError("power cut")

    with pytest.raises(KeyError):
        Trainer(ToyLearner(), ToySource(on_batch=die), CONFIG, tmp_path / "cut").run()
    assert CheckpointStore(tmp_path / "cut" / "checkpoints").steps() == [40, 80]
    resumed, _ = run(tmp_path / "cut", resume=True)
    assert torch.equal(whole.weights(), resumed.weights())
    assert [row["step"] for row in read_metrics(tmp_path / "cut")] == list(range(10, 201, 10))


def test_resume_of_nothing_starts_and_of_a_finished_run_changes_nothing(tmp_path):
    first, result = run(tmp_path, resume=True)
    before = bundle_sha256(result.bundle)
    again, result = run(tmp_path, resume=True, seed=5)
    assert result.finished and bundle_sha256(result.bundle) == before
    assert torch.equal(first.weights(), again.weights())


def test_evaluating_does_not_change_training(tmp_path):
    plain, _ = run(tmp_path / "plain")
    evaluator = CountingEvaluator()
    judged, result = run(tmp_path / "judged", config=CONFIG.override(eval_every=50), evaluator=evaluator)
    assert evaluator.steps == [50, 100, 150, 200]
    assert "eval/return_mean" in result.metrics and "eval/return_mean" in Bundle.load(result.bundle).metrics
    assert torch.equal(plain.weights(), judged.weights())


def test_without_interval_there_is_one_evaluation_at_the_end(tmp_path):
    evaluator = CountingEvaluator()
    run(tmp_path, evaluator=evaluator)
    assert evaluator.steps == [200]


def test_nan_loss_names_metric_and_step_and_keeps_the_checkpoint(tmp_path):
    with pytest.raises(TrainingError, match=r"loss/actor is nan at step 57; the checkpoint of step 40 is kept"):
        Trainer(ToyLearner(nan_at=57), ToySource(), CONFIG, tmp_path).run()
    assert CheckpointStore(tmp_path / "checkpoints").load_newest().step == 40
    assert not (tmp_path / "bundle").exists()


def test_a_checkpoint_is_never_written_with_nan(tmp_path):
    with pytest.raises(TrainingError, match="at step 40; there is no checkpoint yet"):
        Trainer(ToyLearner(nan_at=40), ToySource(), CONFIG, tmp_path).run()
    assert CheckpointStore(tmp_path / "checkpoints").steps() == []


def test_a_run_folder_is_not_reused_with_another_configuration(tmp_path):
    run(tmp_path, stop_at=50)
    with pytest.raises(TrainingError, match=r"(?s)another configuration.*trainer.seed: the folder has 0, asked for 1"):
        run(tmp_path, config=CONFIG.override(seed=1), resume=True)
    with pytest.raises(TrainingError, match="already holds this run up to step 50; resume it"):
        run(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(TrainingError, match="no config.json"):
        run(tmp_path)


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(tmp_path):
    whole, _ = run(tmp_path / "whole")
    run(tmp_path / "cut", stop_at=100)
    (tmp_path / "cut" / "checkpoints" / "step-0000000100" / "state.json").write_text("{")
    resumed, _ = run(tmp_path / "cut", resume=True)
    assert torch.equal(whole.weights(), resumed.weights())


def test_a_run_writes_all_it_promises(tmp_path):
    run(tmp_path)
    for name in (
        "config.json",
        "metrics.jsonl",
        "curve.png",
        "bundle/bundle.json",
        "bundle/weights.safetensors",
        "tensorboard",
        "checkpoints",
    ):
        assert (tmp_path / name).exists(), name
    assert json.loads((tmp_path / "config.json").read_text())["trainer"]["updates"] == 200


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_a_checkpoint_and_ends_with_the_shells_code(tmp_path, number, code):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    source = ToySource(on_batch=lambda k: signal.raise_signal(number) if k == 30 else None)
    result = Trainer(ToyLearner(), source, CONFIG, tmp_path / "cut").run()
    assert (result.exit_code, result.step, result.finished) == (code, 30, False)
    assert CheckpointStore(tmp_path / "cut" / "checkpoints").steps() == [30]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    whole, finished = run(tmp_path / "whole")
    resumed, _ = run(tmp_path / "cut", resume=True)
    assert finished.exit_code == 0 and torch.equal(whole.weights(), resumed.weights())


def test_a_second_signal_ends_at_once(tmp_path):
    source = ToySource(on_batch=lambda k: [signal.raise_signal(signal.SIGTERM) for _ in range(2)] if k == 30 else None)
    with pytest.raises(SystemExit, match="143"):
        Trainer(ToyLearner(), source, CONFIG, tmp_path).run()
    assert CheckpointStore(tmp_path / "checkpoints").steps() == []


def test_progress_is_a_bar_on_a_terminal_and_plain_lines_elsewhere(monkeypatch):
    monkeypatch.setattr("rl_core.training.progress._REFRESH_S", 0.0)
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=160)
        with Progress(100, 0, console=console) as progress:
            for step in range(1, 101):
                progress.update(step, {"loss/actor": 0.5})
        shown = console.file.getvalue()
        assert "100/100" in shown and "updates/s" in shown and "loss/actor 0.5" in shown
        assert ("\x1b[" in shown) is terminal
        if not terminal:
            assert shown.count("\n") == 1


def test_a_finished_run_can_be_made_longer(tmp_path):
    whole, _ = run(tmp_path / "whole")
    run(tmp_path / "grown", config=TrainerConfig(updates=100, log_every=10, checkpoint_every=40))
    longer, result = run(tmp_path / "grown", resume=True, seed=9)
    assert result.finished and result.step == 200 and torch.equal(whole.weights(), longer.weights())
    with pytest.raises(TrainingError, match=r"trainer.updates: the folder has 200, asked for 100"):
        run(tmp_path / "grown", config=TrainerConfig(updates=100, log_every=10, checkpoint_every=40), resume=True)
