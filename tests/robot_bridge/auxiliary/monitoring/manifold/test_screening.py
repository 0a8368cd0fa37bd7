"""Imagined episodes in a dataset are found and left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import read_dataset, write_dataset
from robot_bridge.auxiliary.image_data import ImageDataError
from robot_bridge.auxiliary.monitoring.manifold import training
from robot_bridge.auxiliary.monitoring.manifold.calibration import Calibration
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.dataset_frames import FRAMES
from robot_bridge.auxiliary.monitoring.manifold.frames import read_frames
from robot_bridge.auxiliary.monitoring.manifold.screening import SHOWN, screen
from robot_bridge.dataset_authenticity import read_detector
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import flat_frames, real_frames
from tests.robot_bridge.command_line import Cli

CONTRACT = RobotContract(
    robot="two_axes",
    observation=(
        Channel(name="eef_pos", names=("x", "y"), unit="m", frame="base"),
        Channel(name="front", kind="image", shape=(16, 16, 3), encoding="rgb8", row_order="bottom_up"),
        Channel(name="wrist", kind="image", shape=(8, 8, 3), encoding="rgb8", row_order="top_down"),
    ),
    action=Action(names=("x", "y"), meaning="delta", space="end_effector", scale=(1.0, 1.0), units=("m", "m")),
)
STEPS = 69


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Judges contrast: what generated frames of these tests lack."""
    folder = tmp_path_factory.mktemp("authenticity")
    tiny = {"side": 8, "width": 8, "levels": 10, "updates": 1, "batch_size": 8}
    config = ManifoldConfig().override(ddpm=tiny, score="contrast", alpha=0.4, noises=2)
    return training.train(real_frames(objects=30), config, folder, seed=0, say=lambda text: None).save(folder / "bundle")


def episode(index: int, imagined: bool) -> Episode:
    rng = np.random.default_rng(index)
    pictures = flat_frames(STEPS + 1, seed=index) if imagined else real_frames(objects=35, each=1, seed=50 + index).frames
    return Episode(
        observations={
            "eef_pos": rng.normal(size=(STEPS + 1, 2)).astype(np.float32),
            "front": pictures,
            "wrist": rng.integers(0, 256, (STEPS + 1, 8, 8, 3), dtype=np.uint8),
        },
        actions=rng.uniform(-1, 1, (STEPS, 2)).astype(np.float32),
        rewards=np.zeros(STEPS, np.float32),
        terminal=False,
        truncated=True,
        stamps_ns=np.arange(STEPS + 1, dtype=np.int64) * 50_000_000,
        uuid=f"episode-{index}",
    )


def dataset(imagined: tuple[int, ...]) -> Dataset:
    return Dataset(contract=CONTRACT, episodes=tuple(episode(index, index in imagined) for index in range(5)))


def test_imagined_episodes_are_named_and_left_out_of_the_copy(cli: Cli, bundle: Path, tmp_path: Path) -> None:
    file = write_dataset(dataset(imagined=(1, 3)), tmp_path / "replay.hdf5")
    outcome = cli("doctor", file, "--authenticity", bundle, "--cleaned", tmp_path / "clean.hdf5", "--json")
    assert outcome.status == 1
    found = outcome.figures["authenticity"]
    assert found["suspicious"] == ["episode-1", "episode-3"] and found["skipped"].keys() == {"wrist"}
    shares = {row["uuid"]: row for row in found["episodes"]}
    assert len(shares) == 5 and all(row["channel"] == "front" and row["frames"] == FRAMES for row in shares.values())
    assert shares["episode-1"]["flagged"] == 1 and all(shares[f"episode-{index}"]["flagged"] < 0.5 for index in (0, 2, 4))
    assert {row["allowed"] for row in shares.values()} == {shares["episode-0"]["allowed"]}
    assert "the bundle needs (16, 16, 3)" in found["skipped"]["wrist"] and "episode-3" in outcome.err
    cleaned = read_dataset(tmp_path / "clean.hdf5")
    assert [each.uuid for each in cleaned.episodes] == ["episode-0", "episode-2", "episode-4"]
    assert cleaned.episodes[0].meta["history"][-1]["operation"] == "filter" and outcome.figures["cleaned"]["episodes"] == 3
    assert np.array_equal(cleaned.episodes[1].observations["front"], dataset(()).episodes[2].observations["front"])
    again = cli("doctor", tmp_path / "clean.hdf5", "--authenticity", bundle, "--json")
    assert again.status == 0 and again.figures["authenticity"]["suspicious"] == []
    levels = {f["subject"]: f["level"] for f in again.figures["findings"] if f["subject"].startswith("authenticity")}
    assert levels == {"authenticity of wrist": "warning", "authenticity of front": "ok"}


