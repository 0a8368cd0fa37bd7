from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.recognition import bundled_vlm, linear_probe
from robot_bridge.auxiliary.recognition.linear_probe import LinearProbeConfig, probe_logits
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, AverageColours, coloured_parts, text_features, tiny_vlm


def test_it_stands_where_the_gradient_is_0():
    features, labels = text_features(tiny_vlm(), 60, 1.0)
    config = LinearProbeConfig(strength=1e-2)
    weight, bias = (each.requires_grad_(True) for each in linear_probe.fit(features, labels, len(CLASSES), config))
    value = F.cross_entropy(probe_logits(features, weight, bias), labels) + config.strength * weight.square().sum()
    assert max(float(each.abs().max()) for each in torch.autograd.grad(value, (weight, bias))) < 1e-4
    assert float((probe_logits(features, weight, bias).argmax(dim=1) == labels).float().mean()) > 0.9


def test_a_bundle_says_the_same_after_saving(tmp_path, monkeypatch):
    tiny_vlm().save(tmp_path / "vlm")
    make = bundled_vlm.SmallVLM.load
    monkeypatch.setattr(bundled_vlm.SmallVLM, "load", lambda folder: make(folder, AverageColours()))
    monkeypatch.setattr(linear_probe, "vlm_of", lambda bundle: bundled_vlm.vlm_of(bundle, AverageColours()))
    data = coloured_parts()
    config = LinearProbeConfig(vlm=str(tmp_path / "vlm"))
    bundle = linear_probe.train(data, config, tmp_path / "run", seed=0, say=lambda text: None)
    bundle.save(tmp_path / "bundle")
    prediction = linear_probe.load(Bundle.load(tmp_path / "bundle")).predict(data.frames)
    prediction.check(len(data), CLASSES)
    assert (prediction.scores.argmax(axis=1) == data.labels).mean() > 0.9


def test_a_bundle_of_another_model_is_refused(tmp_path):
    bundle = bundled_vlm.with_vlm(Bundle(kind="recogniser", method="x", config={}, weights={}), tiny_vlm(), "somewhere")
    changed = {**bundle.weights, "vlm.cls": bundle.weights["vlm.cls"] + 1}
    with pytest.raises(bundled_vlm.BundleError, match="trained with VLM"):
        bundled_vlm.vlm_of(Bundle(kind="recogniser", method="x", config=bundle.config, weights=changed), AverageColours())
    with pytest.raises(bundled_vlm.BundleError, match="config has no 'vlm'"):
        bundled_vlm.vlm_of(Bundle(kind="recogniser", method="x", config={}, weights={}))
