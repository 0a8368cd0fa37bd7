"""CoOp, KgCoOp, DeKg and zero-shot: how they contain each other, and what they keep."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.recognition import bundled_vlm, coop, dekg, kgcoop, zero_shot
from robot_bridge.auxiliary.recognition.class_prompts import class_logits, template_vectors
from robot_bridge.auxiliary.recognition.class_vectors import OpenVocabularyRecogniser
from robot_bridge.auxiliary.recognition.coop import CoOpConfig
from robot_bridge.auxiliary.recognition.dekg import DeKgConfig
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.evaluation import evaluate
from robot_bridge.auxiliary.recognition.kgcoop import KgCoOpConfig
from robot_bridge.auxiliary.recognition.prompt_tuning import Schedule
from robot_bridge.auxiliary.recognition.shared_context import context_vectors
from robot_bridge.auxiliary.recognition.zero_shot import ZeroShotConfig
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, AverageColours, coloured_parts, text_features, tiny_vlm

SHORT = Schedule(epochs=6, lr=0.02, batch_size=8)


@pytest.fixture(scope="module")
def vlm():
    return tiny_vlm()


@pytest.fixture(scope="module")
def shots(vlm):
    return text_features(vlm, 24, 1.5)


def test_without_the_penalty_dekg_is_kgcoop(vlm, shots):
    kg = kgcoop.fit(vlm, *shots, CLASSES, KgCoOpConfig(schedule=SHORT))
    assert torch.equal(dekg.fit(vlm, *shots, CLASSES, DeKgConfig(schedule=SHORT, w2=0)).context, kg)
    assert not torch.equal(dekg.fit(vlm, *shots, CLASSES, DeKgConfig(schedule=SHORT, w2=600)).context, kg)


def test_without_both_terms_dekg_is_coop(vlm, shots):
    plain = coop.fit(vlm, *shots, CLASSES, CoOpConfig(schedule=SHORT))
    assert torch.equal(dekg.fit(vlm, *shots, CLASSES, DeKgConfig(schedule=SHORT, w1=0, w2=0)).context, plain)
    assert not torch.equal(kgcoop.fit(vlm, *shots, CLASSES, KgCoOpConfig(schedule=SHORT)), plain)


def test_tuning_fits_the_shots(vlm, shots):
    features, labels = shots
    vectors = context_vectors(
        vlm, coop.fit(vlm, features, labels, CLASSES, CoOpConfig(schedule=Schedule(epochs=40, lr=0.02, batch_size=8))), CLASSES
    )
    before = F.cross_entropy(class_logits(features, template_vectors(vlm, CLASSES), vlm.logit_scale), labels)
    assert float(F.cross_entropy(class_logits(features, vectors, vlm.logit_scale), labels)) < 0.9 * float(before)


def test_knowledge_keeps_class_vectors_near_the_hand_written_ones(vlm, shots):
    frozen, schedule = template_vectors(vlm, CLASSES), Schedule(epochs=40, lr=0.02, batch_size=8)
    free = context_vectors(vlm, coop.fit(vlm, *shots, CLASSES, CoOpConfig(schedule=schedule)), CLASSES)
    kept = context_vectors(vlm, kgcoop.fit(vlm, *shots, CLASSES, KgCoOpConfig(schedule=schedule)), CLASSES)
    assert float(kgcoop.knowledge_loss(kept, frozen)) < 0.5 * float(kgcoop.knowledge_loss(free, frozen))


def test_no_weight_of_the_model_is_tuned(vlm, shots):
    before = {name: value.clone() for name, value in vlm.state_dict().items()}
    dekg.fit(vlm, *shots, CLASSES, DeKgConfig.preset("tcp").override(schedule={"epochs": 2, "optimizer": "adam"}))
    assert all(torch.equal(value, before[name]) for name, value in vlm.state_dict().items())


def test_the_class_aware_variant_learns_and_makes_vectors_of_new_names(vlm, shots):
    features, labels = shots
    config = DeKgConfig.preset("tcp").override(schedule={"epochs": 40, "optimizer": "adam", "batch_size": 8})
    found = dekg.fit(vlm, features, labels, CLASSES, config)
    assert set(found.gradients) == {"ce", "kg", "hsic"} and found.gradients["hsic"] < found.gradients["kg"]
    assert found.network is not None and found.network.block == 2
    frozen, untuned = template_vectors(vlm, CLASSES), dekg.fit(vlm, features, labels, CLASSES, config.override(schedule={"lr": 1e-9}))
    apart = [float(kgcoop.knowledge_loss(each.vectors(vlm, CLASSES, config.template), frozen)) for each in (found, untuned)]
    assert apart[0] < 0.5 * apart[1]
    assert found.vectors(vlm, ("clock", "lamp", "coin"), config.template).shape == (3, vlm.embed_dim)


def test_the_first_epoch_warms_up_and_the_rest_follow_a_cosine():
    rates = [Schedule(epochs=5, lr=1.0).rate(epoch) for epoch in range(5)]
    assert rates[0] == 1e-5 and rates[1] > rates[2] > rates[3] > rates[4] > 0 and rates[1] == pytest.approx(0.9045, abs=1e-4)


@pytest.fixture
def saved_vlm(vlm, tmp_path, monkeypatch):
    """Folder of the tiny VLM; modules find it with its own backbone."""
    vlm.save(tmp_path / "vlm")
    make = bundled_vlm.SmallVLM.load
    monkeypatch.setattr(bundled_vlm.SmallVLM, "load", lambda folder: make(folder, AverageColours()))
    for module in (dekg, zero_shot):
        monkeypatch.setattr(module, "vlm_of", lambda bundle: bundled_vlm.vlm_of(bundle, AverageColours()))
    monkeypatch.setattr("robot_bridge.auxiliary.recognition.shared_context.vlm_of", lambda b: bundled_vlm.vlm_of(b, AverageColours()))
    return str(tmp_path / "vlm")


@pytest.mark.parametrize(
    ("method", "config"),
    [
        (zero_shot, ZeroShotConfig()),
        (coop, CoOpConfig(schedule=SHORT)),
        (kgcoop, KgCoOpConfig(schedule=SHORT)),
        (dekg, DeKgConfig(schedule=SHORT)),
        (dekg, DeKgConfig.preset("tcp").override(schedule={"epochs": 2, "optimizer": "adam"})),
    ],
    ids=["zero_shot", "coop", "kgcoop", "dekg", "dekg-tcp"],
)
def test_a_bundle_says_the_same_after_saving_and_takes_new_names(method, config, saved_vlm, tmp_path):
    data, config = coloured_parts(), config.override(vlm=saved_vlm)
    bundle = method.train(data, config, tmp_path / "run", seed=3, say=lambda text: None)
    bundle.save(tmp_path / "bundle")
    first, again = method.load(bundle), method.load(Bundle.load(tmp_path / "bundle"))
    assert isinstance(again, OpenVocabularyRecogniser) and again.classes == CLASSES
    prediction = again.predict(data.frames[:5])
    prediction.check(5, CLASSES)
    assert (prediction.scores == first.predict(data.frames[:5]).scores).all()
    assert set(evaluate(again, data)) == {"accuracy", "accuracy_mean_class", "accuracy_worst_class", "ms_per_frame"}
    assert again.set_vocabulary(["clock", "lamp"]) == {"classes": ["clock", "lamp"]}
    again.predict(data.frames[:2]).check(2, ("clock", "lamp"))
    again.set_vocabulary(list(CLASSES))
    assert (again.predict(data.frames[:5]).scores == prediction.scores).all()
    with pytest.raises(RecognitionError, match="different ones"):
        again.set_vocabulary(["clock", "clock"])


def test_a_model_that_is_not_given_is_asked_for(tmp_path):
    with pytest.raises(RecognitionError, match="--config.vlm"):
        coop.train(coloured_parts(), CoOpConfig(), tmp_path, seed=0, say=lambda text: None)


def test_pictures_of_a_class_it_does_not_know_are_refused(vlm):
    recogniser = OpenVocabularyRecogniser(vlm, CLASSES[:3], lambda names: template_vectors(vlm, names))
    with pytest.raises(RecognitionError, match="pictures of ring, bottle, lemon; the recogniser knows: mug, bowl, gear"):
        evaluate(recogniser, coloured_parts())