def test_a_place_that_is_taken_is_refused_before_anything_is_judged(cli: Cli, bundle: Path, tmp_path: Path) -> None:
    file = write_dataset(dataset(imagined=(0,)), tmp_path / "replay.hdf5")
    outcome = cli("doctor", file, "--authenticity", bundle, "--cleaned", file)
    assert outcome.status == 2 and "exists already; a dataset is replaced with --overwrite" in outcome.err
    outcome = cli("doctor", file, "--authenticity", bundle, "--cleaned", file, "--overwrite")
    assert outcome.status == 2 and "is the dataset that is read" in outcome.err and len(read_dataset(file)) == 5
    for _ in range(2):
        outcome = cli("doctor", file, "--authenticity", bundle, "--cleaned", tmp_path / "clean.hdf5", "--overwrite")
        assert outcome.status == 1
    assert [each.uuid for each in read_dataset(tmp_path / "clean.hdf5").episodes] == [f"episode-{index}" for index in range(1, 5)]


def test_a_copy_that_leaves_nothing_out_says_that_it_is_still_suspicious(
    cli: Cli, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each episode lies within its own share, and all together do not within theirs."""
    monkeypatch.setattr(Calibration, "allowed_share", lambda self, counts, tests=1, level=0.01: 1.0 if len(counts) == 1 else 0.0)
    file = write_dataset(dataset(imagined=(0,)), tmp_path / "replay.hdf5")
    outcome = cli("doctor", file, "--authenticity", bundle, "--cleaned", tmp_path / "clean.hdf5", "--json")
    cleaned = outcome.figures["cleaned"]
    assert outcome.status == 1 and (cleaned["episodes"], cleaned["left_out"], cleaned["suspicious_channels"]) == (5, 0, ["front"])
    said = [finding for finding in outcome.figures["findings"] if finding["subject"].startswith("copy ")]
    assert len(said) == 1 and said[0]["level"] == "error" and "so nothing was left out" in said[0]["found"]
    assert "5 of 5 episodes; no episode is suspicious by itself" in " ".join(outcome.err.split())
    [blind] = [finding for finding in outcome.figures["findings"] if finding["subject"] == "authenticity of single episodes"]
    assert blind["level"] == "warning" and blind["found"].startswith("5 of 5 cannot be judged")


def test_a_bundle_whose_real_frames_explain_any_share_is_not_called_fine(
    cli: Cli, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Calibration, "allowed_share", lambda self, counts, tests=1, level=0.01: 1.22)
    file = write_dataset(dataset(imagined=(0,)), tmp_path / "replay.hdf5")
    levels = {f["subject"]: (f["level"], f["found"]) for f in cli("doctor", file, "--authenticity", bundle, "--json").figures["findings"]}
    level, found = levels["authenticity of front"]
    assert level == "warning" and found.endswith("real ones explain 122.0%: cannot be judged")


def test_a_format_that_cannot_hold_the_copy_is_refused_before_anything_is_judged(
    cli: Cli, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robot_bridge.dataset_authenticity.screen", None)
    monkeypatch.setattr("robot_bridge.dataset_authenticity.losses", lambda writer, data: {"meta": "is dropped"})
    file = write_dataset(dataset(imagined=(0,)), tmp_path / "replay.hdf5")
    outcome = cli("doctor", file, "--authenticity", bundle, "--cleaned", tmp_path / "clean")
    assert outcome.status == 2 and "cannot hold meta (is dropped); valid: " in outcome.err and "clean.hdf5" in outcome.err


def test_the_most_suspicious_frames_come_on_a_sheet(cli: Cli, bundle: Path, tmp_path: Path) -> None:
    file = write_dataset(dataset(imagined=(1, 3)), tmp_path / "replay.hdf5")
    outcome = cli("doctor", file, "--authenticity", bundle, "--sheet", tmp_path / "sheet.png", "--json")
    assert outcome.figures["sheet"] == str(tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.size == (6 * 192, 4 * 222)
    recogniser, made_for = (lambda found: (found.recogniser, found.made_for))(read_detector(bundle))
    suspects = screen(dataset(imagined=(1, 3)), recogniser, made_for).suspects
    assert len(suspects) == SHOWN and {each.uuid for each in suspects} <= {"episode-1", "episode-3"}
    assert [each.deviations for each in suspects] == sorted((each.deviations for each in suspects), reverse=True)
    first = suspects[0]
    stored = dataset(imagined=(1, 3)).episodes[int(first.uuid[-1])].observations["front"][first.step]
    assert np.array_equal(first.frame, stored[::-1])  # the channel stands on its head
    assert recogniser.predict(first.frame[None]).values["deviations"][0] == pytest.approx(first.deviations, abs=1e-4)


def test_no_sheet_where_nothing_is_flagged_or_asked_wrongly(
    cli: Cli, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_dataset(dataset(imagined=()), tmp_path / "replay.hdf5")
    assert "the ending is '.jpg', valid: .png" in cli("doctor", file, "--authenticity", bundle, "--sheet", tmp_path / "sheet.jpg").err
    assert "valid with --authenticity" in cli("doctor", file, "--sheet", tmp_path / "sheet.png").err
    monkeypatch.setattr(Calibration, "excess", lambda self, frames: frames * 0 - 1)
    outcome = cli("doctor", file, "--authenticity", bundle, "--sheet", tmp_path / "sheet.png")
    assert "no frame looks generated" in " ".join(outcome.err.split()) and not (tmp_path / "sheet.png").exists()


def test_nothing_is_written_where_all_is_imagined(cli: Cli, bundle: Path, tmp_path: Path) -> None:
    file = write_dataset(dataset(imagined=tuple(range(5))), tmp_path / "replay.hdf5")
    outcome = cli("doctor", file, "--authenticity", bundle, "--cleaned", tmp_path / "clean.hdf5", "--json")
    found = {finding["subject"]: finding["found"] for finding in outcome.figures["findings"]}
    assert "all 5 episodes look generated" in found[f"copy {tmp_path / 'clean.hdf5'}"] and not (tmp_path / "clean.hdf5").exists()
    assert "authenticity of front" in found
    [channel] = outcome.figures["authenticity"]["channels"]
    assert outcome.status == 1 and channel["suspicious"] and channel["flagged"] == 1


def test_wrong_calls_say_what_is_valid(cli: Cli, bundle: Path, tmp_path: Path) -> None:
    small = replace(CONTRACT, observation=(CONTRACT.observation[0], CONTRACT.observation[2]))
    kept = [replace(each, observations={k: each.observations[k] for k in ("eef_pos", "wrist")}) for each in dataset(()).episodes]
    file = write_dataset(Dataset(contract=small, episodes=tuple(kept)), tmp_path / "small.hdf5")
    outcome = cli("doctor", file, "--authenticity", bundle)
    assert outcome.status == 2 and "nothing to judge (wrist: shape (8, 8, 3), the bundle needs (16, 16, 3))" in outcome.err
    outcome = cli("doctor", file, "--authenticity", bundle.parent)
    assert outcome.status == 2 and f"valid: {bundle}, which is one" in outcome.err
    assert "valid: RUN/bundle, as `armstack aux train manifold` writes it" in cli("doctor", file, "--authenticity", tmp_path).err
    assert "valid with a dataset, found no target" in cli("doctor", "--authenticity", bundle).err
    assert "valid with --authenticity" in cli("doctor", file, "--cleaned", tmp_path / "x.hdf5").err


def test_a_dataset_is_read_as_frames_of_its_camera(tmp_path: Path) -> None:
    whole = dataset(())
    front = replace(CONTRACT, observation=CONTRACT.observation[:2])
    kept = tuple(replace(each, observations={k: each.observations[k] for k in ("eef_pos", "front")}) for each in whole.episodes)
    found = read_frames(write_dataset(Dataset(contract=front, episodes=kept), tmp_path / "front.hdf5"))
    assert found.frames.shape == (5 * FRAMES, 16, 16, 3) and found.classes == ("front",)
    assert np.array_equal(np.bincount(found.instances), [FRAMES] * 5)  # an episode is one scene
    assert np.array_equal(found.frames[0], kept[0].observations["front"][0][::-1])  # the channel stands on its head
    with pytest.raises(
        ImageDataError, match=r"image channels: front \(16, 16, 3\), wrist \(8, 8, 3\); valid: one or more, all of one size"
    ):
        read_frames(write_dataset(whole, tmp_path / "both.hdf5"))
    (tmp_path / "notes.txt").write_text("no dataset")
    with pytest.raises(ImageDataError, match="is a file and no dataset; valid: "):
        read_frames(tmp_path / "notes.txt")
