"""From pictures to a bundle that explains: the whole method on a tiny VLM."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle, BundleError
from rl_core.errors import ArmstackError
from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.explanations import Explainer, lines_of
from robot_bridge.auxiliary.lmm import small as small_lmm
from robot_bridge.auxiliary.lmm.interface import LMMError
from robot_bridge.auxiliary.lmm.small import SmallLMM
from robot_bridge.auxiliary.lmm.visual_tokens import VisualTokens
from robot_bridge.auxiliary.payloads import to_json
from robot_bridge.auxiliary.protocols import Recogniser
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.selfsynth import method
from robot_bridge.auxiliary.recognition.selfsynth.backends import kept_decoder
from robot_bridge.auxiliary.recognition.selfsynth.concepts import read_concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import BaseConfig
from robot_bridge.auxiliary.recognition.selfsynth.information import usual_support
from robot_bridge.auxiliary.recognition.selfsynth.recogniser import ExplainedRecogniser
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from tests.robot_bridge.auxiliary.recognition.selfsynth.drawn_like import NAMES, concept_file, drawn_parts, small_sizes, tiny_settings
from tests.robot_bridge.auxiliary.recognition.selfsynth.stand_ins import FEATURES, ScriptedLMM, WordCounts, concepts, parts, true_name
from tests.robot_bridge.auxiliary.tiny_vlm import AverageColours, tiny_vlm


@pytest.fixture(scope="module")
def small() -> pytest.MonkeyPatch:
    """The tiny VLM and word counts instead of the packaged networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_lmm, "DecoderSizes", small_sizes)
        patch.setattr(method, "vlm_at", lambda folder: tiny_vlm())
        patch.setattr(method, "sentence_vectors", WordCounts)
        of = method.vlm_of
        patch.setattr(method, "vlm_of", lambda bundle: of(bundle, AverageColours()))
        yield patch


