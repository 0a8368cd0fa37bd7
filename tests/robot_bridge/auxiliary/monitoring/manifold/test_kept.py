"""A training that is stopped goes on where it was."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch

from robot_bridge.auxiliary.monitoring.manifold import kept
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig, DDPMTraining
from robot_bridge.auxiliary.monitoring.manifold.pixels import cut
from robot_bridge.auxiliary.monitoring.manifold.sweep import Level
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import real_frames

CROPS = cut(real_frames().frames, 8)
CONFIG = DDPMConfig(side=8, width=8, levels=10, updates=12, batch_size=8)


def stop_at(update: int, number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(DDPMTraining):
        def update(self) -> float:
            if self.updates + 1 == update:
                os.kill(os.getpid(), number)
            return super().update()

    monkeypatch.setattr(kept, "DDPMTraining", Stopped)


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_ddpm_that_is_stopped_goes_on_to_the_bit(
    number: signal.Signals, ends: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    stop_at(5, number, monkeypatch)
    with pytest.raises(ends):
        kept.kept_ddpm(tmp_path / "run", CROPS, CONFIG, seed=1, say=said.append)
    assert "update 5 of 12 is kept; the same command goes on from there" in said
    monkeypatch.undo()
    stopped = kept.kept_ddpm(tmp_path / "run", CROPS, CONFIG, seed=1, say=said.append)
    assert (
        "the DDPM goes on from update 5 of 12" in said
        and said[-1].startswith("the DDPM is kept as ")
        and any("s left" in line for line in said)
    )
    through = kept.kept_ddpm(tmp_path / "other", CROPS, CONFIG, seed=1, say=lambda text: None)
    assert all(torch.equal(a, b) for a, b in zip(stopped.net.state_dict().values(), through.net.state_dict().values(), strict=True))
    assert [file.suffix for file in (tmp_path / "run").iterdir()] == [".safetensors"]  # its checkpoints are gone


def test_other_settings_begin_anew_and_a_damaged_checkpoint_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    stop_at(5, signal.SIGINT, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        kept.kept_ddpm(tmp_path, CROPS, CONFIG, seed=1, say=said.append)
    monkeypatch.undo()
    kept.kept_ddpm(tmp_path, CROPS, CONFIG, seed=2, say=said.append)
    assert not any("goes on from update" in line for line in said)
    for file in tmp_path.rglob("state.json"):
        file.write_text("{}")
    kept.kept_ddpm(tmp_path, CROPS, CONFIG, seed=1, say=said.append)
    assert any("damaged" in line and "from the beginning" in line for line in said)


def test_checkpoints_come_without_a_signal_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_CHECKPOINT_S", 0.0)

    class Killed(DDPMTraining):
        def update(self) -> float:
            if self.updates == 7:
                raise MemoryError
            return super().update()

    monkeypatch.setattr(kept, "DDPMTraining", Killed)
    with pytest.raises(MemoryError):
        kept.kept_ddpm(tmp_path, CROPS, CONFIG, seed=1, say=lambda text: None)
    monkeypatch.undo()
    said: list[str] = []
    kept.kept_ddpm(tmp_path, CROPS, CONFIG, seed=1, say=said.append)
    assert "the DDPM goes on from update 7 of 12" in said


def test_a_sweep_is_kept(tmp_path: Path) -> None:
    levels = [Level(step=2, alpha=0.1, auc={"criterion": 0.75})]
    assert kept.kept_sweep(tmp_path, "a", lambda: levels, print) == levels

    def never() -> list[Level]:
        raise AssertionError

    assert kept.kept_sweep(tmp_path, "a", never, print) == levels
    (tmp_path / "sweep-a.json").write_text("[{")
    assert kept.kept_sweep(tmp_path, "a", lambda: levels, print) == levels
