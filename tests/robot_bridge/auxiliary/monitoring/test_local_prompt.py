"""Local-Prompt on made tokens: a known object covers half of the places with its class's direction, and stands before a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.monitoring import local_prompt, mcm
from robot_bridge.auxiliary.monitoring.crops import random_crops
from robot_bridge.auxiliary.monitoring.detection import auroc
from robot_bridge.auxiliary.monitoring.guard import GlobalLocalConcept, LocalPrompts, MaximumConcept
from robot_bridge.auxiliary.monitoring.guard_evaluation import evaluate, map_auroc
from robot_bridge.auxiliary.monitoring.local_prompt import LocalPromptConfig, SortedCrops, sort_crops
from robot_bridge.auxiliary.monitoring.mcm import MCMConfig
from robot_bridge.auxiliary.recognition import bundled_vlm
from robot_bridge.auxiliary.recognition.prompt_tuning import Schedule
from robot_bridge.auxiliary.vlm.prompts import assemble
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, AverageColours, coloured_parts, tiny_vlm

PLACES, SCHEDULE = 16, Schedule(epochs=30, lr=0.02, batch_size=48)
CONFIG = LocalPromptConfig(n_ctx=4, n_neg=6, lambda_neg=1.0, k_train=4, k_test=8, schedule=SCHEDULE)


@pytest.fixture(scope="module")
def vlm():
    return tiny_vlm()


class Scene:
    """Draws tokens of objects before a table; a defect replaces a third of the object by something foreign."""

    def __init__(self, vlm) -> None:
        with torch.no_grad():  # prompts as they are before they are tuned: of this untrained model, other contexts mean other things
            prompts = assemble(vlm, CLASSES, CONFIG.n_ctx)
            self.texts = F.normalize(prompts.encode(vlm, torch.zeros(CONFIG.n_ctx, vlm.text_width)), dim=-1)
        generator = torch.Generator().manual_seed(2)
        self.table, self.foreign = F.normalize(torch.randn(2, vlm.embed_dim, generator=generator), dim=-1)

    def draw(self, labels: torch.Tensor, *, own: int = 8, foreign: int = 0, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        tokens = self.table.expand(len(labels), PLACES, -1).clone()
        tokens[:, :own] = self.texts[labels][:, None]
        tokens[:, :foreign] = self.foreign
        tokens = tokens + 0.6 * torch.randn(tokens.shape, generator=generator) / tokens.shape[-1] ** 0.5
        image = self.texts[labels] + 0.15 * torch.randn(self.texts[labels].shape, generator=generator) / tokens.shape[-1] ** 0.5
        return image, tokens


@pytest.fixture(scope="module")
def scene(vlm) -> Scene:
    return Scene(vlm)


@pytest.fixture(scope="module")
def crops(scene) -> SortedCrops:
    labels = torch.arange(24) % len(CLASSES)
    positive = torch.stack([scene.draw(labels, own=12, seed=index)[1] for index in range(4)], dim=1)
    _, negative = scene.draw(labels, own=0, seed=9)
    return SortedCrops(positive=F.normalize(positive, dim=-1), negative=F.normalize(negative, dim=-1), labels=labels)


@pytest.fixture(scope="module")
def rule(vlm, scene, crops) -> LocalPrompts:
    return replace(local_prompt.fit(vlm, crops, CLASSES, CONFIG), whole=scene.texts)


def near_auroc(vlm, scene, rule) -> float:
    labels, scale = torch.arange(240) % len(CLASSES), vlm.logit_scale.exp()
    whole, damaged = (rule.judge(*scene.draw(labels, foreign=foreign, seed=20 + foreign), scale).known for foreign in (0, 6))
    return auroc(whole.numpy(), damaged.numpy())


def test_damage_is_seen_better_than_by_the_guards_without_training(vlm, scene, rule):
    untrained = (MaximumConcept(texts=scene.texts), GlobalLocalConcept(texts=scene.texts))
    assert near_auroc(vlm, scene, rule) > max(near_auroc(vlm, scene, each) for each in untrained) + 0.05


def test_known_objects_are_recognised(vlm, scene, rule):
    labels = torch.arange(240) % len(CLASSES)
    image, tokens = scene.draw(labels, seed=50)
    found = (rule.judge(image, tokens, vlm.logit_scale.exp()).classes.argmax(dim=1) == labels).float().mean()
    assert float(found) > 0.8


def test_negative_prompts_take_the_table(vlm, scene, crops, rule):
    """Without L_neg nothing tells them what is not the object."""
    without = local_prompt.fit(vlm, crops, CLASSES, CONFIG.override(lambda_neg=0.0))

    def at_table(each: LocalPrompts) -> float:
        return float((each.negative @ scene.table).mean() - (each.local @ scene.table).mean())

    assert at_table(rule) > at_table(without) + 0.1


def test_without_diversity_negative_prompts_grow_alike(vlm, crops, rule):
    def alike(each: LocalPrompts) -> float:
        return float((each.negative @ each.negative.T).triu(1).sum() / 15)

    assert alike(local_prompt.fit(vlm, crops, CLASSES, CONFIG.override(lambda_div=0.0))) > alike(rule)


def test_the_map_shows_where_the_defect_is(vlm, scene, rule):
    labels = torch.arange(60) % len(CLASSES)
    outliers = rule.judge(*scene.draw(labels, foreign=3, seed=70), vlm.logit_scale.exp()).outliers
    assert outliers is not None and auroc(outliers[:, :3].flatten().numpy(), outliers[:, 3:8].flatten().numpy()) > 0.7


def test_crops_are_sorted_by_the_true_labels_global_prompt(scene):
    labels = torch.tensor([0, 4])
    alike = torch.tensor([[0.1, 0.9, -0.5, 0.4], [0.3, 0.2, 0.1, 0.8]])
    image = alike[:, :, None] * scene.texts[labels][:, None] + (1 - alike[:, :, None]) * scene.table
    tokens = torch.arange(8.0).view(2, 4, 1, 1).expand(2, 4, PLACES, scene.texts.shape[1]) + 1
    marks = torch.randn(tokens.shape, generator=torch.Generator().manual_seed(0))
    found = sort_crops(image, marks, labels, scene.texts, 2)
    directions = F.normalize(marks, dim=-1)
    assert torch.equal(found.positive, torch.stack((directions[0, [1, 3]], directions[1, [3, 0]])))
    assert torch.equal(found.negative, torch.stack((directions[0, 2], directions[1, 2])))


def test_crops_depend_on_the_picture_alone():
    frames = coloured_parts(each=1).frames
    crops = random_crops(frames[0], 6)
    assert crops.shape == (6, *frames[0].shape) and crops.dtype == np.uint8
    assert np.array_equal(crops, random_crops(frames[0].copy(), 6)) and np.array_equal(crops[:3], random_crops(frames[0], 3))
    assert not np.array_equal(crops, random_crops(frames[1], 6)) and len(np.unique(crops.reshape(6, -1), axis=0)) == 6


def test_the_overlap_of_map_and_defect_by_hand():
    mask = np.zeros((2, 8, 8), np.uint8)
    mask[0, :4], mask[0, :2, :2] = 1, 3  # of the second picture nothing is known
    found = np.zeros((2, 4, 4), np.float32)
    found[0, 0, 0] = 0.9
    assert map_auroc(found, mask) == 1 and np.isnan(map_auroc(found[1:], mask[1:]))


@pytest.mark.parametrize("method", ["mcm", "gl-mcm", "local-prompt"])
def test_a_guard_says_the_same_after_saving_and_accepts_what_it_knows(method, vlm, tmp_path, monkeypatch):
    vlm.save(tmp_path / "vlm")
    make = bundled_vlm.SmallVLM.load
    monkeypatch.setattr(bundled_vlm.SmallVLM, "load", lambda folder: make(folder, AverageColours()))
    for module in (mcm, local_prompt):
        monkeypatch.setattr(module, "vlm_of", lambda bundle: bundled_vlm.vlm_of(bundle, AverageColours()))
    data = coloured_parts(each=10)
    known = data.only(CLASSES[:4])
    if method == "local-prompt":
        module, train = local_prompt, local_prompt.train
        config = CONFIG.override(shots=2, schedule={"epochs": 2, "batch_size": 32})
    else:
        module, train, config = mcm, mcm.train if method == "mcm" else mcm.train_global_local, MCMConfig()
    bundle = train(known, config.override(vlm=str(tmp_path / "vlm")), tmp_path / "run", seed=0, say=lambda text: None)
    assert bundle.method == method
    bundle.save(tmp_path / "bundle")
    guard = module.load(Bundle.load(tmp_path / "bundle"))
    prediction = guard.predict(data.frames[:5])
    prediction.check(5, CLASSES[:4])
    assert (prediction.map is None) == (method == "mcm") and set(prediction.values) == {"known_score", "unknown"}
    one = guard.predict(data.frames[:1])
    assert np.allclose(one.values["known_score"], prediction.values["known_score"][:1], atol=1e-6)
    assert np.array_equal(prediction.values["unknown"], (prediction.values["known_score"] < guard.threshold).astype(np.float32))
    figures = evaluate(guard, data)
    assert figures["accepted"] > 0.75 and {"far_auroc", "far_fpr95", "accuracy"} <= set(figures) and "near_auroc" not in figures
