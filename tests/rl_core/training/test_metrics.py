from __future__ import annotations

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rl_core.training.curves import draw_learning_curve
from rl_core.training.metrics import MetricsLog, read_metrics


def write(folder, steps, *, resume_from=0, shift=0.0):
    log = MetricsLog(folder, resume_from=resume_from)
    for step in steps:
        log.write(step, {"loss/critic": step + shift})
    log.close()


def test_resume_drops_the_lines_beyond_its_checkpoint(tmp_path):
    write(tmp_path, [10, 20, 30])
    write(tmp_path, [20, 30, 40], resume_from=10, shift=0.5)
    assert [(row["step"], row["loss/critic"]) for row in read_metrics(tmp_path)] == [(10, 10.0), (20, 20.5), (30, 30.5), (40, 40.5)]


def test_tensorboard_has_the_same_numbers(tmp_path):
    write(tmp_path, [10, 20, 30])
    write(tmp_path, [20, 30], resume_from=10, shift=0.5)
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert [(event.step, event.value) for event in board.Scalars("loss/critic")] == [(10, 10.0), (20, 20.5), (30, 30.5)]


def test_a_new_run_starts_anew(tmp_path):
    write(tmp_path, [10, 20])
    write(tmp_path, [10])
    assert len(read_metrics(tmp_path)) == 1


def test_a_line_cut_by_a_crash_is_left_out_and_damage_is_named(tmp_path):
    write(tmp_path, [10, 20])
    file = tmp_path / "metrics.jsonl"
    file.write_text(file.read_text() + '{"step": 3')
    assert [row["step"] for row in read_metrics(tmp_path)] == [10, 20]
    file.write_text('{"step"\n' + file.read_text())
    with pytest.raises(ValueError, match="metrics.jsonl, line 1: not JSON"):
        read_metrics(tmp_path)


def test_lines_are_there_while_the_run_goes_on(tmp_path):
    log = MetricsLog(tmp_path)
    log.write(1, {"loss/actor": 1.0})
    assert [row["step"] for row in read_metrics(tmp_path)] == [1]
    log.close()


@pytest.mark.parametrize("name", ["loss", "Loss/critic", "loss/", "loss/a b"])
def test_names_are_group_and_name(tmp_path, name):
    log = MetricsLog(tmp_path)
    with pytest.raises(ValueError, match="group/name"):
        log.write(1, {name: 1.0})
    log.close()


def test_learning_curve_is_a_picture(tmp_path):
    rows = [{"step": step, "loss/critic": 1 / step, "eval/success_rate": step / 10} for step in range(1, 10)]
    file = draw_learning_curve(rows, tmp_path / "curve.png")
    assert file.read_bytes().startswith(b"\x89PNG") and file.stat().st_size > 5000
    assert draw_learning_curve([], tmp_path / "empty.png").is_file()
