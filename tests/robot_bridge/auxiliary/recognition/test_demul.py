"""DeMul: the maps, the weights, the distillation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.recognition import bundled_vlm, coop, demul
from robot_bridge.auxiliary.recognition.class_prompts import class_logits
from robot_bridge.auxiliary.recognition.coop import CoOpConfig
from robot_bridge.auxiliary.recognition.demul import DeMulConfig, Teacher, make_teacher, prompt_weights
from robot_bridge.auxiliary.recognition.demul_mapping import MappingConfig, distillation_loss, fit_maps
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.prompt_tuning import Schedule
from robot_bridge.auxiliary.recognition.text_teacher import mapping_names
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, AverageColours, coloured_parts, text_features, tiny_vlm

SHORT = Schedule(epochs=6, lr=0.02, batch_size=8)
MAPPING = MappingConfig(width=64, epochs=60, lr=3e-3)


class LinearTeacher:
    """Another view on the same meanings: a fixed linear map of the VLM's own text vectors, with a large mean that all names share."""

    name, size = "linear", 48

    def __init__(self, vlm, *, meaningless: bool = False) -> None:
        self._vlm, self._meaningless = vlm, meaningless
        self._map = torch.randn(vlm.embed_dim, self.size, generator=torch.Generator().manual_seed(5))

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        if self._meaningless:
            draws = [np.random.default_rng(sum(sentence.encode())).normal(size=self.size) for sentence in sentences]
            return np.stack(draws).astype(np.float32)
        with torch.no_grad():
            return (
                F.normalize(self._vlm.encode_text([f"a photo of a {sentence}." for sentence in sentences]), dim=-1) @ self._map + 20
            ).numpy()


@pytest.fixture(scope="module")
def vlm():
    return tiny_vlm()


@pytest.fixture(scope="module")
def teacher(vlm) -> Teacher:
    return make_teacher(vlm, CLASSES, DeMulConfig(mapping=MAPPING), 0, LinearTeacher(vlm))


@pytest.fixture(scope="module")
def shots(vlm):
    return text_features(vlm, 6, 1.2)  # one a class


def test_one_fixed_prompt_without_a_teacher_is_coop(vlm, shots):
    config = DeMulConfig(prompts=1, noise=0, alpha=0, weighting=False, schedule=SHORT)
    found = demul.fit(vlm, *shots, CLASSES, config, None, seed=4)
    assert torch.equal(found.contexts, coop.fit(vlm, *shots, CLASSES, CoOpConfig(schedule=SHORT), seed=4))


@pytest.mark.parametrize("weighting", [True, False])
def test_weights_of_a_class_sum_to_1(vlm, shots, teacher, weighting):
    config = DeMulConfig(prompts=3, weighting=weighting, sparsity=0.3, schedule=SHORT)
    weights = demul.fit(vlm, *shots, CLASSES, config, teacher).weights
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(CLASSES)))
    assert bool((weights >= 0).all()) and bool((weights == 1 / 3).all()) != weighting


def test_weights_stay_finite_where_all_of_a_class_are_dead():
    assert torch.equal(prompt_weights(torch.tensor([[-1.0, -2.0]])), torch.tensor([[0.5, 0.5]]))
    assert float(prompt_weights(torch.tensor([[-1.0, 2.0]]))[0, 0]) < 1e-6  # a dead prompt stays dead


def test_gradients_reach_contexts_and_weights_only(vlm, shots, teacher, monkeypatch):
    tuned: list[nn.Parameter] = []
    monkeypatch.setattr(demul, "tune", lambda parameters, loss, *rest: (tuned.extend(parameters), loss(torch.arange(6)).backward()))
    demul.fit(vlm, *shots, CLASSES, DeMulConfig(prompts=3), teacher)
    assert [tuple(each.shape) for each in tuned] == [(3, 4, vlm.text_width), (len(CLASSES), 3)]
    assert all(each.grad is not None and float(each.grad.abs().sum()) > 0 for each in tuned)
    others = [*vlm.parameters(), *teacher.maps.parameters()]
    assert not any(each.requires_grad or each.grad is not None for each in others)


def agreement(vlm, found, teacher) -> float:
    """Mean cos(phi(g(t_ij)), e_i)."""
    encoded = demul.ClassPrompts(vlm, CLASSES, 4, found.contexts.shape[0]).encode(found.contexts)
    return float(F.cosine_similarity(teacher.maps.phi(encoded), teacher.embeddings[:, None], dim=-1).mean())