@pytest.fixture(scope="module")
def trained(small: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Folder of a bundle, and what training said."""
    run, said = tmp_path_factory.mktemp("run"), []  # type: ignore[var-annotated]
    bundle = method.train(drawn_parts(6, 1), tiny_settings(run), run, seed=0, say=said.append)
    return bundle.save(run / "bundle"), said


def test_a_bundle_says_the_same_after_it_was_written_and_read(trained, small: pytest.MonkeyPatch) -> None:
    folder, said = trained
    assert any(line.startswith("base: ") for line in said) and any(line.startswith("round 2: ") for line in said)
    bundle = Bundle.load(folder)
    first, again = (load_auxiliary(find_method("selfsynth"), bundle) for _ in range(2))
    frames = drawn_parts(2, 2).frames
    prediction, other = first.predict(frames), again.predict(frames[::-1])
    prediction.check(len(frames), NAMES)
    assert isinstance(first, Recogniser) and isinstance(first, Explainer) and first.classes == NAMES
    np.testing.assert_allclose(prediction.scores, other.scores[::-1], atol=1e-5)
    for name, numbers in prediction.values.items():  # each frame by itself, draws included
        np.testing.assert_allclose(numbers, other.values[name][::-1], atol=1e-4)
    np.testing.assert_allclose(prediction.scores.sum(axis=1), 1.0, atol=1e-5)
    assert set(prediction.values) == {"accepted", "support", "unexplained"}
    assert first.explain(frames[0]) == first.explain(frames[0]) and set(bundle.metrics) == {"accepted/1", "accepted/2"}
    assert first.ask(frames[0], "what is this.").keys() == {"answer"}
    direct = method.train(drawn_parts(6, 1), tiny_settings(folder.parent), folder.parent, seed=0, say=lambda text: None)
    unsaved = method.load(direct)  # its concepts never went through a file, which orders names anew
    assert unsaved._usual == first._usual and unsaved.explain(frames[0]) == first.explain(frames[0])
    figures = method.evaluate(first, drawn_parts(3, 2))
    assert {"accuracy", "accuracy_answer", "accepted", "citing_two", "cited_precision", "ms_per_frame"} <= set(figures)


def test_training_again_finds_every_round_done(trained, small: pytest.MonkeyPatch) -> None:
    folder, _ = trained
    said: list[str] = []
    bundle = method.train(drawn_parts(6, 1), tiny_settings(folder.parent), folder.parent, seed=0, say=said.append)
    assert sum("found in the run's folder" in line for line in said) == 2 and not any(line.startswith("base: ") for line in said)
    before = Bundle.load(folder)
    assert all(bool((bundle.weights[name] == before.weights[name]).all()) for name in before.weights)


def test_a_base_decoder_of_other_settings_is_not_taken_over(trained, small: pytest.MonkeyPatch) -> None:
    run = trained[0].parent
    shutil.copytree(run / "base", run.parent / "other" / "base")  # as where `rounds` was removed
    settings = tiny_settings(run, base=BaseConfig(epochs=2).to_dict())
    with pytest.raises(ArmstackError, match="base: a run with another base.epochs, described, seed; valid: equal settings and data"):
        method.train(drawn_parts(6, 1), settings, run.parent / "other", seed=5, say=lambda text: None)


def test_a_stopped_base_decoder_goes_on_and_ends_as_one_that_was_not(small: pytest.MonkeyPatch, tmp_path: Path) -> None:
    vlm, data, base = tiny_vlm(), drawn_parts(4, 1), BaseConfig(epochs=3)
    concepts_here = read_concepts(str(concept_file(tmp_path)))

    said: list[str] = []

    def made(name: str) -> SmallLMM:
        return kept_decoder(tmp_path / name, vlm, VisualTokens(vlm, 2), data, concepts_here, base, 0, said.append)

    whole, keep, counts = made("whole"), CheckpointStore.save, []

    def stopping(self: CheckpointStore, step: int, state: dict[str, object]) -> Path:
        keep(self, step, state)
        counts.append(step)
        if len(counts) == 2:
            raise KeyboardInterrupt
        return self.path(step)

    small.setattr(CheckpointStore, "save", stopping)
    with pytest.raises(KeyboardInterrupt):
        made("run")
    assert said[-1] == "base: whole epochs are kept; the same command goes on behind the last of them"
    again = made("run")
    small.setattr(CheckpointStore, "save", keep)
    assert counts == [1, 2, 3]  # the first two epochs are not done twice
    assert all(torch.equal(values, again.trained()[name]) for name, values in whole.trained().items())
    assert sorted(place.name for place in (tmp_path / "run").iterdir()) == ["decoder", "settings.json"]


@pytest.mark.parametrize("backend", ["smollm", "llava"])
def test_a_backend_without_weights_says_which_field_is_empty(small: pytest.MonkeyPatch, tmp_path: Path, backend: str) -> None:
    with pytest.raises(LMMError, match=r"field weights \(--config.weights\) is empty; valid: a folder with config.json"):
        method.train(drawn_parts(6, 1), tiny_settings(tmp_path, backend=backend), tmp_path, seed=0, say=lambda text: None)


def test_a_bundle_without_its_parts_is_refused(trained, small: pytest.MonkeyPatch) -> None:
    bundle = Bundle.load(trained[0])
    with pytest.raises(BundleError, match="no concepts or no array 'usual'"):
        method.load(replace(bundle, arrays={}))
    without = {name: value for name, value in bundle.config.items() if name != "lmm"}
    with pytest.raises(BundleError, match="config has no 'lmm'"):
        method.load(replace(bundle, config=without))


def test_pictures_without_a_scene_make_no_decoder(small: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(RecognitionError, match="what is visible cannot be known"):
        method.train(replace(drawn_parts(6, 1), factors={}), tiny_settings(tmp_path), tmp_path, seed=0, say=lambda text: None)


# -- what is said of a frame ---------------------------------------------------------------------------------------------------


def explainer(lmm: ScriptedLMM) -> ExplainedRecogniser:
    every, encoder = concepts().every_text(), WordCounts()
    described = [f"it has {features[0]} and {features[1]}." for features in FEATURES.values()]
    descriptions = encoder.encode([*described, "it has fiery rim and short shadow."])
    usual = dict(zip(every, usual_support(encoder.encode(every), descriptions, 0.1).tolist(), strict=True))
    return ExplainedRecogniser(lmm, concepts(), encoder, usual, 0.1)


def says(answer: str, description: str = "it has {0} and {1}."):
    """A script: `answer` and `description` with the class' name and features filled in."""

    def script(frame: np.ndarray, prompt: str, which: int) -> str:
        name = true_name(frame)
        return (description if "without its name" in prompt else answer).format(*FEATURES[name], name=name)

    return script


def test_an_explanation_names_features_with_the_support_of_the_picture() -> None:
    found = explainer(ScriptedLMM(says("this is a {name} because it has {0}, {1} and {3}."))).explain(parts().frames[0])
    assert found["label"] == "red nut" and found["accepted"] and json.loads(to_json(found)) == found
    supports = {each["feature"]: each["support"] for each in found["features"]}
    assert list(supports) == [FEATURES["red nut"][place] for place in (0, 1, 3)]
    assert supports[FEATURES["red nut"][0]] > 0.7 > 0.5 > supports[FEATURES["red nut"][3]]
    assert found["support"] == pytest.approx(np.mean(list(supports.values())))
    lines = lines_of(found)
    assert lines[0] == "accepted: red nut" and lines[1].startswith("- six warm corners 0.") and len(lines) == 4


@pytest.mark.parametrize(
    "answer",
    [
        "this is a blue nut because it has {0} and {1}.",  # another class than the likeliest
        "this is a {name}.",  # nothing cited
        "this is a {name} because it has {2} and {3}.",  # nothing of that in the picture
        "it has {0} and {1}.",  # no name
    ],
)
def test_an_answer_that_is_not_borne_out_is_not_accepted(answer: str) -> None:
    recogniser = explainer(ScriptedLMM(says(answer)))
    frames = parts().frames[:1]
    prediction = recogniser.predict(frames)
    assert prediction.values["accepted"][0] == 0.0 and prediction.values["unexplained"][0] == 1.0
    assert prediction.scores.argmax() == 0 and lines_of(recogniser.explain(frames[0]))[0].startswith("NOT ACCEPTED: ")


def test_words_on_a_judged_frame_cost_nothing_more_and_memory_stays_small() -> None:
    lmm = ScriptedLMM(says("this is a {name}."))
    recogniser = explainer(lmm)
    frames = np.concatenate([parts(each=3).frames + shift for shift in range(10)])
    recogniser.predict(frames[:2])
    asked = len(lmm.asked)
    recogniser.explain(frames[1])
    assert len(lmm.asked) == asked
    recogniser.predict(frames)
    assert len(recogniser._newest) == 64
