"""ECALP as a recogniser; the graph has tests of its own."""

from __future__ import annotations

import numpy as np
import pytest

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.protocols import AdaptiveRecogniser
from robot_bridge.auxiliary.recognition import bundled_vlm, ecalp
from robot_bridge.auxiliary.recognition.ecalp_config import ECALPConfig
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, AverageColours, coloured_parts, tiny_vlm


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A function from settings to a recogniser that was saved and loaded."""
    tiny_vlm().save(tmp_path / "vlm")
    make = bundled_vlm.SmallVLM.load
    monkeypatch.setattr(bundled_vlm.SmallVLM, "load", lambda folder: make(folder, AverageColours()))
    monkeypatch.setattr(ecalp, "vlm_of", lambda bundle: bundled_vlm.vlm_of(bundle, AverageColours()))

    def load(**settings):
        config = ECALPConfig(vlm=str(tmp_path / "vlm"), **settings)
        ecalp.train(coloured_parts(seed=5), config, tmp_path / "run", seed=0, say=lambda text: None).save(tmp_path / "bundle")
        return ecalp.load(Bundle.load(tmp_path / "bundle"))

    return load


def test_predicting_changes_nothing_and_remembering_does(loaded):
    recogniser, frames = loaded(), coloured_parts().frames
    assert isinstance(recogniser, AdaptiveRecogniser)
    first = recogniser.predict(frames[:3])
    first.check(3, CLASSES)
    assert np.allclose(first.scores.sum(axis=1), 1) and np.array_equal(first.scores, recogniser.predict(frames[:3]).scores)
    recogniser.remember(frames[:3], first)
    assert len(recogniser.graph) == 3
    assert not np.array_equal(first.scores, recogniser.predict(frames[:3]).scores)


def test_shots_decide_and_a_reset_keeps_them(loaded):
    """The tiny model's texts know nothing of its pictures; shots do."""
    data = coloured_parts(each=8)
    blind, taught = ecalp.evaluate(loaded(), data), ecalp.evaluate(loaded(shots=4), data)
    assert taught["accuracy_second_half"] > max(0.7, blind["accuracy_second_half"])
    recogniser = loaded()
    for frame, label in zip(data.frames, data.labels, strict=True):
        counts = recogniser.add_shot(frame, CLASSES[label])["shots"]
    assert counts == dict.fromkeys(CLASSES, 8)
    recogniser.remember(data.frames[:4], recogniser.predict(data.frames[:4]))
    assert recogniser.reset() == {"images": 0} and len(recogniser.graph.shots[0]) == len(data)