def test_a_large_alpha_brings_prompts_to_what_the_teacher_says(vlm, shots, teacher):
    schedule = Schedule(epochs=30, lr=0.02, batch_size=8)
    free = demul.fit(vlm, *shots, CLASSES, DeMulConfig(prompts=2, alpha=0, schedule=schedule), None)
    led = demul.fit(vlm, *shots, CLASSES, DeMulConfig(prompts=2, alpha=10, schedule=schedule), teacher)
    assert agreement(vlm, led, teacher) > agreement(vlm, free, teacher) + 0.02


def test_exchanged_meanings_destroy_the_gain(vlm, shots, teacher):
    """So it is what the teacher knows that helps, and not that prompts are held by something."""
    features, labels = text_features(vlm, 600, 1.2, seed=9)
    config = DeMulConfig(prompts=2, schedule=Schedule(epochs=40, lr=0.02, batch_size=8))

    def accuracy(led: Teacher | None, alpha: float) -> float:
        found = demul.fit(vlm, *shots, CLASSES, config.override(alpha=alpha), led)
        return float((class_logits(features, found.vectors, vlm.logit_scale).argmax(dim=1) == labels).float().mean())

    taught, alone, exchanged = accuracy(teacher, 1), accuracy(None, 0), teacher.shuffled(torch.tensor([1, 2, 3, 4, 5, 0]))
    assert taught > alone + 0.03 and accuracy(exchanged, 1) < taught - 0.03 and accuracy(exchanged, 10) < alone - 0.1


def test_maps_know_names_that_they_were_not_fitted_on(teacher):
    assert teacher.maps.held_out_cosine > 0.6


def test_maps_that_learnt_names_by_heart_are_refused(vlm):
    with pytest.raises(RecognitionError, match="below least_cosine 0.5"):
        make_teacher(vlm, CLASSES, DeMulConfig(mapping=MAPPING), 0, LinearTeacher(vlm, meaningless=True))
    with pytest.raises(RecognitionError, match="20 or more"):
        fit_maps(torch.zeros(6, 32), torch.zeros(6, 48), MAPPING, 0)
    with pytest.raises(RecognitionError, match="alpha is 1.0 without a teacher"):
        demul.fit(vlm, torch.zeros(1, 32), torch.zeros(1, dtype=torch.long), CLASSES, DeMulConfig(), None)


def test_the_shared_mean_of_the_teacher_is_taken_off(vlm, teacher):
    raw = F.normalize(torch.from_numpy(LinearTeacher(vlm).encode(CLASSES)), dim=-1)
    assert float((raw @ raw.T).min()) > 0.9 > 0.5 > float((teacher.embeddings @ teacher.embeddings.T).min())


def test_the_distillation_loss_is_0_where_both_sides_agree(teacher):
    names = F.normalize(teacher.names, dim=-1)
    at_names = float(distillation_loss(teacher.maps, names[:, None], teacher.embeddings, teacher.names))
    away = float(distillation_loss(teacher.maps, names[:, None], teacher.embeddings[[1, 2, 3, 4, 5, 0]], teacher.names))
    assert 0 <= at_names < 0.3 and away > at_names + 0.3


def test_names_are_words_that_the_model_has_with_the_classes_first(vlm):
    names = mapping_names(vlm, CLASSES)
    assert tuple(names[: len(CLASSES)]) == CLASSES and len(set(names)) == len(names) > 100
    assert not vlm.words.unknown(names)


def test_a_bundle_says_the_same_after_saving(vlm, tmp_path, monkeypatch):
    vlm.save(tmp_path / "vlm")
    make = bundled_vlm.SmallVLM.load
    monkeypatch.setattr(bundled_vlm.SmallVLM, "load", lambda folder: make(folder, AverageColours()))
    monkeypatch.setattr(demul, "vlm_of", lambda bundle: bundled_vlm.vlm_of(bundle, AverageColours()))
    monkeypatch.setattr(demul, "sentence_encoder", lambda: LinearTeacher(vlm))
    config = DeMulConfig(vlm=str(tmp_path / "vlm"), shots=2, prompts=2, mapping=MAPPING, schedule=SHORT)
    bundle = demul.train(coloured_parts(), config, tmp_path / "run", seed=3, say=lambda text: None)
    assert bundle.metrics["held_out_cosine"] > 0.6
    bundle.save(tmp_path / "bundle")
    frames = coloured_parts().frames[:4]
    again = demul.load(Bundle.load(tmp_path / "bundle"))
    again.predict(frames).check(4, CLASSES)
    assert (again.predict(frames).scores == demul.load(bundle).predict(frames).scores).all()
