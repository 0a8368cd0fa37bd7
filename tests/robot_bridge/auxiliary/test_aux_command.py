"""`armstack aux`: list, data, train, eval."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.bundles import fingerprint
from robot_bridge.auxiliary.registry import AUXILIARY_METHODS
from robot_bridge.auxiliary.unfinished import unfinished
from robot_bridge.commands.output import console
from tests.robot_bridge.auxiliary import fakes
from tests.robot_bridge.auxiliary.fakes import BRIGHTNESS, HERE, small_bundle
from tests.robot_bridge.command_line import Cli

ROW = f"{HERE}:BRIGHTNESS"


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AUXILIARY_METHODS, "brightness", BRIGHTNESS)


def test_from_data_to_figures(cli: Cli, tmp_path: Path) -> None:
    made = cli("aux", "data", "brightness", "--out", tmp_path / "data", "--count", "5", "--bright", "220", "240", "--json")
    assert made.status == 0 and made.figures == {"out": str(tmp_path / "data"), "pictures": 10} and "train" in made.err
    run = tmp_path / "run"
    trained = cli("aux", "train", "brightness", "--data", tmp_path / "data/train", "--run-dir", run, "--config.slope", "9", "--json")
    assert trained.status == 0, trained.err
    assert "limit 0." in trained.err and trained.figures["seconds"] > 0
    bundle = Bundle.load(run / "bundle")
    assert bundle.config["settings"] == {"slope": 9.0}
    assert bundle.data_fingerprint == fingerprint(fakes.grey_data(5, (220, 240))) != fingerprint(fakes.grey_data(5, (220, 241)))
    judged = cli("aux", "eval", "brightness", "--bundle", run / "bundle", "--data", tmp_path / "data/test", "--json")
    assert judged.figures == {"sha256": trained.figures["sha256"], "data": str(tmp_path / "data/test"), "accuracy": 1.0}
    again = cli("aux", "train", ROW, "--data", tmp_path / "data/train", "--run-dir", run, "--config.slope", "9", "--json")
    assert again.figures["sha256"] == trained.figures["sha256"]
    assert [place.name for place in run.glob("bundle*")] == ["bundle"] and "another bundle" not in again.err  # an equal one

    other = cli("aux", "train", ROW, "--data", tmp_path / "data/train", "--run-dir", run, "--config.slope", "8", "--json")
    kept = run / f"bundle-{trained.figures['sha256'][:8]}"
    assert Bundle.load(kept).config["settings"] == {"slope": 9.0} and Bundle.load(run / "bundle").config["settings"] == {"slope": 8.0}
    assert "(settings differ), which is kept as" in " ".join(other.err.split()) and other.figures["bundle"] == str(run / "bundle")
    own = cli("aux", "eval", "brightness", "--bundle", run / "bundle", "--data", tmp_path / "data/train")
    assert "the data that the bundle was trained on" in " ".join(own.err.split())
    fakes.make(tmp_path / "more", say=lambda text: None)
    apart = cli("aux", "eval", "brightness", "--bundle", run / "bundle", "--data", tmp_path / "more/test")
    assert apart.status == 0 and "was trained on" not in " ".join(apart.err.split())


def test_what_a_training_keeps_is_deleted_behind_its_bundle(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(AUXILIARY_METHODS[name].resumes for name in ("tempme", "video-lora", "video-tome", "rfmamba"))
    fakes.make(tmp_path / "data", say=lambda text: None)
    monkeypatch.setitem(AUXILIARY_METHODS, "brightness", replace(BRIGHTNESS, resumes=True))
    run, real = tmp_path / "run", fakes.train

    def train(data: object, config: object, run_dir: Path, **options: Any) -> Bundle:
        unfinished(run_dir).mkdir(exist_ok=True)
        return real(data, config, run_dir, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fakes, "train", train)
    command = ("aux", "train", "brightness", "--data", tmp_path / "data/train", "--run-dir", run)
    with monkeypatch.context() as patch:
        patch.setattr(Bundle, "save", stopped)
        assert cli(*command).status == 130
    assert unfinished(run).is_dir() and not (run / "bundle").exists()
    assert cli(*command).status == 0 and not unfinished(run).exists() and (run / "bundle").is_dir()


def stopped(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_the_list_is_the_registry(cli: Cli) -> None:
    listed = cli("aux", "list", "--json")
    assert set(listed.figures) == set(AUXILIARY_METHODS)
    row = listed.figures["brightness"]
    assert row["kind"] == "recogniser" and row["requests"]["add_shot"] == ["frame", "label"] and row["topic"] == "aux/brightness"
    shown = cli("aux", "--help")
    assert shown.status == 0 and all(f"\n  {name} " in shown.out and m.summary in shown.out for name, m in AUXILIARY_METHODS.items())


def test_the_list_is_read_at_80_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_width", 80)
    lines = cli("aux", "list").err.splitlines()
    assert len(lines) < 4 * len(AUXILIARY_METHODS) and max(map(len, lines)) <= 80
    assert "find, set_vocabulary, reset" in "".join(lines)


def test_a_missing_package_names_the_extra(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.make(tmp_path / "data", say=lambda text: None)
    monkeypatch.setitem(AUXILIARY_METHODS, "brightness", replace(BRIGHTNESS, extra="vlm,language"))

    def absent(*arguments: object, **options: object) -> Bundle:
        raise ImportError("No module named 'onnxruntime'", name="onnxruntime")

    monkeypatch.setattr(fakes, "train", absent)
    outcome = cli("aux", "train", "brightness", "--data", tmp_path / "data/train", "--run-dir", tmp_path / "run")
    assert outcome.status == 2 and "armstack aux train brightness needs a package" in outcome.err, outcome.err
    assert "'onnxruntime'" in outcome.err and "pip install 'armstack[vlm,language]'" in outcome.err


def test_a_model_that_is_not_there_is_said_at_once(cli: Cli, tmp_path: Path) -> None:
    words = ("--data", "nowhere", "--run-dir", tmp_path / "run", "--config.vlm", tmp_path / "nope")
    outcome = cli("aux", "train", "zero-shot" if AUXILIARY_METHODS["zero-shot"].train else "coop", *words)
    assert outcome.status == 2 and f"--config.vlm {tmp_path / 'nope'}: no such folder; valid: what" in outcome.err


def test_help_has_the_words_of_method_and_settings(cli: Cli) -> None:
    data, train, judge = (" ".join(cli("aux", command, "brightness", "--help").out.split()) for command in ("data", "train", "eval"))
    assert "Grey pictures, dark ones and bright ones." in data and "least and largest pixel of bright ones." in data and "--say" not in data
    assert "dark or bright." in train and "--config.slope" in train and "Of the logistic curve." in train and "--parents" in train
    assert "--bundle" in judge and "--json" in judge
    vlm = " ".join(cli("aux", "vlm", "--help").out.split())
    assert "Trains the small VLM" in vlm and all(option in vlm for option in ("--out", "--data", "--epochs", "--json"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("dance",), "'dance', valid: list, vlm, data, train, eval"),
        (("train", "brightnes"), "auxiliary method 'brightnes', valid: .*brightness"),
        (
            ("train", "brightness", "--run-dir", "RUN"),
            "--data is missing: brightness learns from data, e.g. of",
        ),
        (("train", "brightness", "--run-dir", "RUN", "--data", "nowhere"), "nowhere: no such folder"),
        (
            ("train", "brightness", "--run-dir", "RUN", "--parents", "BUNDLE"),
            "--parents with brightness, a recogniser; valid",
        ),
        (("train", "brightness", "--run-dir", "RUN", "--threads", "0"), "--threads: 0, valid: 1 or more"),
        (("train", "untrained", "--run-dir", "RUN"), "method untrained is not trained; valid: .*brightness"),
        (("eval", "brightness", "--bundle", "nowhere", "--data", "DATA"), "nowhere: no bundle.json"),
        (("eval", "other", "--bundle", "BUNDLE", "--data", "DATA"), "bundle: bundle of method 'brightness', valid: other"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.setitem(AUXILIARY_METHODS, "untrained", replace(BRIGHTNESS, name="untrained", train=""))
    monkeypatch.setitem(AUXILIARY_METHODS, "other", replace(BRIGHTNESS, name="other"))
    fakes.make(tmp_path / "data", say=lambda text: None)
    places = {"RUN": str(tmp_path / "run"), "DATA": str(tmp_path / "data/test"), "BUNDLE": str(small_bundle(tmp_path / "bundle"))}
    outcome = cli("aux", *(places.get(word, word) for word in words))
    assert outcome.status == 2
    assert re.search(says, outcome.err), outcome.err
    assert not (tmp_path / "run/bundle").exists()


def test_nan_is_never_written(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.make(tmp_path / "data", say=lambda text: None)
    train = fakes.train

    def broken(*arguments: object, **options: object) -> Bundle:
        bundle = train(*arguments, **options)  # type: ignore[arg-type]
        bundle.weights["limit"][0] = float("nan")
        return bundle

    monkeypatch.setattr(fakes, "train", broken)
    outcome = cli("aux", "train", "brightness", "--data", tmp_path / "data/train", "--run-dir", tmp_path / "run")
    assert outcome.status == 2 and "ended with NaN or infinity in limit" in outcome.err and not (tmp_path / "run/bundle").exists()


def test_a_transforms_training_gets_its_parents(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(BRIGHTNESS, name="average", kind="transform", train=f"{HERE}:merge", load=f"{HERE}:load_average", needs=(), requests={})
    monkeypatch.setitem(AUXILIARY_METHODS, "average", row)
    parents = [small_bundle(tmp_path / name) for name in ("a", "b")]
    assert "a transform; valid" in cli("aux", "train", "average", "--run-dir", tmp_path / "run").err
    outcome = cli("aux", "train", "average", "--run-dir", tmp_path / "run", "--parents", *parents, "--json")
    assert outcome.status == 0, outcome.err
    made = Bundle.load(tmp_path / "run/bundle")
    assert (made.kind, made.method) == ("transform", "average") and len(made.parents) == 2
    assert json.loads((tmp_path / "run/bundle/bundle.json").read_text())["parents"] == list(made.parents)
