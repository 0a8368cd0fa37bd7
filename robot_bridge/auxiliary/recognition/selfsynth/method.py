"""SelfSynthX as a method of the registry: train, load, evaluate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from rl_core.bundle import Bundle, BundleError
from rl_core.models.language import SentenceEncoder
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.lmm.interface import LMM
from robot_bridge.auxiliary.lmm.visual_tokens import VisualTokens
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of, with_vlm
from robot_bridge.auxiliary.recognition.evaluation import accuracies, known_labels
from robot_bridge.auxiliary.recognition.selfsynth.backends import bundled, kept_decoder, language_model, model_of
from robot_bridge.auxiliary.recognition.selfsynth.citations import citation_figures
from robot_bridge.auxiliary.recognition.selfsynth.concepts import concepts_of, read_concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import SelfSynthConfig
from robot_bridge.auxiliary.recognition.selfsynth.embedder import sentence_vectors
from robot_bridge.auxiliary.recognition.selfsynth.information import usual_support
from robot_bridge.auxiliary.recognition.selfsynth.recogniser import ExplainedRecogniser
from robot_bridge.auxiliary.recognition.selfsynth.self_training import SelfTraining
from robot_bridge.auxiliary.recognition.selfsynth.visibility import visible_features
from robot_bridge.auxiliary.recognition.shots import chosen_shots

Say = Callable[[str], None]
_FIELD = "concepts"


def train(data: ImageData, config: SelfSynthConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """All rounds; what is finished is kept in `run_dir/base` and `run_dir/rounds`, and a run that is started again goes on there.

    Raises:
        RecognitionError: a concept file that cannot be used, or classes without concepts.
        ArmstackError: a folder of another run; names what differs.
        VLMError: no VLM for a decoder or SmolLM2.
        LMMError: no weights where the configuration says.
    """
    concepts = read_concepts(config.concepts).only(data.classes)
    vlm = None if config.backend == "llava" else vlm_at(config.vlm)
    visual = None if vlm is None else VisualTokens(vlm, config.grid, run_dir / "features")
    if config.backend == "decoder" and not config.weights:
        assert vlm is not None and visual is not None
        if config.described:
            described = read_images(config.described)
        else:
            data, described = data.split((2 / 3, 1 / 3), seed)
        lmm: LMM = kept_decoder(run_dir / "base", vlm, visual, described, concepts, config.base, seed, say)
    else:
        lmm = language_model(config, vlm, visual, seed)
    encoder, shots = sentence_vectors(), chosen_shots(data, config.shots, seed)
    training = SelfTraining(lmm, shots, concepts, encoder, config, run_dir / "rounds", seed=seed, say=say)
    found = training.evidence()
    say(f"{len(shots)} pictures described, {np.mean([len(each) for each in found.used]):.1f} concepts each")
    accepted = {f"accepted/{number}": training.round(number, found) for number in range(1, config.rounds + 1)}
    descriptions = encoder.encode([text for texts in found.descriptions for text in texts])
    usual = usual_support(encoder.encode(concepts.every_text()), descriptions, config.tau)
    weights, facts = bundled(lmm, config)
    bundle = recogniser_bundle(
        "selfsynth",
        config,
        weights,
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        arrays={"usual": torch.from_numpy(usual.astype(np.float32))},
        data_fingerprint=fingerprint(shots),
        metrics=accepted,
    )
    bundle = replace(bundle, config={**bundle.config, **facts, _FIELD: concepts.to_json()})
    return bundle if vlm is None else with_vlm(bundle, vlm, config.vlm)


def load(bundle: Bundle) -> ExplainedRecogniser:
    """The recogniser of a bundle; sentence vectors are the packaged MiniLM's."""
    return load_with(bundle, sentence_vectors())


def load_with(bundle: Bundle, encoder: SentenceEncoder) -> ExplainedRecogniser:
    """The recogniser of a bundle.

    Args:
        bundle: that `train` made.
        encoder: the one it was trained with.

    Raises:
        BundleError: something is missing in it.
    """
    recognition = recognition_of(bundle)
    config = recognition.config(SelfSynthConfig)
    if _FIELD not in bundle.config or "usual" not in bundle.arrays:
        raise BundleError(f"bundle of {bundle.method}: no {_FIELD} or no array 'usual'; valid: what `armstack aux train selfsynth` wrote")
    # JSON keeps no order of classes; features and their usual support are in that of the recogniser's.
    concepts = concepts_of(f"bundle of {bundle.method}: {_FIELD}", bundle.config[_FIELD]).only(recognition.classes)
    lmm = model_of(bundle, config, None if config.backend == "llava" else vlm_of(bundle))
    usual = dict(zip(concepts.every_text(), bundle.arrays["usual"].tolist(), strict=True))
    return ExplainedRecogniser(lmm, concepts, encoder, usual, config.tau)


def evaluate(loaded: ExplainedRecogniser, data: ImageData) -> dict[str, float]:
    """Accuracies of the scores, `accuracy_answer` and `accepted` of the words, `ms_per_frame`; of drawn parts what answers cite truly.

    Raises:
        RecognitionError: a class that it does not know, or no pictures.
    """
    labels, said, costs = known_labels(loaded.classes, data), [], []
    for frame in data.frames:
        begun = time.perf_counter()
        said += loaded.judge(frame[None])
        costs.append(time.perf_counter() - begun)
    figures = accuracies(np.stack([each.scores for each in said]).argmax(axis=1), labels)
    names = [data.classes[label] for label in data.labels]
    figures["accuracy_answer"] = float(np.mean([each.label == name for each, name in zip(said, names, strict=True)]))
    figures["accepted"] = float(np.mean([each.accepted for each in said]))
    truth = loaded.concepts
    if truth.known_when_seen and "roll_deg" in data.factors:
        figures |= citation_figures([each.answer for each in said], truth.every_text(), visible_features(data, truth))
    return {**figures, "ms_per_frame": 1000 * float(np.median(costs))}
