"""Rounds in a folder: what is kept when a run is stopped, and what another run may not take over."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.selfsynth import queries
from robot_bridge.auxiliary.recognition.selfsynth.augmentation import views
from robot_bridge.auxiliary.recognition.selfsynth.baselines import tune_on_labels
from robot_bridge.auxiliary.recognition.selfsynth.self_training import SelfTraining
from tests.robot_bridge.auxiliary.recognition.selfsynth.stand_ins import (
    FEATURES,
    ScriptedLMM,
    WordCounts,
    concepts,
    config,
    parts,
    true_name,
)


def script(frame: np.ndarray, prompt: str, which: int) -> str:
    name = true_name(frame)
    if prompt in queries.DESCRIBE:
        return f"it has {FEATURES[name][0]} and {FEATURES[name][1]}."
    return f"this is a {name} because it has {FEATURES[name][which]}."


def training(lmm: ScriptedLMM, folder: Path, seed: int = 0, **settings: object) -> SelfTraining:
    return SelfTraining(lmm, parts(), concepts(), WordCounts(), config(**settings), folder, seed=seed)


def all_rounds(run: SelfTraining, count: int = 3) -> list[float]:
    found = run.evidence()
    return [run.round(number, found) for number in range(1, count + 1)]


@pytest.mark.parametrize("stopped_in", [1, 2, 3])
def test_a_run_that_was_stopped_in_any_round_goes_on_there(tmp_path: Path, stopped_in: int) -> None:
    whole, first, second = (ScriptedLMM(script) for _ in range(3))
    expected = all_rounds(training(whole, tmp_path / "whole"))
    first.fail_at = stopped_in - 1
    with pytest.raises(KeyboardInterrupt):
        all_rounds(training(first, tmp_path / "run"))
    assert all_rounds(training(second, tmp_path / "run")) == expected
    assert float(second.weight) == float(whole.weight) == 3.0
    assert [*first.taught, *second.taught] == whole.taught and len(second.taught) == 4 - stopped_in
    described = [prompt for _, prompt in second.asked if prompt in queries.DESCRIBE]
    assert not described  # the base model's descriptions are kept
    asked_once = len(whole.asked) - len([prompt for _, prompt in whole.asked if prompt in queries.DESCRIBE])
    assert len(first.asked) - 27 + len(second.asked) == asked_once  # a round whose answers were kept is not asked again


def test_more_rounds_go_on_from_the_last_one(tmp_path: Path) -> None:
    all_rounds(training(ScriptedLMM(script), tmp_path, rounds=2), 2)
    further = ScriptedLMM(script)
    all_rounds(training(further, tmp_path, rounds=4), 4)
    assert len(further.taught) == 2 and float(further.weight) == 4.0


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    training(ScriptedLMM(script), tmp_path)
    with pytest.raises(ArmstackError, match="a run with another config.tau; valid: equal settings and data, or a new --run-dir"):
        training(ScriptedLMM(script), tmp_path, tau=0.2)
    with pytest.raises(ArmstackError, match="another seed"):
        training(ScriptedLMM(script), tmp_path, seed=1)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(ArmstackError, match="settings.json: not readable: .*; delete it, and it is made again"):
        training(ScriptedLMM(script), tmp_path)


def test_files_are_json_and_safetensors_alone(tmp_path: Path) -> None:
    all_rounds(training(ScriptedLMM(script), tmp_path))
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"settings.json", "descriptions.json", "concepts.json"} | {
        f"round-{k}.{end}" for k in (1, 2, 3) for end in ("json", "safetensors")
    }
    row = json.loads((tmp_path / "round-2.json").read_text())[0]
    assert set(row) == {"row", "query", "answer", "accepted"}
    (tmp_path / "round-2.safetensors").write_bytes(b"damaged")
    with pytest.raises(ArmstackError, match="round-2.safetensors: not readable"):
        all_rounds(training(ScriptedLMM(script), tmp_path))


def test_answers_are_learnt_with_their_own_picture_and_descriptions_are_mixed_in(tmp_path: Path) -> None:
    lmm = ScriptedLMM(script)
    run = training(lmm, tmp_path, replay=0.5)
    run.round(1, run.evidence())
    taught = lmm.taught[0]
    assert len(taught) == 18 + 9
    assert all(true_of in answer for true_of, query, answer in taught if query not in queries.DESCRIBE)
    replayed = [(true_of, answer) for true_of, query, answer in taught if query in queries.DESCRIBE]
    assert len(replayed) == 9 and all(FEATURES[name][0] in answer for name, answer in replayed)
    tune_on_labels(run)
    said = {answer for _, query, answer in lmm.taught[1] if query not in queries.DESCRIBE}
    assert said == {f"this is a {name}." for name in FEATURES}


def test_random_evidence_is_used_but_z_is_kept_for_its_figures(tmp_path: Path) -> None:
    found = training(ScriptedLMM(script), tmp_path, evidence="random").evidence()
    assert found.used != found.informative and [len(texts) for texts in found.used] == [len(texts) for texts in found.informative]
    assert training(ScriptedLMM(script), tmp_path / "other").evidence().used == found.informative


def test_classes_without_concepts_are_refused(tmp_path: Path) -> None:
    data = parts()
    renamed = type(data)(**{**vars(data), "classes": ("red nut", "blue nut", "spoon")})
    with pytest.raises(RecognitionError, match="no concepts of spoon"):
        SelfTraining(ScriptedLMM(script), renamed, concepts(), WordCounts(), config(), tmp_path, seed=0)


def test_views_are_the_picture_and_others_like_it() -> None:
    frames = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), np.uint8)
    found = views(frames, 2, seed=5)
    assert found.shape == (3, 3, 16, 16, 3) and found.dtype == np.uint8
    assert np.array_equal(found[:, 0], frames) and not np.array_equal(found[:, 1], frames)
    assert np.array_equal(found, views(frames, 2, seed=5)) and not np.array_equal(found, views(frames, 2, seed=6))
